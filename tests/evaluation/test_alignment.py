"""Alignment error: its formula by hand, and what is no alignment."""

import pytest

from dragoman.errors import UsageError
from dragoman.evaluation.alignment import Gold, alignment_error, read_pharaoh


def test_the_rate_is_that_of_och_and_ney():
    gold = Gold(sure=[(0, 0), (1, 1)], possible=[(2, 1)])
    assert alignment_error([(0, 0), (1, 1)], gold) == 0.0
    assert alignment_error([(0, 0), (1, 1), (2, 1)], gold) == 0.0  # a possible link costs nothing
    assert alignment_error([(5, 5), (6, 6)], gold) == 1.0
    assert alignment_error([(0, 0), (2, 1)], gold) == pytest.approx(1 - (1 + 2) / (2 + 2))


def test_pharaoh_is_read_with_sure_and_possible_links():
    assert read_pharaoh(" 0-0  2-1\t1p1 0p0 ", 3, 2) == Gold([(0, 0), (2, 1)], [(1, 1)])


@pytest.mark.parametrize(
    ("text", "named"),
    [("0-0 1:1", "'1:1'"), ("0-0 3-0", "3 source and 2 target"), ("0-2", "leads out"), ("", "no sure link"),
     ("0p0", "no sure link"), ("-1-0", "'-1-0'")],
)  # fmt: skip
def test_what_is_no_link_is_named(text, named):
    with pytest.raises(UsageError, match=named):
        read_pharaoh(text, 3, 2)
