"""The engine is another writer: what the models promise, it promises too, and it writes what they write.

Its sums are in float32, so it is held to 1e-4 of the model; to itself it is held bit by bit, whatever the batch.
"""

import os
import random
import subprocess
import sys
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dragoman import models, native
from dragoman.decoding.beam import SearchConfig, beam_search
from dragoman.decoding.engine import Engine, EngineState, make_engine
from dragoman.decoding.flow import Queue, Waiting, search_all
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.pace import Ways
from dragoman.decoding.translate import Translator
from dragoman.models.gpt import Gpt, GptConfig
from dragoman.models.marian import MarianConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.state import select_rows
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.text.batches import make_batch, make_source
from dragoman.text.special import SpecialIds

V = 70  # more than one panel of outputs
SPECIAL = SpecialIds()
SIZES = {"source_vocabulary": V, "target_vocabulary": V, "dropout": 0.0}
KINDS = {
    "after": TransformerConfig(**SIZES, width=24, heads=3, layers=2, hidden=36),
    "before": TransformerConfig(**SIZES, width=24, heads=3, layers=2, hidden=36, norm_first=True, activation="gelu"),
    "wide heads": TransformerConfig(**SIZES, width=128, heads=2, layers=1, hidden=70, positions="learned", longest=40),
    "t5": T5Config(**SIZES, width=16, heads=2, head_width=8, layers=2, hidden=32, buckets=8, furthest=12),
    "t5 gated": T5Config(
        **SIZES, width=16, heads=4, head_width=6, layers=2, decoder_layers=1, hidden=24, gated=True,
        activation="gelu-tanh", tied="inputs", scaled=True,
    ),
    "marian": MarianConfig(
        **SIZES, width=16, heads=2, decoder_heads=4, layers=1, decoder_layers=2, hidden=32, decoder_hidden=24,
        scaled=False,
    ),
}  # fmt: skip
PAIRS = [([4, 5, 6], [7, 8]), ([9, 69], [4, 5, 6, 7]), ([10, 4, 5, 6] * 5, [9]), (list(range(4, 30)), [65])]
BATCH = make_batch(PAIRS, SPECIAL)
LOSS = 0.15  # of the largest score, that int8 may be off by on such narrow, random models


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def model(request):
    made = models.build(request.param).eval()
    with torch.no_grad():  # biases and gains that are not zeros and ones
        for parameter in made.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return made


@pytest.fixture(params=["float32", "int8"])
def precision(request):
    return request.param


@pytest.fixture
def engine(model, precision):
    return Engine(model, precision)


def begin(writer, batch=BATCH):
    return writer.encode(batch.source, batch.source_mask)


