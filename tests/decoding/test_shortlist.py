"""With a shortlist the engine chooses as the model would if no other tokens were there; and whoever else is there."""

import json

import numpy as np
import pytest
import torch

from dragoman import models, native
from dragoman.decoding.engine import Engine
from dragoman.decoding.settings import SampleConfig
from dragoman.decoding.translate import Translator
from dragoman.errors import DataError, UsageError
from dragoman.models.gpt import GptConfig
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.runs.model import open_model, save_model
from dragoman.runs.shortlist import NAME, open_shortlist, save_shortlist
from dragoman.runs.weights import weights_of
from dragoman.text.shortlist import Shortlist

V, END, START = 150, 3, 2
SIZES = {"source_vocabulary": V, "target_vocabulary": V, "dropout": 0.0, "heads": 2, "layers": 2}
KINDS = {
    "transformer": TransformerConfig(**SIZES, width=24, hidden=36),
    "untied": TransformerConfig(**SIZES, width=22, hidden=36, tied="none"),
    "t5": T5Config(**SIZES, width=16, head_width=8, hidden=32, buckets=8, furthest=12),
}


def lists(each=9, always=(END, 70, 149)):
    """Some tokens for each of the source's."""
    chance = np.random.default_rng(0)
    tokens = np.concatenate([np.sort(chance.choice(V, each, replace=False)) for _ in range(V)])
    return Shortlist(np.array(sorted(always)), np.arange(V + 1) * each, tokens, copies=False)


EVERYTHING = Shortlist(np.arange(V), np.zeros(V + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), copies=False)


@pytest.fixture(params=["float32", "int8"])
def precision(request):
    return request.param


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def model(request):
    torch.manual_seed(2)
    made = models.build(request.param).eval()
    if made.scores.bias is not None:
        torch.nn.init.normal_(made.scores.bias)
    return made


SOURCES = [[4, 5, 6], [9, 69], [10, 4, 5, 6] * 5, list(range(4, 30))]


def begin(engine, sources):
    longest = max(map(len, sources))
    mask = torch.tensor([[True] * len(one) + [False] * (longest - len(one)) for one in sources])
    return engine.encode(torch.tensor([one + [0] * (longest - len(one)) for one in sources]), mask)


def test_a_list_of_everything_changes_nothing(model, precision):
    engine = Engine(model, precision)
    start = np.full((4, 1), START)
    whole, _ = engine.propose(start, begin(engine, SOURCES), 5, END, (0, 1))
    short = engine.with_shortlist(EVERYTHING)
    listed, _ = short.propose(start, begin(short, SOURCES), 5, END, (0, 1))
    np.testing.assert_array_equal(listed.tokens, whole.tokens)
    np.testing.assert_allclose(listed.log_probs, whole.log_probs, atol=1e-5)
    np.testing.assert_allclose(listed.ended, whole.ended, atol=1e-5)


@pytest.mark.parametrize("level", native.LEVELS)
def test_it_is_the_softmax_over_the_list(monkeypatch, model, precision, level):
    build = native.open_build(level)
    if build is None or native.LEVELS.index(level) > native.open_build("plain").processor_level():
        pytest.skip(f"this processor has no {level}")
    monkeypatch.setattr(native, "library", lambda: build)
    engine, shortlist, start = Engine(model, precision), lists(), torch.full((4, 1), START)
    logits = engine.decode(start, begin(engine, SOURCES)).logits[:, -1]
    short = engine.with_shortlist(shortlist)
    found, _ = short.propose(start.numpy(), begin(short, SOURCES), 6, END, (0, 1))
    for row, source in enumerate(SOURCES):
        tokens = shortlist.of(source)
        chances = logits[row, tokens].log_softmax(0).numpy()
        free = [i for i, token in enumerate(tokens.tolist()) if token not in (0, 1, END)]
        best = sorted(free, key=lambda i: -chances[i])[:6]
        assert found.tokens[row].tolist() == tokens[best].tolist()
        np.testing.assert_allclose(found.log_probs[row], chances[best], atol=1e-5)
        assert found.ended[row] == pytest.approx(chances[tokens.tolist().index(END)], abs=1e-5)


def test_a_list_shorter_than_the_beam_leaves_places_empty(model):
    only = Shortlist(np.array([END, 7]), np.zeros(V + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), copies=False)
    short = Engine(model).with_shortlist(only)
    found, _ = short.propose(np.full((4, 1), START), begin(short, SOURCES), 3, END, (0, 1))
    assert (found.tokens[:, 0] == 7).all()
    assert np.isinf(found.log_probs[:, 1:]).all()


