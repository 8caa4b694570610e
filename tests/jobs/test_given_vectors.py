"""Any text model may begin with vectors of words that were learned elsewhere."""

import random
from collections import Counter

import numpy as np
import pytest
import torch

from dragoman import models
from dragoman.cli import main
from dragoman.errors import DataError, UsageError
from dragoman.jobs.given_vectors import fit_width, found_in, open_vectors, put_vectors
from dragoman.jobs.request import Request
from dragoman.jobs.start import Planned, start
from dragoman.models import FAMILIES
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.runs.model import save_model
from dragoman.runs.record import read_toml
from dragoman.runs.weights import read_tensors, weights_of
from dragoman.text.boundaries import whole_words
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizers, learn
from dragoman.text.vectors import NamedVectors, read_vectors, to_binary, to_text

WORDS = ("red", "old", "sly", "fox", "dog", "owl", "saw", "them", "the")
TEXTS = [f"the {a} {b} saw {n} of them" for a in WORDS[:3] for b in WORDS[3:6] for n in range(30)]
WIDTH = 24
WORDLESS = {"word2vec", "glove"}  # they are learned, not begun with


@pytest.fixture(scope="module")
def vectors():
    return NamedVectors(list(WORDS), np.random.default_rng(0).normal(3, 5, (len(WORDS), WIDTH)).astype(np.float32))


@pytest.fixture(scope="module")
def files(vectors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "v.txt").write_bytes(to_text(*vectors))
    (folder / "v.bin").write_bytes(to_binary(*vectors))
    return folder


@pytest.mark.parametrize("kind", ["unigram", "bpe", "bytes", "words"])
def test_tokens_that_are_words_are_found_whatever_marks_them(kind):
    tokenizer = learn(kind, TEXTS, 300 if kind == "bytes" else 60, SpecialIds())
    found = set(whole_words(tokenizer).values())
    words = TEXTS[0].split()
    places = Counter(tokenizer.words(tokenizer.encode([TEXTS[0]])[0]))
    single = {word for place, word in enumerate(words) if places[place] == 1}  # which words these are, learning decides
    assert len(single) > 1
    assert single <= found
    assert not any(piece in found for piece in ("<pad>", "</s>", "<unk>"))
    rows = {word: row for row, word in enumerate(WORDS)}
    for i, row in found_in(rows, tokenizer).items():
        assert tokenizer.decode([i]).strip() == WORDS[row]


def test_characters_are_no_words():
    assert found_in({"a": 0, "the": 1}, learn("characters", TEXTS, 0, SpecialIds())) == {}


def test_words_are_found_as_they_are_or_written_small():
    tokenizer = learn("words", ["The the fox Fox"], 0, SpecialIds())
    found = found_in({"the": 0, "The": 1, "fox": 2}, tokenizer)
    assert {tokenizer.pieces([i])[0]: row for i, row in found.items()} == {"the": 0, "The": 1, "fox": 2, "Fox": 2}


def families():
    """Those that read tokens."""
    return [
        (task, name)
        for task, found in FAMILIES.items()
        for name, family in found.items()
        if name not in WORDLESS and {"vocabulary", "source_vocabulary"} & family.config.model_fields.keys()
    ]


def test_a_bag_as_wide_as_the_vectors_gets_no_layer_that_nobody_asked_for():
    sized = fit_width(Request(corpora=["x"], task="classify", family="bag"), 100).asked("model")
    assert "hidden" not in sized
    assert 100 % sized["heads"] == 0


@pytest.mark.parametrize(("task", "family"), families())
def test_every_text_model_takes_their_width_and_begins_with_them(task, family, vectors):
    sized = fit_width(Request(corpora=["x"], task=task, family=family), WIDTH).asked("model")
    one = learn("words", TEXTS, 0, SpecialIds(mask=4, spans=(5, 6)))
    known = FAMILIES[task][family].config.model_fields
    fixed = {name: len(one) for name in ("vocabulary", "source_vocabulary", "target_vocabulary") if name in known}
    fixed |= {"classes": ("a", "b")} if "classes" in known else {}
    fixed |= {"width": 16} if "embedding" in known else {}  # of the states, which is no concern of the vectors
    torch.manual_seed(1)
    model = models.build(FAMILIES[task][family].config.read({**sized, **fixed}, section="model"))
    tables = [part.table.weight for part in model.modules() if isinstance(part, TokenEmbedding)]
    before = [table.detach().clone() for table in tables]
    told = put_vectors(model, Tokenizers(one, one), vectors, "v.txt")
    assert told.startswith(f"{len(WORDS)} of {len(one)} tokens")
    for table, old in zip(tables, before, strict=True):
        ids = [one.ids[word] for word in WORDS]
        given = torch.from_numpy(vectors.vectors)
        torch.testing.assert_close(table[ids].detach(), given * (old.std() / given.std()))
        assert table[ids].std().item() == pytest.approx(old.std().item(), rel=1e-5)
        others = [i for i in range(len(one)) if i not in ids]
        assert torch.equal(table[others].detach(), old[others])


