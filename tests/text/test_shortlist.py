"""A shortlist has what a translation needs: words that go together in the pairs it was learned from."""

import numpy as np
import pytest

from dragoman.text.index import write_index
from dragoman.text.shortlist import Shortlist, learn_lexicon, spread

WORDS = 400  # on each side; word x means 1,000 + x, and every sentence has words that mean nothing


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    chance = np.random.default_rng(1)
    sources = [chance.integers(0, WORDS, 6) for _ in range(1500)]
    pairs = [(x.tolist(), [*(1000 + x).tolist(), 1, 2]) for x in sources]
    return learn_lexicon(write_index(tmp_path_factory.mktemp("index"), [pairs], 2000, {}), 2000)


def test_the_likeliest_of_a_word_is_what_it_means(lexicon):
    best = {x: lexicon.y[lexicon.x == x][np.argmax(lexicon.t[lexicon.x == x])] for x in range(WORDS)}
    assert sum(y == 1000 + x for x, y in best.items()) > 0.95 * WORDS
    for x in range(WORDS):
        assert lexicon.t[lexicon.x == x].sum() == pytest.approx(1.0)
    assert lexicon.frequent[:2].tolist() == [1, 2]


def test_it_is_shorter_the_more_is_asked_of_a_word(lexicon):
    rare = lexicon._replace(frequent=np.array([1, 2]))
    lists = [rare.shortlist(least, WORDS, [3], copies=False) for least in (0.5, 0.004, 0.0)]
    several = [one.of([5, 6, 5]) for one in lists]
    assert len(several[0]) < len(several[1]) < len(several[2])
    for found in several:
        assert 3 in found
        assert (np.diff(found) > 0).all()
    assert {1005, 1006} <= set(several[1].tolist())


def test_where_both_sides_have_one_vocabulary_a_word_may_stay_as_it_is():
    nothing = (np.array([1]), np.zeros(10, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert Shortlist(*nothing, copies=True).of([7, 4, 7]).tolist() == [1, 4, 7]
    assert Shortlist(*nothing, copies=False).of([7, 4, 7]).tolist() == [1]


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2503])
def test_every_pair_is_looked_at_once_and_none_is_near_the_one_before(count):
    assert sorted(spread(count)) == list(range(count))
