"""What must hold for every kind of attention, whatever its weights."""

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.modules.attention import (
    Attention,
    additive_attention,
    attention_weights,
    bilinear_attention,
    dot_attention,
    low_rank_attention,
    multi_head_attention,
    scaled_attention,
    watching,
)
from dragoman.modules.masks import hide_future, hide_padding

WIDTH = 8


def cosine(queries, keys):
    """A kind nobody shipped: what a newcomer writes to add one."""
    return torch.nn.functional.normalize(queries, dim=-1) @ torch.nn.functional.normalize(keys, dim=-1).mT


KINDS = {
    "cosine": lambda: Attention(score=cosine),
    "dot": dot_attention,
    "scaled": scaled_attention,
    "bilinear": lambda: bilinear_attention(WIDTH, WIDTH),
    "low-rank": lambda: low_rank_attention(WIDTH, WIDTH, 3),
    "additive": lambda: additive_attention(WIDTH, WIDTH, WIDTH),
    "multi-head": lambda: multi_head_attention(WIDTH, heads=2),
}
every_kind = pytest.mark.parametrize("attention", [make() for make in KINDS.values()], ids=KINDS)


@given(queries=st.integers(1, 5), keys=st.integers(1, 7), scale=st.floats(1e-3, 1e3), seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_weights_are_a_distribution_over_the_visible_keys(queries, keys, scale, seed):
    torch.manual_seed(seed)
    scores = scale * torch.randn(2, 3, queries, keys)
    mask = torch.rand(2, 1, queries, keys) < 0.6
    weights = attention_weights(scores, mask)
    assert (weights >= 0).all()
    assert (weights.masked_select(~mask.expand_as(weights)) == 0).all()
    sees_something = mask.any(-1).expand(weights.shape[:-1])
    torch.testing.assert_close(weights.sum(-1), sees_something.float())  # 1, or 0 where all is hidden


@given(shift=st.floats(-50, 50))
@settings(max_examples=20, deadline=None)
def test_a_constant_added_to_all_scores_changes_no_weight(shift):
    scores = torch.randn(1, 1, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(attention_weights(scores + shift, None), attention_weights(scores, None))


@every_kind
def test_order_of_the_memory_does_not_matter(attention):
    queries, states = torch.randn(2, 3, WIDTH), torch.randn(2, 5, WIDTH)
    shuffled = states[:, torch.randperm(5)]
    torch.testing.assert_close(
        attention(queries, attention.remember(states)), attention(queries, attention.remember(shuffled))
    )


@every_kind
def test_the_future_leaks_nothing(attention):
    x = torch.randn(1, 6, WIDTH, requires_grad=True)
    y = attention(x, attention.remember(x), hide_future(6, 6))
    (gradient,) = torch.autograd.grad(y[0, 2].sum(), x)
    assert gradient[0, 3:].abs().max() == 0  # exactly zero, not nearly
    assert gradient[0, 2].abs().max() > 0  # a position sees itself


@every_kind
def test_padding_changes_nothing(attention):
    queries, states = torch.randn(1, 3, WIDTH), torch.randn(1, 4, WIDTH)
    padded = torch.cat([states, 1e6 * torch.ones(1, 2, WIDTH)], dim=1)
    mask = hide_padding(torch.tensor([[True] * 4 + [False] * 2]))
    torch.testing.assert_close(
        attention(queries, attention.remember(padded), mask), attention(queries, attention.remember(states))
    )


@every_kind
def test_watching_does_not_change_what_is_computed(attention):
    x = torch.randn(2, 5, WIDTH)
    unwatched = attention(x, attention.remember(x), hide_future(5, 5))
    with watching(attention) as seen:
        watched = attention(x, attention.remember(x), hide_future(5, 5))
    torch.testing.assert_close(watched, unwatched)  # the fused path equals the written-out one
    looked = seen[""][0]
    assert looked.weights.shape == looked.scores.shape == (2, attention.heads, 5, 5)
    torch.testing.assert_close(attention_weights(looked.scores, looked.mask), looked.weights)
    assert attention.watcher is None


@every_kind
def test_a_memory_extended_equals_one_remembered_at_once(attention):
    states, queries = torch.randn(2, 5, WIDTH), torch.randn(2, 2, WIDTH)
    grown = attention.remember(states[:, :3]).extend(attention.remember(states[:, 3:]))
    torch.testing.assert_close(attention(queries, grown), attention(queries, attention.remember(states)))


def test_one_query_may_see_nothing():
    attention = multi_head_attention(WIDTH, heads=2)
    x = torch.randn(1, 2, WIDTH, requires_grad=True)
    blind = torch.tensor([[[[True, True], [False, False]]]])
    for context in (nullcontext(), watching(attention)):
        with context:
            y = attention(x, attention.remember(x), blind)
            (g,) = torch.autograd.grad(y.sum(), x)
        assert y.isfinite().all()
        assert g.isfinite().all()
        torch.testing.assert_close(y[0, 1], attention.to_output.bias)  # a context of zeros


def test_a_query_of_zeros_reads_the_mean():
    attention, states = dot_attention(), torch.randn(1, 5, WIDTH)
    read = attention(torch.zeros(1, 1, WIDTH), attention.remember(states))
    torch.testing.assert_close(read[0, 0], states[0].mean(dim=0))


def test_one_head_and_eight_have_the_same_parameters():
    count = lambda heads: sum(p.numel() for p in multi_head_attention(64, heads).parameters())  # noqa: E731
    assert count(1) == count(8)


def test_heads_that_do_not_divide_the_width_are_refused_by_name():
    with pytest.raises(ValueError, match="width 10 cannot be split into 4 equal heads"):
        multi_head_attention(10, heads=4)


@given(queries=st.integers(1, 6), past=st.integers(0, 6))
@settings(max_examples=30, deadline=None)
def test_a_mask_with_a_past_is_the_end_of_the_whole_mask(queries, past):
    whole = hide_future(past + queries, past + queries)
    assert torch.equal(hide_future(queries, past + queries), whole[:, :, past:])
