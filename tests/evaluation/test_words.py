"""Tests of words: read as they are handed around, scored as scipy and gensim score them."""

import gzip
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.cli import main
from dragoman.decoding.words import WordVectors
from dragoman.errors import DataError, UsageError
from dragoman.evaluation.words import ranks, score_analogies, score_judgements, spearman
from dragoman.models.word_vectors import Word2Vec, Word2VecConfig
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizers, learn
from dragoman.text.vectors import read_vectors, to_binary, to_json, to_text
from dragoman.text.word_tests import Analogy, Judgement, read_word_test
from dragoman.text.words import WordRules

WORDS = [f"{a}{b}" for a in ("bo", "ki", "lu", "na", "tee", "zü") for b in ("ra", "mo", "pi", "shen", "t'ou")]


@pytest.fixture(scope="module")
def saved():
    """A model with random vectors for thirty words."""
    torch.manual_seed(3)
    one = learn("words", WORDS, 0, SpecialIds(), words=WordRules(lowercase=True, split_punctuation=True))
    config = Word2VecConfig(vocabulary=len(one), width=8)
    model = Word2Vec(config)
    torch.nn.init.normal_(model.words.weight)
    return model, Tokenizers(one, one)


@pytest.fixture(scope="module")
def vectors(saved):
    return WordVectors(*saved)


@pytest.fixture(scope="module")
def folder(saved, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "words"
    model, tokenizers = saved
    save_model(path, model.config, weights_of(model), tokenizers, {})
    return path


@pytest.fixture(scope="module")
def gensims(folder, tmp_path_factory):
    """The same vectors as gensim reads them from our binary file."""
    models = pytest.importorskip("gensim.models")
    path = tmp_path_factory.mktemp("files") / "words.bin"
    assert main(["embed", str(folder), "--output", str(path)]) == 0
    return models.KeyedVectors.load_word2vec_format(str(path), binary=True)


# ── scores ────────────────────────────────────────────────────────────────────────────────


def test_ranks_share_their_mean_where_values_are_equal():
    assert ranks(np.array([10.0, 5.0, 10.0, 1.0])).tolist() == [3.5, 2.0, 3.5, 1.0]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=40))
@settings(max_examples=40, deadline=None)
def test_spearman_is_scipys_with_ties(pairs):
    stats = pytest.importorskip("scipy.stats")
    a, b = (np.array(side, float) for side in zip(*pairs, strict=True))
    if len(set(a)) > 1 and len(set(b)) > 1:  # scipy has none where a side does not vary
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b)[0], abs=1e-12)


def judgements():
    random = np.random.default_rng(0)
    pairs = random.choice(WORDS, (40, 2))
    return [
        Judgement(a.upper(), b, float(score)) for (a, b), score in zip(pairs, random.integers(0, 11, 40), strict=True)
    ]


def test_pairs_are_scored_as_gensim_scores_them(vectors, gensims, tmp_path):
    asked = [*judgements(), Judgement("unheard", WORDS[0], 1.0)]
    found = score_judgements(vectors, asked, "test")
    assert (found.pairs, found.left_out) == (40, 1)
    assert found.interval[0] < found.spearman < found.interval[1]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in asked))
    theirs = gensims.evaluate_word_pairs(str(path))
    assert found.spearman == pytest.approx(theirs[1][0], abs=1e-6)


def test_analogies_are_scored_as_gensim_scores_them(vectors, gensims, tmp_path):
    random = np.random.default_rng(1)
    asked = []
    for number in range(120):
        a, b, c = random.choice(WORDS, 3, replace=False)
        answer = vectors.analogy(a, b, c, 1)[0].word if number % 3 else random.choice(WORDS)
        asked.append(Analogy("odd" if number % 2 else "even", (a, b, c, answer)))
    asked.append(Analogy("odd", ("unheard", WORDS[0], WORDS[1], WORDS[2])))
    *sections, whole = score_analogies(vectors, asked, "test")
    assert [(one.name, one.questions, one.left_out) for one in sections] == [("even", 60, 0), ("odd", 60, 1)]
    assert whole.right == sum(one.right for one in sections) >= 80
    assert whole.interval[0] < whole.accuracy < whole.interval[1]
    path = tmp_path / "questions.txt"
    lines = [
        f": {name}\n" + "".join(f"{' '.join(q.words)}\n" for q in asked if q.section == name)
        for name in ("even", "odd")
    ]
    path.write_text("".join(lines))
    accuracy, theirs = gensims.evaluate_word_analogies(str(path))
    assert whole.accuracy == pytest.approx(accuracy)
    assert [one.right for one in sections] == [len(section["correct"]) for section in theirs[:-1]]


# ── files ─────────────────────────────────────────────────────────────────────────────────


def test_gensim_reads_both_formats(folder, vectors, gensims, tmp_path):
    from gensim.models import KeyedVectors

    path = tmp_path / "words.txt"
    assert main(["embed", str(folder), "--output", str(path)]) == 0
    text = KeyedVectors.load_word2vec_format(str(path), binary=False)
    for found, tolerance in ((gensims, 0), (text, 1e-5)):
        assert found.index_to_key == vectors.words
        np.testing.assert_allclose(found.vectors, vectors.vectors, rtol=tolerance)


