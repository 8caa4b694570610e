"""p-values are sacreBLEU's own, and a system is never found to differ from itself."""

import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from dragoman.evaluation.significance import paired_bootstrap

REFERENCES = [f"the {a} {b} ran home in the {c} rain" for a in ("old", "red") for b in ("fox", "owl") for c in "abcdef"]
GOOD = [reference.replace("owl", "bird") if i % 3 else reference for i, reference in enumerate(REFERENCES)]
BAD = [reference.replace("home in", "on") for reference in REFERENCES]


def test_the_p_values_are_those_of_sacrebleu_called_by_hand():
    found = paired_bootstrap(BAD, GOOD, REFERENCES)
    by_hand = PairedTest(
        [("bad", BAD), ("good", GOOD)], {"BLEU": BLEU(), "chrF2": CHRF()}, [REFERENCES], test_type="bs", n_samples=1000
    )
    signatures, scores = by_hand()
    assert [one.metric for one in found] == ["BLEU", "chrF2"]
    for one in found:
        assert one.p == scores[one.metric][1].p_value
        assert (one.first, one.second) == tuple(result.score for result in scores[one.metric])
        assert one.signature == str(signatures[one.metric])
        assert "bs:1000" in one.signature


def test_a_large_difference_is_significant_and_one_sentence_is_not():
    assert all(one.p < 0.05 for one in paired_bootstrap(BAD, GOOD, REFERENCES))
    nearly = [*REFERENCES[:-1], "something else"]
    assert all(one.p > 0.05 for one in paired_bootstrap(nearly, REFERENCES, REFERENCES))


@pytest.mark.parametrize("system", [GOOD, BAD, REFERENCES, [""] * len(REFERENCES)], ids=["good", "bad", "all", "none"])
def test_a_system_does_not_differ_from_itself(system):
    """sacreBLEU would say p = 0.001 here: it counts how often chance makes a difference greater than none."""
    assert [one.p for one in paired_bootstrap(system, system, REFERENCES)] == [1.0, 1.0]


def test_other_words_of_equal_worth_do_not_differ_either():
    ours, theirs = (["the " + word + " fox ran"] * 4 for word in ("xxxxx", "yyyyy"))
    assert [one.p for one in paired_bootstrap(ours, theirs, ["the quick fox ran"] * 4)] == [1.0, 1.0]


def test_one_sentence_tells_nothing():
    assert [one.p for one in paired_bootstrap(GOOD[:1], BAD[:1], REFERENCES[:1])] == [None, None]