def in_int8(model):
    """The model with every matrix rounded as int8 rounds it: what is left is the rounding of the states."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                scale = module.weight.abs().amax(dim=1, keepdim=True) / 127
                module.weight.copy_((module.weight / scale).round() * scale)
    return model


@torch.inference_mode()
def test_its_logits_are_the_models(model, precision):
    engine = Engine(model, precision)
    wanted = model(BATCH.source, BATCH.source_mask, BATCH.target_in)
    found = engine.decode(BATCH.target_in, begin(engine)).logits
    real = BATCH.target_mask
    off = (found - wanted)[real].abs().max()
    assert off < (1e-4 if precision == "float32" else LOSS * wanted[real].abs().max())


@torch.inference_mode()
def test_in_int8_no_more_is_lost_than_by_rounding_weights_and_states(model):
    """Rounding the weights alone accounts for much of the difference: the products themselves are exact."""
    before = Engine(model, "int8").decode(BATCH.target_in, begin(Engine(model, "int8"))).logits
    rounded = in_int8(model)
    after = Engine(rounded, "int8").decode(BATCH.target_in, begin(Engine(rounded, "int8"))).logits
    torch.testing.assert_close(before, after, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("cuts", [[0, 1, 2, 3, 4, 5], [0, 2, 5], [0, 4, 5]], ids=str)
def test_writing_in_any_chunks_gives_the_same_bits(engine, cuts):
    whole = engine.decode(BATCH.target_in, begin(engine)).logits
    state, parts = begin(engine), []
    for a, b in pairwise(cuts):
        logits, state = engine.decode(BATCH.target_in[:, a:b], state)
        parts.append(logits)
    assert torch.equal(torch.cat(parts, dim=1), whole)


def test_a_sentence_alone_has_the_bits_it_has_in_a_batch(engine):
    together = engine.decode(BATCH.target_in, begin(engine)).logits
    for row, pair in enumerate(PAIRS):
        one = make_batch([pair], SPECIAL)
        alone = engine.decode(one.target_in, begin(engine, one)).logits
        assert torch.equal(together[row, : one.target_in.shape[1]], alone[0])


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_that_compute_a_step_together_give_the_same_bits(engine, threads):
    several = engine.with_threads(threads)
    assert torch.equal(
        several.decode(BATCH.target_in, begin(several)).logits, engine.decode(BATCH.target_in, begin(engine)).logits
    )


def test_what_stands_in_the_padding_changes_nothing(engine):
    garbage = BATCH._replace(source=BATCH.source.masked_fill(~BATCH.source_mask, V - 1))
    a, b = (engine.decode(BATCH.target_in, begin(engine, batch)).logits for batch in (BATCH, garbage))
    assert torch.equal(a, b)


def test_a_nan_in_the_padding_changes_nothing(model, precision):
    clean = Engine(model, precision)
    with torch.no_grad():
        model.source_embedding.table.weight[V - 2] = torch.nan
    spoiled = BATCH._replace(source=BATCH.source.masked_fill(~BATCH.source_mask, V - 2))
    reads = Engine(model, precision)
    a = clean.encode(BATCH.source, BATCH.source_mask).memories[0][0]
    b = reads.encode(spoiled.source, spoiled.source_mask).memories[0][0]
    assert torch.equal(a, b)


def test_a_later_token_changes_no_earlier_bit(engine):
    changed = BATCH.target_in.clone()
    changed[:, 3] = V - 1
    a, b = (engine.decode(tokens, begin(engine)).logits for tokens in (BATCH.target_in, changed))
    assert torch.equal(a[:, :3], b[:, :3])
    assert not torch.allclose(a[:, 3:], b[:, 3:])


def test_every_source_token_counts_from_the_first_target_token_on(engine):
    first = engine.decode(BATCH.target_in[:1, :1], begin(engine, make_batch(PAIRS[:1], SPECIAL))).logits
    for position in range(3):
        source = list(PAIRS[0][0])
        source[position] = V - 1
        other = begin(engine, make_batch([(source, [])], SPECIAL))
        assert not torch.allclose(engine.decode(BATCH.target_in[:1, :1], other).logits, first)


def test_a_beam_of_the_whole_vocabulary_finds_the_argmax(engine):
    """With beam width V and one token at most the search is exhaustive: nothing may beat what it found."""
    one, start = make_batch([([4, 5, 6], [])], SPECIAL), torch.tensor([[SPECIAL.start]])
    words = [w for w in range(V) if w != SPECIAL.end and w not in SPECIAL.never_written()]
    firsts = engine.decode(start, begin(engine, one)).logits[0, -1].log_softmax(dim=-1)
    scored = [(firsts[SPECIAL.end].item(), [])]
    for word in words:
        given = torch.tensor([[SPECIAL.start, word]])
        after = engine.decode(given, begin(engine, one)).logits[0, -1].log_softmax(dim=-1)
        scored.append((firsts[word].item() + after[SPECIAL.end].item(), [word]))
    best = sorted(scored, reverse=True)[:3]
    found = beam_search(engine, begin(engine, one), [1], SPECIAL, SearchConfig(beam=V, nbest=3, length_penalty=0.0))[0]
    assert [h.tokens for h in found] == [tokens for _, tokens in best]
    assert [h.log_prob for h in found] == pytest.approx([log_prob for log_prob, _ in best], abs=1e-4)


def test_state_rows_can_be_reordered_repeated_and_left_out(engine):
    for rows in ([2, 0, 1, 1, 3], [3], [1, 1, 1, 0]):
        chosen = torch.tensor(rows)
        _, state = engine.decode(BATCH.target_in[:, :2], begin(engine))
        wanted = engine.decode(BATCH.target_in[:, :4], begin(engine)).logits[chosen][:, 2:]
        state = select_rows(state, chosen)
        found = []
        for place in (2, 3):
            logits, state = engine.decode(BATCH.target_in[chosen, place : place + 1], state)
            found.append(logits)
        assert torch.equal(torch.cat(found, dim=1), wanted)


def test_proposals_are_the_best_of_the_logits(engine):
    never = [0, 5, 68]
    log_probs = engine.decode(BATCH.target_in, begin(engine)).logits[:, -1].log_softmax(dim=-1)
    for threads, most in product((1, 2), (1, 4, V)):
        writer = engine.with_threads(threads)
        found, _ = writer.propose(BATCH.target_in.numpy(), begin(writer), most, SPECIAL.end, never)
        left = log_probs.clone()
        left[:, [*never, SPECIAL.end]] = -torch.inf
        best = left.topk(most)
        torch.testing.assert_close(torch.from_numpy(found.log_probs), best.values, atol=1e-5, rtol=1e-5)
        there = best.values.isfinite()
        assert torch.equal(torch.from_numpy(found.tokens)[there], best.indices[there])
        torch.testing.assert_close(torch.from_numpy(found.ended), log_probs[:, SPECIAL.end], atol=1e-5, rtol=1e-5)


def test_proposals_from_a_large_vocabulary_have_the_same_bits_for_any_number_of_threads(precision):
    """Threads look through parts of it, whichever is free; equal scores come in the vocabulary's order."""
    sizes = SIZES | {"source_vocabulary": 1500, "target_vocabulary": 1500}
    model = models.build(TransformerConfig(**sizes, width=24, heads=3, layers=1, hidden=36)).eval()
    with torch.no_grad():
        model.scores.table.weight[700:] = model.scores.table.weight[:800].clone()
    engine, found = Engine(model, precision), []
    log_probs = engine.decode(BATCH.target_in, begin(engine)).logits[:, -1].log_softmax(dim=-1)
    for threads in (1, 2, 3):
        writer = engine.with_threads(threads, settled=True)
        for _ in range(5):
            found.append(writer.propose(BATCH.target_in.numpy(), begin(writer), 9, SPECIAL.end, [])[0])
    torch.testing.assert_close(torch.from_numpy(found[0].log_probs[:, 0]), log_probs.amax(dim=-1), atol=1e-5, rtol=1e-5)
    for other in found[1:]:
        assert all((a == b).all() for a, b in zip(found[0], other, strict=True))
    falls = np.diff(found[0].log_probs) < 0
    assert (falls | (np.diff(found[0].tokens) > 0)).all()
    assert not falls.all()


