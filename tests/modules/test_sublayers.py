"""The native sublayers are the written-out ones, forwards and backwards, in every build that runs here."""

from contextlib import contextmanager
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dragoman import native
from dragoman.modules import block as blocks
from dragoman.modules.activations import activation
from dragoman.modules.attention import Attention, Memory, dot, scaled_dot, watching
from dragoman.modules.block import Block, Stack, feedforward
from dragoman.modules.dropout import Dropout, seeded
from dragoman.modules.masks import hide_future


@pytest.fixture(params=native.LEVELS, scope="module")
def build(request):
    found, plain = native.open_build(request.param), native.open_build("plain")
    if found is None or plain is None or native.LEVELS.index(request.param) > plain.processor_level():
        pytest.skip(f"this processor has no {request.param}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: found)
        yield found


@contextmanager
def written_out():
    """Inside this block nothing is computed natively but attention itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "natively", lambda *_: None)
        yield


def heads_of_width(width, heads, each, biases, score):
    """As in T5, whose heads together may be wider than the states."""
    inward = [nn.Linear(width, heads * each, bias=biases) for _ in "qkv"]
    outward = nn.Linear(heads * each, width, bias=biases)
    q, k, v = inward
    return Attention(score=score, to_query=q, to_key=k, to_value=v, to_output=outward, heads=heads)


def a_block(
    width, heads, *, each=None, norm=nn.LayerNorm, first=True, bent="gelu", biases=True, dropout=0.0, source=True
):
    each = each or width // heads
    made = Block(
        self_attention=heads_of_width(width, heads, each, biases, scaled_dot if biases else dot),
        source_attention=heads_of_width(width, heads, each, biases, scaled_dot) if source else None,
        feedforward=feedforward(width, 2 * width + 3, activation(bent), bias=biases),
        norm=partial(norm, width, eps=1e-5),
        norm_first=first,
        dropout=dropout,
    )
    for p in made.parameters():  # norms and biases too, which begin at one and zero
        nn.init.normal_(p, std=0.3)
    return made.train()


def everything(block, x, mask, bias, source, source_mask):
    """What comes out, and the slope of all that went in; the memory counts too, as where a text is gone on with."""
    memory = Memory(*(part.detach().requires_grad_() for part in source)) if source else None
    given = [x, *block.parameters(), *(memory or ()), *([bias] if bias is not None else [])]
    with seeded(7):
        y, kept = block(x, mask, bias, None, memory, source_mask)
    noise = torch.Generator().manual_seed(1)
    total = sum((part * torch.randn(part.shape, generator=noise)).sum() for part in (y, *kept))
    return [y.detach(), *torch.autograd.grad(total, given, materialize_grads=True)]


def agree(mine, reference):
    for a, b in zip(mine, reference, strict=True):
        torch.testing.assert_close(a, b, atol=2e-4 * max(1.0, b.abs().max().item()), rtol=1e-3)


@pytest.mark.usefixtures("build")
@given(
    texts=st.integers(1, 3), heads=st.integers(1, 3), length=st.integers(1, 21), places=st.integers(1, 21),
    width=st.integers(1, 20), each=st.integers(1, 20), first=st.booleans(),
    norm=st.sampled_from([nn.LayerNorm, nn.RMSNorm]),
    bent=st.sampled_from(["relu", "gelu", "gelu-tanh", "silu"]), biases=st.booleans(),
    dropout=st.sampled_from([0.0, 0.3]), source=st.booleans(), biased=st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_it_is_the_written_out_one(
    texts, heads, length, places, width, each, first, norm, bent, biases, dropout, source, biased
):
    torch.manual_seed(length)
    how = {
        "each": each,
        "norm": norm,
        "first": first,
        "bent": bent,
        "biases": biases,
        "dropout": dropout,
        "source": source,
    }
    block = a_block(width, heads, **how)
    x = torch.randn(texts, length, width, requires_grad=True)
    bias = torch.randn(1, heads, length, length, requires_grad=True) if biased else None
    states = torch.randn(texts, places, width)
    memory = block.source_attention.remember(states) if source else None
    real = torch.ones(texts, 1, 1, places, dtype=torch.bool)
    real[0, ..., places // 2 + 1 :] = False
    asked = (x, hide_future(length, length, x.device), bias, memory, real if source else None)
    mine = everything(block, *asked)
    with written_out():
        reference = everything(block, *asked)
    agree(mine, reference)


def slopes_of_stack(stack, x, mask, bias, states, source_mask):
    given = [x, *stack.parameters(), *([bias] if bias is not None else [])]
    with seeded(7):
        y, kept = stack(x, mask, bias, (), stack.remember_source(states), source_mask)
    noise = torch.Generator().manual_seed(1)
    parts = (y, *(part for memory in kept for part in memory))
    total = sum((part * torch.randn(part.shape, generator=noise)).sum() for part in parts)
    return [y.detach(), *torch.autograd.grad(total, given)]


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("source", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_blocks_one_after_the_other_are_the_written_out_ones(monkeypatch, source, first, at_once):
    torch.manual_seed(3)
    stack = Stack((a_block(12, 3, first=first, dropout=0.2, source=source) for _ in range(3)), nn.LayerNorm(12)).train()
    monkeypatch.setattr(blocks, "AT_ONCE", at_once * 12 * 12**2)
    x, states = torch.randn(2, 9, 12, requires_grad=True), torch.randn(2, 5, 12)
    bias = torch.randn(1, 3, 9, 9, requires_grad=True)
    real = torch.tensor([5, 3])[:, None, None, None] > torch.arange(5)
    asked = (x, hide_future(9, 9, x.device), bias, states, real)
    mine = slopes_of_stack(stack, *asked)
    with written_out():
        agree(mine, slopes_of_stack(stack, *asked))


def calls_of(stack, x):
    """Native ones, in the graph of what comes out."""
    (y, _), found = stack(x, None), 0
    node = y.grad_fn
    while node is not None:
        found += type(node).__name__ == "GoThroughBackward"
        node = next((before for before, _ in node.next_functions if before is not None), None)
    return found


def test_a_small_stack_is_one_call_and_what_differs_goes_alone(monkeypatch):
    x = torch.randn(2, 5, 12, requires_grad=True)
    alike = Stack([a_block(12, 3, source=False) for _ in range(3)]).train()
    assert calls_of(alike, x) == 1
    monkeypatch.setattr(blocks, "AT_ONCE", 2 * 12 * 12**2)
    assert calls_of(alike, x) == 2
    other = Stack([a_block(12, 3, source=False), a_block(12, 2, source=False)]).train()
    assert calls_of(other, x) == 4


def test_memories_of_other_lengths_do_not_share_a_mask():
    stack, x = Stack([a_block(8, 2) for _ in range(2)]).train(), torch.randn(2, 5, 8)
    memories = [
        block.source_attention.remember(torch.randn(2, places, 8)) for block, places in zip(stack, (3, 6), strict=True)
    ]
    with pytest.raises(RuntimeError):
        stack(x, None, None, (), tuple(memories), torch.ones(2, 1, 1, 3, dtype=torch.bool))


def test_hooks_of_a_block_are_called():
    stack, called = Stack([a_block(8, 2, source=False) for _ in range(2)]).train(), []
    stack.blocks[1].register_forward_hook(lambda *_: called.append(1))
    stack(torch.randn(2, 5, 8), None)
    assert called == [1]


def test_it_is_what_trains():
    """And only what trains: neither what is watched nor what is not learned from."""
    block, x = a_block(8, 2, source=False), torch.randn(1, 3, 8)
    if native.library() is None or native.product_of_torch() is None:
        pytest.skip("nothing native here")

    def made_by():
        return type(block(x, None)[0].grad_fn).__name__

    assert made_by() == "GoThroughBackward"
    block.eval()
    assert made_by() != "GoThroughBackward"
    block.train()
    with watching(block) as seen:
        block(x, None)
    assert len(seen["self_attention"]) == 1
    assert type(block.double()(x.double(), None)[0].grad_fn).__name__ != "GoThroughBackward"


@pytest.mark.usefixtures("build")
def test_the_number_of_threads_changes_last_digits_only():
    block, x = a_block(48, 4, source=False), torch.randn(5, 11, 48, requires_grad=True)
    threads, found = torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found.append(everything(block, x, None, None, None, None))
    torch.set_num_threads(threads)
    for several in found[1:]:
        for a, b in zip(found[0], several, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6 * max(1.0, b.abs().max().item()), rtol=1e-6)


def test_nothing_that_is_not_finite_is_hidden():
    block, x = a_block(8, 2, source=False), torch.randn(2, 3, 8)
    x[0, 1, 2] = float("nan")
    assert not block(x, None)[0][0].isfinite().all()
    assert block(x, None)[0][1].isfinite().all()


# ── what it must leave to torch ───────────────────────────────────────────────────────────


class Silent(Attention):
    def forward(self, states, *_):
        return torch.zeros_like(states)


class Squared(nn.ReLU):
    def forward(self, x):
        return super().forward(x) ** 2


def linears(*widths, biases=(True, True, True)):
    """To queries, keys and values of a block of width 8."""
    return [nn.Linear(8, width, bias=bias) for width, bias in zip(widths, biases, strict=True)]


def other_values(block, width):
    block.self_attention.to_value, block.self_attention.to_output = nn.Linear(8, width), nn.Linear(width, 8)


def some_biases(block, *biases):
    a = block.self_attention
    a.to_query, a.to_key, a.to_value = linears(8, 8, 8, biases=biases)


ODD = {
    "attention of one's own": lambda b: setattr(b.self_attention, "__class__", Silent),
    "an activation of one's own": lambda b: b.feedforward.__setitem__(1, Squared()),
    "wider values": lambda b: other_values(b, 16),
    "a query without bias": lambda b: some_biases(b, False, True, True),
    "keys without bias": lambda b: some_biases(b, True, False, True),
    "dropout that is over": lambda b: [m.eval() for m in b.modules() if isinstance(m, Dropout)],
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_what_it_does_not_know_goes_the_written_out_way(change):
    block, x = a_block(8, 2, source=False, dropout=0.3), torch.randn(2, 5, 8, requires_grad=True)
    change(block)
    asked = (x, None, None, None, None)
    mine = everything(block, *asked)
    with written_out():
        agree(mine, everything(block, *asked))


@pytest.mark.parametrize("width", [4, 12])
def test_states_of_another_width_are_refused(width):
    with pytest.raises(RuntimeError):
        a_block(8, 2, source=False)(torch.randn(2, 5, width), None)


def test_a_memory_of_other_texts_is_refused():
    block, x = a_block(8, 2), torch.randn(4, 3, 8)
    memory = block.source_attention.remember(torch.randn(3, 5, 8))
    with pytest.raises(RuntimeError):
        block(x, None, source=memory)


def test_numbers_of_another_kind_are_refused():
    block, x = a_block(8, 2, source=False), torch.randn(2, 5, 8)
    block.feedforward[0].bias = nn.Parameter(block.feedforward[0].bias.bfloat16())
    with pytest.raises(RuntimeError):
        block(x, None)


@pytest.mark.parametrize(
    "name", ["self_attention", "self_attention.to_key", "feedforward", "feedforward.1", "around_self.norm"]
)
def test_hooks_are_called(name):
    block, x, called = a_block(8, 2, source=False), torch.randn(2, 5, 8), []
    block.get_submodule(name).register_forward_hook(lambda *_: called.append(name))
    block(x, None)
    assert called == [name]