def test_each_side_of_a_translator_has_its_own_words(vectors):
    source, target = learn("words", ["fox saw"], 0, SpecialIds()), learn("words", ["renard dog"], 0, SpecialIds())
    settings = {"source_vocabulary": len(source), "target_vocabulary": len(target), "width": WIDTH, "heads": 2}
    model = models.build(
        FAMILIES["translate"]["transformer"].config.read({**settings, "tied": "target"}, section="model")
    )
    told = put_vectors(model, Tokenizers(source, target), vectors, "v.bin")
    assert told == "2 of 6 tokens of the source and 1 of 6 tokens of the target begin with a vector of v.bin"
    row = model.source_embedding.table.weight[source.ids["fox"]].detach()
    assert torch.cosine_similarity(row, torch.from_numpy(vectors.vectors[WORDS.index("fox")]), dim=0) > 0.9999


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "labelled.tsv"
    rng = random.Random(0)
    path.write_text("".join(f"{rng.choice('ab')}\t{rng.choice(TEXTS)}\n" for _ in range(200)))
    return path


def asked(corpus, files, out, **changes):
    settings = {
        "tokenizer": {"kind": "words"},
        "training": {"steps": 4, "save_every": 2, "tokens_per_step": 256, "validate_every": 2},
    }
    made = {"task": "classify", "family": "bag", "embeddings": str(files / "v.bin"), "settings": settings, **changes}
    return Request(corpora=[str(corpus)], out=str(out), **made)


def test_a_run_begins_with_them_says_so_and_goes_on_without_the_file(corpus, files, tmp_path):
    out, copy = tmp_path / "run", tmp_path / "v.bin"
    copy.write_bytes((files / "v.bin").read_bytes())
    request = asked(corpus, tmp_path, out)
    events = start(request, threads=1)
    planned = next(event for event in events if isinstance(event, Planned))
    assert dict(planned.lines)["vectors"] == f"9 of 44 tokens begin with a vector of {copy}"
    next(events)
    events.close()
    saved = read_tensors(out / "checkpoints" / "step-00000000" / "weights.safetensors")["embedding.table.weight"]
    assert saved.shape[1] == WIDTH
    recorded = read_toml(out / "run.toml")
    assert recorded["asked"]["embeddings"] == str(copy)
    assert "9 of 44" in recorded["plan"]["vectors"]
    copy.unlink()
    assert list(start(request, threads=1))[-1].step == 4
    with pytest.raises(UsageError, match="embeddings was"):
        list(start(asked(corpus, files, out), threads=1))


def test_a_run_of_ours_gives_vectors_too(tmp_path):
    one = learn("words", TEXTS, 0, SpecialIds())
    model = models.build(FAMILIES["embed"]["word2vec"].config(vocabulary=len(one), width=5))
    save_model(tmp_path / "model", model.config, weights_of(model), Tokenizers(one, one), {})
    found = open_vectors(tmp_path)
    assert found.words == one.symbols[4:]
    np.testing.assert_array_equal(found.vectors, model.words.weight.detach().numpy()[4:])


def test_a_count_beyond_the_file_is_refused_before_memory_is_asked_for(tmp_path):
    (tmp_path / "v.bin").write_bytes(b"999999999999 300\nhund " + b"\0" * 100)
    with pytest.raises(DataError, match="tells of 999,999,999,999 words of 300 numbers, which do not fit"):
        read_vectors(tmp_path / "v.bin")


def test_mistakes_are_one_sentence(corpus, files, vectors, tmp_path, capsys):
    train = [
        "train",
        str(corpus),
        "--task",
        "classify",
        "--family",
        "bag",
        "--out",
        str(tmp_path / "x"),
        "--threads",
        "1",
    ]
    given = ["--embeddings", str(files / "v.txt")]
    for words, code, said in [
        ([*given, "--set", "model.width=32"], 2, "have 24 numbers and those of this model 32; leave out model.width"),
        ([*given, "--preset", "tiny"], 2, "have 24 numbers"),
        ([*given, "--set", "tokenizer.kind=characters"], 3, "try --set tokenizer.kind=words"),
        (["--embeddings", str(tmp_path / "none.txt")], 3, "does not exist"),
        (["--embeddings", str(corpus)], 3, "holds no vectors that can be read"),
        ([*given, "--from", str(tmp_path)], 2, "leave out --embeddings"),
    ]:
        assert main([*train, *words]) == code
        assert said in capsys.readouterr().err
    one = learn("words", TEXTS, 0, SpecialIds())
    model = models.build(FAMILIES["embed"]["word2vec"].config(vocabulary=len(one), width=WIDTH))
    with pytest.raises(UsageError, match="has no table of token vectors"):
        put_vectors(model, Tokenizers(one, one), vectors, "v.txt")
    with pytest.raises(DataError, match="does not exist"):
        open_vectors(tmp_path / "none")