def test_steps_done_ahead_are_those_that_would_have_been_asked_for(engine, monkeypatch):
    """Greedy search asks step by step and gets the same bits, in fewer calls; another question is computed."""
    calls = []
    native_step = engine.packed.library.step
    library = SimpleNamespace(
        step=lambda *given: calls.append(1) or native_step(*given),
        encode=engine.packed.library.encode,
        remember=engine.packed.library.remember,
    )
    monkeypatch.setattr(engine.packed, "library", library)

    def written(ahead):
        calls.clear()
        state, newest, found = begin(engine), np.full((len(PAIRS), 1), SPECIAL.start), []
        for left in range(12, 0, -1):
            told, state = engine.propose(newest, state, 1, SPECIAL.end, [7], ahead=min(left, ahead))
            found += [told]
            newest = told.tokens
        return found, len(calls)

    one_by_one, all_calls = written(1)
    at_once, fewer_calls = written(12)
    assert all_calls == 12 > fewer_calls
    for a, b in zip(one_by_one, at_once, strict=True):
        assert all(map(np.array_equal, a, b))
    told, state = engine.propose(np.full((len(PAIRS), 1), SPECIAL.start), begin(engine), 1, SPECIAL.end, [7], ahead=5)
    others = (told.tokens + 1) % V
    found, _ = engine.propose(others, state, 1, SPECIAL.end, [7], ahead=5)
    _, state = engine.propose(np.full((len(PAIRS), 1), SPECIAL.start), begin(engine), 1, SPECIAL.end, [7])
    wanted, _ = engine.propose(others, state, 1, SPECIAL.end, [7])
    assert all(map(np.array_equal, found, wanted))


