"""Scores are sacreBLEU's own."""

import pytest

from dragoman.evaluation.scores import BOUNDS, bleu, bucket_name, by_length, exact_match, score

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
