"""Positions as they are shown: the waves' own properties, and what a model really learned."""

import json
import math
import re
from pathlib import Path

import pytest
import torch

from dragoman import models
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.words import WordVectors
from dragoman.models.bert import BertConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.marian import MarianConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.rnn_writer import RnnWriterConfig
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.models.word_vectors import Word2VecConfig
from dragoman.modules.positions import sinusoids, split_sinusoids
from dragoman.seeing.positions import REACH, SHOWN, positions_of, show_positions
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers

CONTRACT = (Path(__file__).parents[2] / "web" / "src" / "data.ts").read_text(encoding="utf-8")
BOTH = {"source_vocabulary": 9, "target_vocabulary": 9}
SIZES = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}
CONFIGS = {
    "transformer": TransformerConfig(**BOTH, **SIZES),
    "transformer-wide": TransformerConfig(**BOTH, **{**SIZES, "width": 128}),
    "transformer-learned": TransformerConfig(**BOTH, **SIZES, positions="learned", longest=20),
    "marian": MarianConfig(**BOTH, **SIZES),
    "gpt": GptConfig(vocabulary=9, **SIZES, longest=100),
    "bert": BertConfig(vocabulary=9, **SIZES, longest=12),
    "t5": T5Config(**BOTH, **SIZES, head_width=8, buckets=32, furthest=128),
}


@pytest.fixture(params=CONFIGS, scope="module")
def model(request):
    torch.manual_seed(0)
    return models.build(CONFIGS[request.param])


@pytest.fixture(scope="module")
def found(model):
    return positions_of(model)


def same(packed, values):
    torch.testing.assert_close(packed.unpack(), values.double(), atol=0.51 * 10**-packed.digits, rtol=0)


def test_the_table_is_the_first_of_the_waves(model, found):
    rows = min(SHOWN, found.longest or SHOWN)
    waves = split_sinusoids if isinstance(model.config, MarianConfig) else sinusoids
    same(found.table, waves(rows, model.config.width)[:, :SHOWN])
    assert found.width == model.config.width
    if found.kind == "sinusoidal":
        same(found.table, model.source_positions(0, rows)[:, :SHOWN])


def test_waves_go_from_fast_to_slow_and_repeat_where_they_say(found):
    lengths = [wave.wavelength for wave in found.waves]
    assert 4 <= len(lengths) <= 6
    assert lengths == sorted(lengths)
    assert lengths[0] == pytest.approx(2 * math.pi, abs=0.01)
    places = torch.arange(min(SHOWN, found.longest or SHOWN)).double()
    for wave in found.waves:
        torch.testing.assert_close(
            wave.values.unpack(), (2 * math.pi * places / wave.wavelength).sin(), atol=0.06, rtol=0
        )
    if found.width <= SHOWN:
        for wave in found.waves:
            assert torch.equal(wave.values.unpack(), found.table.unpack()[:, wave.dimension])


def test_closeness_is_one_at_distance_nought_and_depends_on_distance_alone(model, found):
    close = found.closeness
    assert close.sinusoidal.unpack()[0] == 1
    assert len(close.distances) == len(close.sinusoidal.unpack()) == min(SHOWN, found.longest or SHOWN)
    table = sinusoids(SHOWN, model.config.width)
    for k in close.distances[:8]:
        share = (table[3] @ table[3 + k]) / table[3].square().sum()
        assert close.sinusoidal.unpack()[k].item() == pytest.approx(share.item(), abs=1e-4)
    assert close.sinusoidal.unpack()[1] < 1


def test_what_was_learned_is_shown_as_it_is(model, found):
    if found.kind != "learned":
        assert found.learned is found.longest is found.closeness.learned is None
        return
    part = next(part for name, part in model.named_modules() if name.endswith("positions"))
    rows = min(SHOWN, found.longest)
    assert found.longest == model.config.longest == part.table.num_embeddings
    same(found.learned, part.table.weight[:rows, :SHOWN].detach())
    assert found.learned.shape == found.table.shape
    assert found.closeness.learned.unpack()[0] == 1
    weights = part.table.weight.detach().double()
    neighbours = (weights[:-1] * weights[1:]).sum(-1).mean() / weights.square().sum(-1).mean()
    assert found.closeness.learned.unpack()[1].item() == pytest.approx(neighbours.item(), abs=1e-3)
    assert f"none for place {found.longest + 1}" in found.sentence


def test_the_bias_is_what_each_head_adds(model, found):
    if found.kind != "relative":
        assert found.bias is None
        return
    assert found.bias.distances == list(range(-REACH, REACH + 1))
    added = model.encoder_distances(REACH, 1, 2 * REACH + 1)[0, :, 0].detach()  # one query in the middle of all keys
    same(found.bias.heads, added)
    assert found.bias.heads.shape == (2, 2 * REACH + 1)


def test_marian_says_its_order():
    found = positions_of(models.build(CONFIGS["marian"]))
    assert "all sines come first" in found.sentence
    assert [wave.dimension for wave in found.waves] == sorted({round(i * 7 / 5) for i in range(6)})


def test_who_reads_in_order_has_no_positions():
    assert positions_of(models.build(RnnConfig(**BOTH, width=8, embedding=8))) is None
    assert positions_of(models.build(RnnWriterConfig(vocabulary=9, width=8, embedding=8))) is None


def test_the_json_is_what_the_page_reads(found):
    body = re.search(r"export interface Positions {\n(.*?)\n}", CONTRACT, re.DOTALL)[1]
    whole = json.loads(found.model_dump_json())
    assert list(whole) == re.findall(r"^  (\w+):", body, re.MULTILINE)
    assert list(whole["closeness"]) == ["distances", "sinusoidal", "learned"]
    assert list(whole["waves"][0]) == ["dimension", "wavelength", "values"]


def test_any_loaded_model_can_be_asked():
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), [("a b c d e", "")])
    writer = TextWriter(models.build(CONFIGS["gpt"]), tokenizers)
    assert show_positions(writer) == positions_of(writer.model)
    words = WordVectors(models.build(Word2VecConfig(vocabulary=9, width=4)), tokenizers)
    assert show_positions(words) is None