def test_every_hypothesis_has_the_score_the_engine_itself_gives_it(engine):
    config = SearchConfig(beam=4, nbest=4, length_penalty=4.0)
    found = beam_search(engine, begin(engine), [3, 6, 9, 40 - 6], SPECIAL, config)
    for row, hypotheses in enumerate(found):
        one = make_batch([(PAIRS[row][0], [])], SPECIAL)
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses) == 4
        for h in hypotheses:
            given = torch.tensor([[SPECIAL.start, *h.tokens]])
            log_probs = engine.decode(given, begin(engine, one)).logits[0].log_softmax(dim=-1)
            fresh = log_probs[range(len(h.tokens) + 1), [*h.tokens, SPECIAL.end]].sum().item()
            assert h.log_prob == pytest.approx(fresh, abs=2e-4)


@pytest.mark.parametrize("finish", ["wu", "mean"])
@pytest.mark.parametrize("beam", [1, 3])
def test_sentences_that_join_later_get_the_same_text(engine, beam, finish):
    """Continuous batching: two places for twelve sentences, so that most begin while another is half done."""
    rng = random.Random(0)
    sources = [[rng.randrange(4, V) for _ in range(rng.randint(1, 12))] for _ in range(12)]
    config = SearchConfig(beam=beam, finish=finish)
    waiting = [Waiting(number, source, 4 + number) for number, source in enumerate(sources)]
    for threads, faster in ((1, True), (2, True), (2, False), (3, True)):
        ways = engine.ways[threads, 2, beam]
        ways.seconds, ways.portions = {faster: 0.0, not faster: 1.0}, 0  # together, or apart
        found = search_all(engine, waiting, SPECIAL, config, rows=2 * beam, threads=threads)
        assert sorted(found) == list(range(12))
        for one in waiting:
            state = engine.encode(*make_source([one.source], SPECIAL))
            [alone] = beam_search(engine, state, [one.longest], SPECIAL, config)
            assert found[one.number] == alone


def test_no_step_that_was_done_ahead_is_thrown_away(engine, monkeypatch):
    join, pending = EngineState.join, []

    def watched(state, newer):
        pending.append(len(state.foreseen))
        return join(state, newer)

    monkeypatch.setattr(EngineState, "join", watched)
    never = (
        (SPECIAL.pad,),
        (SPECIAL.start,),
        (SPECIAL.end,),
        (SPECIAL.unknown,),
    )  # all outputs are as long as they may be
    rng = random.Random(0)
    waiting = [Waiting(number, [rng.randrange(4, V) for _ in range(9)], 4 + number % 9) for number in range(24)]
    for threads in (1, 2):
        engine.ways[threads, 6, 1].seconds = {True: 1.0, False: 0.0}  # apart
        search_all(engine, waiting, SPECIAL, SearchConfig(beam=1, never=never), rows=6, threads=threads)
    assert len(pending) > 4
    assert not any(pending)


def test_each_worker_takes_its_share():
    queue = Queue([Waiting(number, [5] * number, 9) for number in range(48)], workers=2)
    first, second = queue.take(32, 0), queue.take(32, 1)
    assert (len(first), len(second)) == (24, 24)
    assert first[0].number == 47  # the longest come first
    queue = Queue([Waiting(number, [5], 9) for number in range(7)], workers=2)
    assert len(queue.take(5, 0)) == 4  # of seven
    assert len(queue.take(2, 1)) == 2  # it has room for no more
    assert len(queue.take(2, 1, busy=2)) == 1
    assert queue.take(4, 0, busy=1) == []