def test_vectors_come_back_from_every_format(vectors, tmp_path):
    words, rows = vectors.words, vectors.vectors
    text = to_text(words, rows)
    for name, content in {
        "a.txt": text,
        "a.bin": to_binary(words, rows),
        "glove.txt": text.partition(b"\n")[2],
    }.items():
        (tmp_path / name).write_bytes(content)
        found = read_vectors(tmp_path / name)
        assert found.words == words
        np.testing.assert_allclose(found.vectors, rows, rtol=1e-5)
    with gzip.open(tmp_path / "a.txt.gz", "wb") as file:
        file.write(text)
    assert read_vectors(tmp_path / "a.txt.gz").words == words
    told = json.loads(to_json([*words, words[0]], np.concatenate([rows, rows[:1]])))
    assert [row["text"] for row in told] == [*words, words[0]]
    np.testing.assert_allclose([row["vector"] for row in told[:-1]], rows, rtol=1e-5)


DAMAGED = {
    "empty": b"",
    "one row short": b"2 3\nword 1 2 3\n",
    "one number short": b"2 3\nword 1 2 3\nother 1 2\n",
    "no numbers": b"just some text\nof lines\n",
    "cut off": b"5 9\nab \x00\x00",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_one_sentence(content, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.txt holds no vectors that can be read"):
        read_vectors(path)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("# a remark\nold\tnew\t1.58\n", Judgement("old", "new", 1.58)),
        ("Word 1,Word 2,Human (mean)\ntiger,cat,7.35\n", Judgement("tiger", "cat", 7.35)),
        ("word1\tword2\tPOS\tSimLex999\told\nold\tnew\tA\t1.58\t2.72\n", Judgement("old", "new", 1.58)),
        ("old new 1.58\n", Judgement("old", "new", 1.58)),
        (": capitals\nAthens Greece Oslo Norway\n", Analogy("capitals", ("Athens", "Greece", "Oslo", "Norway"))),
        ("Athens Greece Oslo Norway\n", Analogy("", ("Athens", "Greece", "Oslo", "Norway"))),
    ],
    ids=["wordsim", "commas", "simlex", "spaces", "sections", "no section"],
)
def test_tests_of_words_are_recognised(text, first, tmp_path):
    (tmp_path / "test").write_text(text)
    assert read_word_test(tmp_path / "test") == [first]


def test_the_command_tells_both_kinds_and_mistakes_are_one_sentence(folder, vectors, tmp_path, capsys):
    pairs, questions, bad, empty, foreign = (
        tmp_path / name for name in ("pairs", "questions.gz", "bad", "none", "far")
    )
    pairs.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in judgements()))
    answer = vectors.analogy(*WORDS[:3], 1)[0].word
    with gzip.open(questions, "wt", encoding="utf-8") as file:
        file.write(f": one\n{' '.join(WORDS[:3])} {answer}\n: two\nqq ww ee rr\n")
    assert main(["score", str(folder), str(pairs), str(questions), "--json", "--threads", "1"]) == 0
    judged, asked = json.loads(capsys.readouterr().out)["tests"]
    assert judged["pairs"] == 40
    assert (asked["all"]["right"], asked["all"]["left_out"]) == (1, 1)
    assert main(["score", str(folder), str(pairs), str(questions), "--threads", "1"]) == 0
    assert "Spearman of cosines" in capsys.readouterr().out
    bad.write_text("a\tb\t1\na\tb\n")
    empty.write_text("# nothing\n")
    foreign.write_text("qq\tww\t1\n")
    for file, said in (
        (bad, "line 2"),
        (empty, "asks nothing"),
        (foreign, "knows both words of 0"),
        (tmp_path / "no", ""),
    ):
        assert main(["score", str(folder), str(file)]) == 3
        assert said in capsys.readouterr().err
    assert main(["score", str(folder)]) == 2


def test_headings_of_four_columns_are_no_analogy(tmp_path):
    path = tmp_path / "simlex.txt"
    path.write_text("word1\tword2\tPOS\tscore\nold\tnew\tA\t1.58\nbad\tawful\tA\t8.42\n")
    assert read_word_test(path) == [Judgement("old", "new", 1.58), Judgement("bad", "awful", 8.42)]
    path.write_text("athens greece oslo norway\n")
    assert [found.words for found in read_word_test(path)] == [("athens", "greece", "oslo", "norway")]


def test_one_bare_string_and_none_of_the_nearest_are_refused(vectors):
    for asked in (vectors.embed, lambda texts: vectors.near(texts, 2)):
        with pytest.raises(UsageError, match="must be a list of strings and is one string"):
            asked(WORDS[0])
    for count in (0, -1):
        with pytest.raises(UsageError, match="ask for 1 or more"):
            vectors.near([WORDS[0]], count)
