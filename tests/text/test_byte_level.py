"""Subwords over bytes: nothing is unknown, and every text comes back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import UsageError
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizers, learn, open_tokenizers

LINES = ["the cat sat on the mat", "the dog sat on the log", "die Katze saß auf der Matte"] * 20
TOKENIZER = learn("bytes", LINES, 300, SpecialIds())


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text):
    [ids] = TOKENIZER.encode([text])
    assert TOKENIZER.decode(ids) == text
    assert not set(ids) & {0, 1, 2, 3}


def test_names_of_special_tokens_are_plain_text():
    [ids] = TOKENIZER.encode(["a </s> b <pad>"])
    assert not set(ids) & {0, 1, 2, 3}
    assert TOKENIZER.decode(ids) == "a </s> b <pad>"


def test_frequent_neighbours_are_merged():
    assert len(TOKENIZER.encode(["the cat"])[0]) < len(b"the cat")
    assert 260 < len(TOKENIZER) <= 300


def test_a_saved_one_is_the_same(tmp_path):
    Tokenizers(TOKENIZER, TOKENIZER).save(tmp_path)
    again = open_tokenizers(tmp_path)
    assert again.joint
    assert again.target.encode(LINES) == TOKENIZER.encode(LINES)
    assert again.target.words(again.target.encode(["the cat sat"])[0])[-1] == 2


def test_special_ids_come_first():
    with pytest.raises(UsageError, match=r"special ids 0 … 3"):
        learn("bytes", LINES, 300, SpecialIds(pad=7))