def test_how_many_threads_are_faster_is_remembered_from_sentence_to_sentence(engine):
    pace = engine.with_threads(2).paces[2, 1]
    pace.seconds = {1: 0.0, 2: 9.0}
    assert engine.with_threads(2).paces[2, 1].choose(2) == 1
    assert engine.with_threads(2).paces[2, 5].choose(2) == 2  # of a beam nothing is known yet
    assert engine.paces[1, 1].choose(1) == 1


def test_both_ways_of_using_threads_are_tried_and_the_faster_is_kept():
    ways, tried = Ways(), []
    for _ in range(2 + 2 * Ways.TRY):
        together, is_trial = ways.choose()
        assert is_trial == (len(tried) < 2 or not together)
        tried.append(together)
        ways.note(together, 1.0 if together else 2.0)
    assert tried[:2] == [True, False]
    assert tried[2:].count(False) == 2  # now and then, since another program may have ended
    ways.note(True, 9.0)
    ways.portions = 0
    assert ways.choose() == (False, False)


@pytest.mark.parametrize("pause", [0, 0.2])
def test_a_process_that_was_forked_from_one_with_threads_ends(tmp_path, pause):
    """Its threads, looking for work or asleep, are not in the other process, so there is nobody to wait for."""
    script = f"""
import os, sys, time, torch
from dragoman import models
from dragoman.decoding.engine import Engine
from dragoman.models.gpt import GptConfig
writer = Engine(models.build(GptConfig(vocabulary=20, width=8, heads=2, layers=1, hidden=8, longest=9)).eval())
writer = writer.with_threads(2, settled=True)
first = writer.decode(torch.tensor([[4, 5]]), writer.begin(1)).logits
time.sleep({pause})
child = os.fork()
same = torch.equal(writer.decode(torch.tensor([[4, 5]]), writer.begin(1)).logits, first)
if not child:
    sys.exit(0 if same else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], env=environment, timeout=120, cwd=tmp_path).returncode == 0


def test_a_text_longer_than_the_cache_at_first_goes_on(precision):
    model = models.build(KINDS["after"]).eval()
    engine = Engine(model, precision)
    one = make_batch([([4, 5], np.random.default_rng(0).integers(4, V, 300).tolist())], SPECIAL)
    found = engine.decode(one.target_in, begin(engine, one)).logits
    state, parts = begin(engine, one), []
    for token in one.target_in.split(1, dim=1):
        logits, state = engine.decode(token, state)
        parts.append(logits)
    assert torch.equal(torch.cat(parts, dim=1), found)
    if precision == "float32":
        with torch.inference_mode():
            wanted = model(one.source, one.source_mask, one.target_in)
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


def test_positions_that_were_learned_end_where_they_end():
    engine = Engine(models.build(KINDS["wide heads"]).eval())
    for length in (41, 255, 256, 257):
        with pytest.raises(ValueError, match=f"learned 40 positions and was asked for {length}"):
            engine.encode(torch.full((1, length), 5), torch.ones(1, length, dtype=torch.bool))


def test_a_token_that_it_does_not_have_is_refused(engine):
    for strange in (-1, V):
        with pytest.raises(IndexError, match="this model has 70"):
            engine.encode(torch.tensor([[4, strange]]), torch.ones(1, 2, dtype=torch.bool))
        with pytest.raises(IndexError, match="this model has 70"):
            engine.decode(torch.full((len(PAIRS), 1), strange), begin(engine))


@pytest.mark.parametrize("level", native.LEVELS)
def test_every_build_that_runs_here_writes_the_same(monkeypatch, level):
    best = native.library()
    build = native.open_build(level)
    if build is None or native.LEVELS.index(level) > native.open_build("plain").processor_level():
        pytest.skip(f"this processor has no {level}")
    model = models.build(KINDS["before"]).eval()
    wanted = {p: Engine(model, p).decode(BATCH.target_in, begin(Engine(model, p))).logits for p in ("float32", "int8")}
    monkeypatch.setattr(native, "library", lambda: build)
    for precision, logits in wanted.items():
        engine = Engine(model, precision)
        found = engine.decode(BATCH.target_in, begin(engine)).logits
        torch.testing.assert_close(found, logits, atol=1e-4 if precision == "float32" else 0.02, rtol=0)
    assert best is not None


# ── on a model that has learned ───────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sources(reverser):
    return [source for source, _ in reverser.held_out]


def by_the_model_itself(translator, sources, **how):
    plain = Translator(translator.model, translator.tokenizers, translator.about)
    plain.engines = {"float32": None}
    return plain.translate(sources, **how)


@pytest.mark.parametrize("beam", [1, 5])
def test_it_writes_what_the_model_writes(reverser, sources, beam):
    ours = reverser.translate(sources, beam=beam, nbest=min(beam, 3))
    assert isinstance(reverser.engines["float32"], Engine)
    for one, other in zip(ours, by_the_model_itself(reverser, sources, beam=beam, nbest=min(beam, 3)), strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert [a.text for a in one.alternatives] == [a.text for a in other.alternatives]


def test_in_int8_it_is_right_nearly_as_often(reverser, sources):
    wanted = [target for _, target in reverser.held_out]
    right = {
        precision: sum(
            t.text == w for t, w in zip(reverser.translate(sources, precision=precision), wanted, strict=True)
        )
        for precision in ("float32", "int8")
    }
    assert right["int8"] >= right["float32"] - 0.03 * len(sources)


@pytest.mark.parametrize("beam", [1, 4])
def test_in_int8_a_translation_does_not_depend_on_its_neighbours(reverser, sources, beam):
    how = {"beam": beam, "precision": "int8"}
    together = dict(zip(sources, reverser.translate(sources, **how), strict=True))
    shuffle = random.Random(0)
    for size in (1, 3, 20, 60):
        chosen = shuffle.sample(sources, 60)
        for start in range(0, 60, size):
            some = chosen[start : start + size]
            for source, found in zip(some, reverser.translate(some, **how), strict=True):
                assert (found.text, found.score) == (together[source].text, together[source].score)


def test_prefixes_repeats_and_drawing_go_through_it_too(reverser, sources):
    some = sources[:20]
    prefixes = ["a b", ""] * 10
    ours, theirs = (translate(some, prefixes=prefixes) for translate in (
        reverser.translate, lambda *a, **k: by_the_model_itself(reverser, *a, **k)
    ))  # fmt: skip
    assert [t.text for t in ours] == [t.text for t in theirs]
    careful = Translator(reverser.model, reverser.tokenizers, {**reverser.about, "search": {"no_repeat": 2}})
    assert [t.text for t in careful.translate(some)] == [t.text for t in by_the_model_itself(careful, some)]


def test_what_the_engine_cannot_take_is_computed_without_it_and_it_is_said(reverser, monkeypatch):
    size = len(reverser.tokenizers.source)
    rnn = models.build(RnnConfig(source_vocabulary=size, target_vocabulary=size, width=16, embedding=16))
    assert make_engine(rnn) is None
    said = []
    translator = Translator(rnn, reverser.tokenizers, reverser.about)
    for precision in ("float32", "int8"):
        said.clear()
        assert len(translator.translate(["a b c"], precision=precision, notice=said.append)) == 1
        assert said == ["a model of the class Rnn goes without the engine; torch computes it in float32"]
    monkeypatch.setattr(native, "library", lambda: None)
    said.clear()
    Translator(reverser.model, reverser.tokenizers, reverser.about).translate(["a b c"], notice=said.append)
    assert "no C++ part" in said[0]
    assert "compiler" in said[0]


def test_gpt_writes_the_same_through_it(reverser):
    tokenizers = reverser.tokenizers
    model = Gpt(GptConfig(vocabulary=len(tokenizers.target), width=32, heads=2, layers=2, hidden=64, longest=16))
    writer = TextWriter(model, tokenizers)
    ours = writer.generate("a b", tokens=60)
    assert isinstance(writer.engine, Engine)
    writer.writer = lambda: model.eval()
    assert writer.generate("a b", tokens=60) == ours
