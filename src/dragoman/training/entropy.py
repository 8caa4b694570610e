"""Cross-entropy and its slope in one pass, a few rows at a time, so the (N V) logits never exist as a whole.

nats = Σ lse(z) − (1−ε) z[wanted] − ε mean(z);   ∂/∂z = softmax(z) − (1−ε) onehot − ε/V,   z = E x + b
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman import native
from dragoman.modules.products import product

AT_ONCE = 1 << 20  # scores computed at a time, over all tokens of some rows: they stay in the cache
LEAST = 256  # rows at least: for each few of them all of the table is read, and its slope written, once more


def cross_entropy(
    states: Float[Tensor, "N D"],
    table: Float[Tensor, "V D"],
    wanted: Int[Tensor, " N"],
    smoothing: float = 0.0,
    bias: Float[Tensor, " V"] | None = None,
) -> Float[Tensor, ""]:
    """Σ H(q, softmax(E x + b)) with q = 1−ε on the wanted token and ε spread evenly over all V."""
    return CrossEntropy.apply(states, table, bias, wanted, smoothing, torch.is_grad_enabled())


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, table: Tensor, bias: Tensor | None, wanted: Tensor, smoothing: float, learns: bool
    ) -> Tensor:
        nats = states.new_zeros(())
        to_states, to_table = torch.empty_like(states), torch.zeros_like(table)
        to_bias = None if bias is None else torch.zeros_like(bias)
        rows = max(LEAST, AT_ONCE // len(table))
        for x, y, to_x in zip(states.split(rows), wanted.split(rows), to_states.split(rows), strict=True):
            logits = product(x, table.T)
            if bias is not None:
                logits += bias
            nats += surprise_and_slope(logits, y, smoothing, learns)
            if learns:  # by now the logits are their slope
                product(logits, table, out=to_x)
                product(logits.T, x, out=to_table, add=True)
                if to_bias is not None:
                    to_bias += logits.sum(dim=0)
        ctx.save_for_backward(to_states, to_table, to_bias)
        return nats

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        found = ctx.saved_tensors
        if not (upstream[0].is_cpu and upstream[0] == 1):  # of a sum that is learned from as it is they are the slopes
            found = [None if part is None else part * upstream[0] for part in found]
        return *found, None, None, None


def surprise_and_slope(
    logits: Float[Tensor, "N V"], wanted: Int[Tensor, " N"], smoothing: float, learns: bool
) -> Float[Tensor, ""]:
    """The nats, summed; where something is to be learned, the logits become their slope."""
    library = native.library()
    if library is not None and logits.dtype == torch.float32 and logits.device.type == "cpu":
        wanted, nats = wanted.contiguous(), torch.empty(len(wanted), dtype=torch.float64)
        library.cross_entropy(
            logits.data_ptr(), *logits.shape, wanted.data_ptr(), smoothing, learns, torch.get_num_threads(),
            nats.data_ptr(),
        )  # fmt: skip
        return nats.sum().float()
    log_sum = logits.logsumexp(dim=-1, keepdim=True)
    right = logits.gather(1, wanted[:, None])
    nats = (log_sum - (1 - smoothing) * right - smoothing * logits.mean(dim=-1, keepdim=True)).sum()
    if learns:
        logits.sub_(log_sum).exp_().sub_(smoothing / logits.shape[1])
        logits.scatter_add_(1, wanted[:, None], logits.new_full((len(wanted), 1), smoothing - 1))
    return nats