@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_does_not_depend_on_its_neighbours(reverser, beam, precision):
    size = len(reverser.tokenizers.target)
    chance = np.random.default_rng(3)
    tokens = np.concatenate([np.sort(chance.choice(size, size // 2, replace=False)) for _ in range(size)])
    starts = np.arange(size + 1) * (size // 2)
    shortlist = Shortlist(np.array(sorted(reverser.tokenizers.special.ends)), starts, tokens, copies=False)
    short = Translator(reverser.model, reverser.tokenizers, reverser.about, shortlist)
    sources = [source for source, _ in reverser.held_out][:40]
    together = [t.text for t in short.translate(sources, beam=beam, precision=precision, shortlist=True)]
    alone = [short.translate([one], beam=beam, precision=precision, shortlist=True)[0].text for one in sources]
    assert together == alone
    whole = [t.text for t in short.translate(sources, beam=beam, precision=precision)]
    assert together != whole  # half of the words are missing
    assert whole == [t.text for t in reverser.translate(sources, beam=beam, precision=precision)]


@pytest.mark.parametrize("how", [{"prefixes": ["a"]}, {"sampling": SampleConfig(seed=1)}])
def test_where_it_cannot_be_used_that_is_said_and_all_is_scored(reverser, how):
    size, said = len(reverser.tokenizers.target), []
    ends = Shortlist(
        np.array([*reverser.tokenizers.special.ends]), np.zeros(size + 1, np.int64), np.zeros(0, np.int64), False
    )
    short = Translator(reverser.model, reverser.tokenizers, reverser.about, ends)
    found = short.translate(["a b c"], shortlist=True, notice=said.append, **how)
    assert [t.text for t in found] == [t.text for t in reverser.translate(["a b c"], **how)]
    assert len(said) == 1
    assert "a shortlist cannot be used where words are drawn" in said[0]


def test_a_text_without_a_source_is_chosen_from_all_tokens():
    model = models.build(GptConfig(vocabulary=20, width=8, heads=2, layers=1, hidden=8, longest=9)).eval()
    engine = Engine(model)
    for state in (engine.begin(3), engine.begin(1).join(engine.begin(2)), engine.begin(3).select(np.array([2, 1, 0]))):
        found, _ = engine.propose(np.full((3, 1), 4), state, 2, END, ())
        assert (found.tokens == found.tokens[0]).all()


def test_a_model_without_one_says_so(reverser):
    with pytest.raises(UsageError, match="has no shortlist"):
        reverser.translate(["a b c"], shortlist=True)


# ── in a file ─────────────────────────────────────────────────────────────────────────────


def test_it_is_saved_with_a_model(tmp_path, reverser):
    size = len(reverser.tokenizers.target)
    some = Shortlist(np.array([0, 2]), np.arange(size + 1), np.arange(size), copies=True)
    config, weights = reverser.model.config, weights_of(reverser.model)
    save_model(tmp_path / "model", config, weights, reverser.tokenizers, reverser.about, some)
    found = open_model(tmp_path / "model").shortlist
    assert all(np.array_equal(a, b) for a, b in zip(found, some, strict=True))
    assert NAME in json.loads((tmp_path / "model" / "manifest.json").read_text())


HARM = {
    "of another vocabulary": lambda s: s._replace(starts=s.starts[:-1]),
    "lists that go back": lambda s: s._replace(starts=np.concatenate([[0, 9, 3], s.starts[3:]])),
    "a token that is not there": lambda s: s._replace(tokens=np.where(s.tokens == 5, V, s.tokens)),
    "a token below zero": lambda s: s._replace(always=np.array([-1])),
    "nothing that is always there": lambda s: s._replace(always=np.zeros(0, dtype=np.int64)),
    "no end": lambda s: s._replace(always=np.array([70])),
    "a table": lambda s: s._replace(tokens=s.tokens[None]),
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_one_that_does_not_fit_is_refused(tmp_path, harm):
    save_shortlist(tmp_path, harm(lists()))
    with pytest.raises(DataError, match="does not fit this model"):
        open_shortlist(tmp_path, KINDS["transformer"], [END])


def test_a_model_that_translates_nothing_has_none(tmp_path):
    save_shortlist(tmp_path, lists())
    with pytest.raises(DataError, match="translates nothing"):
        open_shortlist(tmp_path, object(), [END])
