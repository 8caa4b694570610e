"""The native attention is the written-out one, forwards and backwards, in every build that runs here."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import native
from dragoman.modules.attention import attention_weights
from dragoman.modules.short_attention import LONGEST, attend, can_attend
from dragoman.training.entropy import cross_entropy


@pytest.fixture(params=native.LEVELS, scope="module")
def build(request):
    found, plain = native.open_build(request.param), native.open_build("plain")
    if found is None or plain is None or native.LEVELS.index(request.param) > plain.processor_level():
        pytest.skip(f"this processor has no {request.param}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: found)
        yield found


def written_out(queries, keys, values, mask, bias, scale):
    scores = queries @ keys.mT * (1 / math.sqrt(queries.shape[-1]) if scale is None else scale)
    return attention_weights(scores if bias is None else scores + bias, mask) @ values


def some_heads(texts, heads, places, width):
    """As the projections of a layer give them: the heads of a place side by side."""
    return torch.randn(texts, places, heads * width).unflatten(-1, (heads, -1)).transpose(1, 2).requires_grad_()


@pytest.mark.usefixtures("build")
@given(
    texts=st.integers(1, 3), heads=st.integers(1, 3), queries=st.integers(1, 19), keys=st.integers(1, 35),
    width=st.integers(1, 40), seen=st.sampled_from(["all", "padding", "future", "any"]),
    biased=st.sampled_from([None, (1, 1, 1, 1), (0, 1, 1, 1), (0, 1, 0, 1)]), scale=st.sampled_from([None, 1.0]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_it_is_the_written_out_one(texts, heads, queries, keys, width, seen, biased, scale):
    torch.manual_seed(keys)
    q, k, v = (some_heads(texts, heads, places, width) for places in (queries, keys, keys))
    full = (texts, heads, queries, keys)
    mask = {
        "all": None,
        "padding": torch.rand(texts, 1, 1, keys) < 0.7,
        "future": torch.ones(1, 1, queries, keys, dtype=torch.bool).tril(keys - queries),
        "any": torch.rand(full) < 0.5,
    }[seen]
    bias = torch.randn([size if one else 1 for size, one in zip(full, biased, strict=True)]) if biased else None
    given_to = [q, k, v, *([bias.requires_grad_()] if bias is not None else [])]
    assert can_attend(q, k, v)
    ours, theirs = (function(q, k, v, mask, bias, scale) for function in (attend, written_out))
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)
    above = torch.randn(texts, queries, heads, width).transpose(1, 2)
    for mine, reference in zip(
        torch.autograd.grad(ours, given_to, above), torch.autograd.grad(theirs, given_to, above), strict=True
    ):
        torch.testing.assert_close(mine, reference, atol=1e-4, rtol=1e-3)


@pytest.mark.usefixtures("build")
def test_a_query_that_may_see_nothing_gives_zeros_and_finite_gradients():
    q, k, v = (some_heads(2, 2, 5, 8) for _ in range(3))
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0, :, 3] = False
    context = attend(q, k, v, mask, None, None)
    assert (context[0, :, 3] == 0).all()
    gradients = torch.autograd.grad(context.sum(), [q, k, v])
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert (gradients[0][0, :, 3] == 0).all()


@pytest.mark.usefixtures("build")
def test_a_text_has_the_same_bits_alone_and_beside_others_and_on_any_number_of_threads():
    q, k, v = (some_heads(5, 4, 11, 24) for _ in range(3))
    threads = torch.get_num_threads()
    try:
        found = []
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            context = attend(q, k, v, None, None, None)
            found.append([context, *torch.autograd.grad(context.sum(), [q, k, v])])
        assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))
        alone = attend(q[2:3], k[2:3], v[2:3], None, None, None)
        assert torch.equal(alone, found[0][0][2:3])
    finally:
        torch.set_num_threads(threads)


def test_what_it_does_not_know_is_left_to_torch():
    short = some_heads(1, 2, 4, 8)
    assert can_attend(short, short, short)
    assert not can_attend(short.double(), short.double(), short.double())
    assert not can_attend(short, *[some_heads(1, 2, LONGEST + 1, 8)] * 2)
    assert not can_attend(short, short.mT.contiguous().mT, short)  # a head's numbers must lie side by side
    assert not can_attend(short, short, some_heads(1, 2, 4, 16))


@pytest.mark.usefixtures("build")
@given(rows=st.integers(1, 70), vocabulary=st.integers(2, 90), smoothing=st.sampled_from([0.0, 0.1]))
@settings(max_examples=30, deadline=None)
def test_cross_entropy_and_its_slope_are_torchs_own(rows, vocabulary, smoothing):
    torch.manual_seed(rows)
    states, table = torch.randn(rows, 5, requires_grad=True), torch.randn(vocabulary, 5, requires_grad=True)
    bias, wanted = torch.randn(vocabulary, requires_grad=True), torch.randint(vocabulary, (rows,))
    ours = cross_entropy(states, table, wanted, smoothing, bias)
    logits = states @ table.T + bias
    theirs = torch.nn.functional.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)
    learning = [states, table, bias]
    for mine, reference in zip(torch.autograd.grad(ours, learning), torch.autograd.grad(theirs, learning), strict=True):
        torch.testing.assert_close(mine, reference, atol=1e-4, rtol=1e-4)
