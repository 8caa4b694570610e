"""Hidden text: the shares are those of the papers, and nothing is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.corruption import hide_spans, mask_tokens, rebuild

SENTINELS = range(1000, 1100)


def test_masks_have_the_shares_of_the_paper():
    ids = np.random.default_rng(0).integers(5, 500, 200_000)
    shown, asked = mask_tokens(ids, np.arange(5, 500), 4, np.random.default_rng(1))
    assert asked.mean() == pytest.approx(0.15, abs=0.003)
    assert (shown[asked] == 4).mean() == pytest.approx(0.8, abs=0.01)
    same = (shown == ids)[asked].mean()
    assert same == pytest.approx(0.1 + 0.1 / 495, abs=0.01)
    assert (shown[~asked] == ids[~asked]).all()


def test_special_tokens_are_never_asked_for():
    ids = np.tile([1, 2, 7, 8], 1000)
    _, asked = mask_tokens(ids, np.arange(5, 500), 4, np.random.default_rng(1))
    assert not asked[ids < 5].any()


@settings(max_examples=200, deadline=None)
@given(count=st.integers(2, 300), seed=st.integers(0, 1000))
def test_spans_rebuild_the_text(count, seed):
    ids = list(range(count))
    source, target = hide_spans(ids, SENTINELS, np.random.default_rng(seed))
    assert rebuild(source, target, SENTINELS) == ids
    sentinels = [token for token in source if token in SENTINELS]
    assert sentinels == list(SENTINELS[: len(sentinels)])
    assert target[-1] == SENTINELS[len(sentinels)]  # where the last span ends
    assert source[0] not in SENTINELS


def test_spans_have_the_shares_of_the_paper():
    hidden, spans, random = 0, 0, np.random.default_rng(0)
    for _ in range(200):
        source, _ = hide_spans(list(range(200)), SENTINELS, random)
        found = sum(token in SENTINELS for token in source)
        hidden, spans = hidden + 200 - len(source) + found, spans + found
    assert hidden / 40_000 == pytest.approx(0.15, abs=0.001)
    assert hidden / spans == pytest.approx(3.0, abs=0.01)
