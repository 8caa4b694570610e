"""Scores are sacreBLEU's own."""

import pytest

from dragoman.evaluation.scores import (
    BOUNDS,
    bleu,
    bucket_name,
    by_length,
    exact_match,
    length_bounds,
    lowercased_bleu,
    score,
)

REFERENCES = [f"the {a} {b} ran home in the rain" for a in ("old", "red", "sly") for b in ("fox", "dog", "owl", "cat")]


def test_a_perfect_translation_has_a_perfect_score():
    found = {one.name: one.value for one in score(REFERENCES, REFERENCES, samples=20)}
    assert found["BLEU"] == pytest.approx(100)
    assert found["chrF2"] == pytest.approx(100)
    assert found["TER"] == pytest.approx(0)
    assert exact_match(REFERENCES, REFERENCES) == 100


def test_an_interval_needs_more_than_one_sentence():
    assert score(["a"], ["a"])[0].margin is None
    worse = [reference.replace("dog", "wolf") for reference in REFERENCES]
    assert score(worse, REFERENCES, samples=50)[0].margin > 0


def test_outputs_that_hardly_match_have_an_interval_too():
    found = {one.name: one for one in score([*["zz"] * 11, "the"], REFERENCES)}
    assert 0 < found["chrF2"].value < 5
    assert found["chrF2"].margin > 0


def test_buckets_hold_every_sentence_once_by_the_sources_length():
    sources = [" ".join(["w"] * n) for n in (1, 10, 11, 20, 35, 41, 90)]
    found = by_length(sources, REFERENCES[:7], REFERENCES[:7])
    assert [(bucket.words, bucket.sentences) for bucket in found] == [
        ("1–10", 2), ("11–20", 2), ("31–40", 1), ("over 40", 2),
    ]  # fmt: skip
    assert all(bucket.bleu == pytest.approx(100) for bucket in found)


def test_bucket_names_meet():
    assert [bucket_name(place) for place in range(len(BOUNDS) + 1)] == ["1–10", "11–20", "21–30", "31–40", "over 40"]


def test_a_wrong_word_costs():
    assert bleu(["the red fox ran home in the sun"], ["the red fox ran home in the rain"]) < 90


def lines_of(*lengths):
    return [" ".join(["w"] * length) for length in lengths]


def test_the_usual_bounds_serve_where_every_bucket_holds_enough():
    assert length_bounds(lines_of(*(length for length in (5, 15, 25, 35, 45) for _ in range(30)))) == BOUNDS


def test_a_test_set_of_short_sentences_is_cut_into_quarters():
    sources = lines_of(*range(1, 17))
    bounds = length_bounds(sources)
    assert bounds == (4, 8, 12)
    found = by_length(sources, sources, sources, bounds)
    assert [(bucket.words, bucket.sentences) for bucket in found] == [
        ("1–4", 4), ("5–8", 4), ("9–12", 4), ("over 12", 4),
    ]  # fmt: skip


@pytest.mark.parametrize("lengths", [(3,), (3, 3, 3, 3, 3), (1, 2), (0, 0, 0, 9), (1, 1, 1, 1, 1, 1, 1, 7)], ids=str)
def test_no_bucket_is_ever_empty(lengths):
    sources = lines_of(*lengths)
    bounds = length_bounds(sources)
    found = by_length(sources, sources, sources, bounds)
    assert len(found) == len(bounds) + 1
    assert sum(bucket.sentences for bucket in found) == len(lengths)
    assert bounds or found[0].words == "all"


def test_lower_cased_bleu_does_not_see_capitals():
    shouted = [reference.upper() for reference in REFERENCES]
    assert bleu(shouted, REFERENCES) < 1
    found = lowercased_bleu(shouted, REFERENCES, samples=20)
    assert found.value == pytest.approx(100)
    assert "case:lc" in found.signature
    assert "tok:13a" in found.signature
