"""Where a word ends, and which words get an id."""

import pytest

from dragoman.errors import UsageError
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers, learn, open_tokenizers
from dragoman.text.words import WordRules, count

APART = WordRules(lowercase=True, split_punctuation=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Oh, don't!", ["oh", ",", "don't", "!"]),
        ("well-known (e.g. O’Neill)", ["well-known", "(", "e", ".", "g", ".", "o’neill", ")"]),
        ("'quoted' -- dashes", ["'", "quoted", "'", "-", "-", "dashes"]),
        ("50% of 3", ["50", "%", "of", "3"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),  # vowel signs are marks, and belong to the word
        ("Ärger über日本", ["ärger", "über日本"]),
        ("snake_case 😀", ["snake_case", "😀"]),
        ("", []),
    ],
)
def test_words_stand_apart_from_punctuation(text, words):
    assert APART.split(text) == words


def test_rare_words_are_unknown_and_the_most_frequent_come_first():
    rules = WordRules(least=2, most=3)
    tokenizer = learn("words", ["b a a c c c d d", "e"], 0, SpecialIds(), words=rules)
    assert tokenizer.pieces(range(4, len(tokenizer))) == ["c", "a", "d"]
    assert tokenizer.encode(["a b c"]) == [[5, 3, 4]]


def test_rules_are_saved_with_the_words(tmp_path):
    one = learn("words", ["Don't stop, please."], 0, SpecialIds(), words=APART)
    Tokenizers(one, one).save(tmp_path)
    again = open_tokenizers(tmp_path).target
    assert again.encode(["DON'T STOP!"]) == one.encode(["don't stop !"])
    assert again.rules == APART


def test_counting_holds_no_more_words_than_it_may():
    texts = [["often"] * 3 + [f"once{number}"] for number in range(500)]
    counts = count(texts, held=50)
    assert len(counts) <= 50
    assert counts["often"] == 1500
    assert count(texts)["once7"] == 1


def test_rules_of_words_are_refused_for_other_tokens():
    with pytest.raises(UsageError, match="set kind = words"):
        TokenizerConfig.read({"kind": "bpe", "lowercase": True}, section="tokenizer")
