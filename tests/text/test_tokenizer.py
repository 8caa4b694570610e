"""Every kind of tokenizer, by the same promises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.text.reading import clean
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn, learn_tokenizers, open_tokenizers

TEXTS = [
    f"the {a} {b} saw {n} of them" for a in ("red", "old", "sly") for b in ("fox", "dog", "owl") for n in range(30)
]
KINDS = ["unigram", "bpe", "characters", "words"]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return learn(request.param, TEXTS, 80, SpecialIds())


def test_text_comes_back(tokenizer):
    for text, ids in zip(TEXTS, tokenizer.encode(TEXTS), strict=True):
        assert tokenizer.decode(ids) == text
        assert all(0 <= i < len(tokenizer) for i in ids)


def test_special_ids_are_where_they_were_set_and_never_in_a_text(tokenizer):
    special = tokenizer.special
    ids = {i for text in tokenizer.encode(TEXTS) for i in text}
    assert ids.isdisjoint({special.pad, special.start, special.end, special.unknown})
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<s>", "</s>", "<unk>"]


@pytest.mark.parametrize("kind", ["unigram", "bpe", "bytes", "characters", "words"])
def test_marks_of_hidden_text_have_ids_of_their_own_and_are_never_in_a_text(kind):
    special = SpecialIds(mask=4, spans=(5, 6, 7))
    tokenizer = learn(kind, TEXTS, 300, special)
    assert tokenizer.pieces([4, 5, 6, 7]) == ["<mask>", "<0>", "<1>", "<2>"]
    assert {4, 5, 6, 7}.isdisjoint(i for text in tokenizer.encode(["a <mask> <0> b", *TEXTS]) for i in text)
    assert "mask" not in tokenizer.decode([4])


def test_what_was_never_seen_is_unknown_and_breaks_nothing(tokenizer):
    [ids] = tokenizer.encode(["the 狐 saw"])
    assert tokenizer.special.unknown in ids
    assert isinstance(tokenizer.decode(ids), str)


def test_an_empty_text_has_no_token(tokenizer):
    assert tokenizer.encode([""]) == [[]]
    assert tokenizer.decode([]) == ""


def test_tokens_are_counted_into_words(tokenizer):
    [ids] = tokenizer.encode(["the red fox"])
    words = tokenizer.words(ids)
    assert len(words) == len(ids)
    assert sorted(set(words)) == [0, 1, 2]


def test_a_folder_is_enough_to_open_it(tokenizer, tmp_path):
    from dragoman.text.tokenizer import Tokenizers

    Tokenizers(tokenizer, tokenizer).save(tmp_path)
    opened = open_tokenizers(tmp_path)
    assert opened.joint
    assert opened.source.encode(TEXTS) == tokenizer.encode(TEXTS)
    assert opened.special == tokenizer.special


def test_sides_may_have_vocabularies_and_kinds_of_their_own(tmp_path):
    pairs = [(text, text.upper()) for text in TEXTS]
    config = TokenizerConfig(kind="unigram", target_kind="characters", joint=False, vocabulary=60)
    learn_tokenizers(config, pairs).save(tmp_path)
    opened = open_tokenizers(tmp_path)
    assert not opened.joint
    assert (opened.source.kind, opened.target.kind) == ("subwords", "characters")
    assert opened.target.decode(opened.target.encode(["THE OLD OWL"])[0]) == "THE OLD OWL"


@pytest.mark.parametrize("kind", KINDS)
def test_the_start_token_can_be_another_special_one(kind):
    special = SpecialIds(pad=3, start=3, end=0, unknown=1)
    tokenizer = learn(kind, TEXTS, 80, special)
    assert tokenizer.decode(tokenizer.encode(["the sly owl"])[0]) == "the sly owl"
    assert tokenizer.pieces([0, 1, 3]) == ["</s>", "<unk>", "<pad>"]


def test_numbers_are_split_into_digits():
    [ids] = learn("unigram", TEXTS, 80, SpecialIds()).encode(["saw 29"])
    pieces = learn("unigram", TEXTS, 80, SpecialIds()).pieces(ids)
    assert pieces[-2:] == ["2", "9"]


def test_nothing_to_learn_from_is_said(tmp_path):
    with pytest.raises(DataError, match="no unigram subwords can be learned from these 0 sentences"):
        learn("unigram", [], 100, SpecialIds())
    with pytest.raises(DataError, match="holds no tokenizer that can be read"):
        open_tokenizers(tmp_path)


@given(text=st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_can_be_encoded_and_decoded(text):
    tokenizer = any_text()
    [ids] = tokenizer.encode([clean(text)])
    assert "\n" not in tokenizer.decode(ids)


def any_text(cache=[]):  # noqa: B006
    if not cache:
        cache.append(learn("unigram", TEXTS, 80, SpecialIds()))
    return cache[0]
