"""Token vectors as they are shown: the plane of most variance, and neighbours by two measures."""

import json
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import models
from dragoman.decoding.classify import Classifier
from dragoman.decoding.fill import Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.translate import Translator
from dragoman.decoding.words import WordVectors
from dragoman.models.bag import BagConfig
from dragoman.models.bert import BertConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.word_vectors import Word2VecConfig
from dragoman.seeing.embeddings import NEAREST, SHOWN, embeddings_of, project, show_embeddings
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers

CONTRACT = (Path(__file__).parents[2] / "web" / "src" / "data.ts").read_text(encoding="utf-8")
WORDS = [f"w{number:03}" for number in range(400)]
SOME = WORDS[:20]
MANY = learn_tokenizers(TokenizerConfig(kind="words"), [(" ".join(WORDS), "")])
FEW = learn_tokenizers(TokenizerConfig(kind="words", special=SpecialIds(mask=4)), [(" ".join(SOME), "")])
V = len(FEW.source)


def table(rows, width=6, seed=0):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))


def test_the_texts_tokens_come_first_and_special_ones_never():
    found = embeddings_of(table(len(MANY.source)), MANY.source, "w399 w002 w399 nobody w398")
    assert found.tokens[:4] == ["w399", "w002", "w398", "w000"]
    assert found.in_text == [True] * 3 + [False] * (SHOWN - 3)
    assert len(found.tokens) == len(set(found.tokens)) == SHOWN
    assert found.points.shape == (SHOWN, 2)
    assert not set(found.tokens) & set(MANY.special.pieces().values())
    assert [one.token for one in found.neighbours] == ["w399", "w002", "w398"]


@given(st.integers(0, 1000), st.integers(3, 30), st.integers(2, 9))
@settings(max_examples=25, deadline=None)
def test_the_plane_keeps_as_much_variance_as_any_could(seed, rows, width):
    vectors = table(rows, width, seed).double()
    points, shares = project(vectors)
    centred = vectors - vectors.mean(dim=0)
    variances = torch.linalg.eigvalsh(centred.T @ centred).flip(0)
    torch.testing.assert_close(points.square().sum(dim=0), variances[:2])
    torch.testing.assert_close(torch.tensor(shares).double(), variances[:2] / variances.sum(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(points.mean(dim=0), torch.zeros(2).double(), atol=1e-9, rtol=0)
    assert abs(points[:, 0] @ points[:, 1]) < 1e-8


def test_the_plane_is_the_same_whichever_way_the_decomposition_turned():
    vectors = table(12, 5).double()
    points, _ = project(vectors)
    assert torch.equal(points, project(vectors.clone())[0])
    turned, _ = project(-vectors)  # the directions are the same, so the points are mirrored
    torch.testing.assert_close(turned, -points)


@pytest.mark.parametrize("vectors", [torch.ones(5, 3), torch.arange(6.0)[:, None], torch.eye(2)])
def test_fewer_directions_than_two_are_no_problem(vectors):
    points, shares = project(vectors.double())
    assert points.shape == (len(vectors), 2)
    assert points.isfinite().all()
    assert 0 <= sum(shares) <= 1 + 1e-12


def test_neighbours_by_cosine_and_by_dot_product():
    vectors = table(V)
    vectors[10] = 0.01 * vectors[8] + 1e-5  # short, in the same direction
    vectors[11] = 5 * table(1, seed=3)[0]
    found = embeddings_of(vectors, FEW.source, FEW.source.pieces([8])[0])
    [one] = found.neighbours
    assert one.cosine[0].token == FEW.source.pieces([10])[0]
    assert one.cosine[0].value == pytest.approx(1, abs=1e-3)
    assert FEW.source.pieces([10])[0] not in [near.token for near in one.dot]
    silent = set(FEW.special.pieces())
    others = [i for i in range(V) if i not in silent and i != 8]
    by_dot = sorted(others, key=lambda i: -float(vectors[i] @ vectors[8]))[:NEAREST]
    assert [near.token for near in one.dot] == FEW.source.pieces(by_dot)
    assert [near.value for near in one.dot] == pytest.approx([float(vectors[i] @ vectors[8]) for i in by_dot], abs=1e-4)
    assert one.token not in [near.token for near in one.cosine + one.dot]


CONFIGS = {
    "transformer": TransformerConfig(source_vocabulary=V, target_vocabulary=V, width=8, heads=2, layers=1, hidden=8),
    "rnn": RnnConfig(source_vocabulary=V, target_vocabulary=V, width=8, embedding=6),
    "gpt": GptConfig(vocabulary=V, width=8, heads=2, layers=1, hidden=8),
    "bert": BertConfig(vocabulary=V, width=8, heads=2, layers=1, hidden=8),
    "bag": BagConfig(vocabulary=V, width=8, classes=("a", "b")),
    "word2vec": Word2VecConfig(vocabulary=V, width=8),
}
KINDS = {"translate": Translator, "write": TextWriter, "fill": Filler, "classify": Classifier, "embed": WordVectors}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_model_that_reads_text_has_them(config):
    kind = KINDS[models.task_and_family_of(config)[0]]
    model = models.build(config)
    learned = kind(model, FEW, {"longest": 9}) if kind is Translator else kind(model, FEW)
    for text in ("w001 w003", "w001 [MASK] w003"):
        found = show_embeddings(learned, text)
        assert found.tokens[:2] == ["w001", "w003"]
        assert [len(one.cosine) for one in found.neighbours] == [NEAREST] * 2
    assert show_embeddings(learned, "").neighbours == []


def test_a_vocabulary_of_nothing_has_none():
    empty = learn_tokenizers(TokenizerConfig(kind="words"), [("one", "one")])
    assert embeddings_of(table(5), empty.source, "one") is None


def test_the_json_is_what_the_page_reads():
    body = re.search(r"export interface Embeddings {\n(.*?)\n}", CONTRACT, re.DOTALL)[1]
    whole = json.loads(embeddings_of(table(V), FEW.source, "w001").model_dump_json())
    assert list(whole) == re.findall(r"^  (\w+):", body, re.MULTILINE)
    assert list(whole["neighbours"][0]) == ["token", "cosine", "dot"]
    assert list(whole["neighbours"][0]["dot"][0]) == ["token", "value"]
