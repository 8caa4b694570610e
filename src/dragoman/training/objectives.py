"""What a model is asked to make small. An objective returns a SUM and a COUNT, never a mean:
sums of micro-batches and of processes add up to the gradient of one large batch; means do not."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.models.state import State, Translating, map_tensors, tensors_of
from dragoman.modules.embeddings import TokenScores
from dragoman.text.batches import Batch, LabelledBatch
from dragoman.text.corruption import MaskedBatch
from dragoman.text.stream import Window

AT_ONCE = 1 << 20  # scores computed at a time, over all tokens of some rows: they stay in the cache


class LossSum(NamedTuple):
    nats: Float[Tensor, ""]  # summed over the tokens, carries the gradient
    tokens: int  # or whatever else the sum is over: a classifier's texts


class CarriesNothing:
    """What most objectives have in common: no batch hangs on the one before."""

    def carried(self) -> list[Tensor]:
        return []

    def carry(self, model: Any, tensors: list[Tensor]) -> None: ...


def translation_loss(model: Translating, batch: Batch, label_smoothing: float = 0.0) -> LossSum:
    """−Σ log p(target token | source, the target before it), all positions at once (teacher forcing)."""
    real = batch.target_mask
    states = model.states(batch.source, batch.source_mask, batch.target_in)[real]  # (N D), no padding
    return LossSum(surprise(states, model.scores, batch.target_out[real], label_smoothing), len(states))


@dataclass(frozen=True)
class TranslationLoss(CarriesNothing):
    """`translation_loss` as a run uses it."""

    label_smoothing: float = 0.0

    def __call__(self, model: Any, batch: Batch) -> LossSum:
        return translation_loss(model, batch, self.label_smoothing)


@dataclass
class WritingLoss:
    """−Σ log p(next token | all before it). The state of a recurrent model goes on from window to window, the gradient
    does not: backpropagation through time is cut off where a window begins. Other models see their window alone."""

    label_smoothing: float = 0.0
    state: State = None

    def __call__(self, model: Any, batch: Window) -> LossSum:
        before = None if batch.first else self.state
        states, after = model.write(batch.tokens, model.begin(len(batch.tokens)) if before is None else before)
        self.state = without_gradient(after) if model.carries else None
        wanted = batch.wanted.flatten()
        return LossSum(surprise(states.flatten(0, 1), model.scores, wanted, self.label_smoothing), len(wanted))

    def carried(self) -> list[Tensor]:
        return [] if self.state is None else tensors_of(self.state)

    def carry(self, model: Any, tensors: list[Tensor]) -> None:
        """Go on with the state that `carried` gave."""
        given = iter(tensors)
        self.state = map_tensors(model.begin(1), lambda _: next(given)) if tensors else None


@dataclass(frozen=True)
class FillingLoss(CarriesNothing):
    """−Σ log p(hidden token | all that is shown), over the places that are asked for."""

    label_smoothing: float = 0.0

    def __call__(self, model: Any, batch: MaskedBatch) -> LossSum:
        states = model.states(batch.tokens, batch.real, batch.asked)
        return LossSum(surprise(states, model.scores, batch.wanted, self.label_smoothing), len(states))


@dataclass(frozen=True)
class ClassifyingLoss(CarriesNothing):
    """−Σ log p(class | text). The sum is over texts: each counts once, however long it is."""

    label_smoothing: float = 0.0

    def __call__(self, model: Any, batch: LabelledBatch) -> LossSum:
        logits = model(batch.tokens, batch.real)
        nats = F.cross_entropy(logits, batch.wanted, reduction="sum", label_smoothing=self.label_smoothing)
        return LossSum(nats, len(logits))


def without_gradient(state: State) -> State:
    """The state cut off from what made it; nothing where it is not finite, or one bad step would spoil all others."""
    finite = all(tensor.isfinite().all() for tensor in tensors_of(state))
    return map_tensors(state, Tensor.detach) if finite else None


def surprise(
    states: Float[Tensor, "N D"], scores: TokenScores, wanted: Int[Tensor, " N"], smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """`cross_entropy` of what `scores` makes of these states, without making all of it at once."""
    return cross_entropy(states, scores.table.weight, wanted, smoothing, scores.bias)


def cross_entropy(
    states: Float[Tensor, "N D"],
    table: Float[Tensor, "V D"],
    wanted: Int[Tensor, " N"],
    smoothing: float = 0.0,
    bias: Float[Tensor, " V"] | None = None,
) -> Float[Tensor, ""]:
    """Σ H(q, softmax(E x + b)) with q = 1−ε on the wanted token and ε spread evenly over all V.

    In one pass with its own gradient, a few rows at a time, so the (N V) logits never exist as a whole.
    """
    return CrossEntropy.apply(states, table, bias, wanted, smoothing, torch.is_grad_enabled())


class CrossEntropy(torch.autograd.Function):
    """nats = Σ lse(z) − (1−ε) z[wanted] − ε mean(z);   ∂/∂z = softmax(z) − (1−ε) onehot − ε/V."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, table: Tensor, bias: Tensor | None, wanted: Tensor, smoothing: float, learns: bool
    ) -> Tensor:
        nats = states.new_zeros(())
        to_states, to_table = torch.zeros_like(states), torch.zeros_like(table)
        to_bias = None if bias is None else torch.zeros_like(bias)
        rows = max(64, AT_ONCE // len(table))
        for x, y, to_x in zip(states.split(rows), wanted.split(rows), to_states.split(rows), strict=True):
            logits = x @ table.T if bias is None else torch.addmm(bias, x, table.T)
            log_sum = logits.logsumexp(dim=-1, keepdim=True)
            right = logits.gather(1, y[:, None])
            nats += (log_sum - (1 - smoothing) * right - smoothing * logits.mean(dim=-1, keepdim=True)).sum()
            if learns:
                slope = logits.sub_(log_sum).exp_().sub_(smoothing / len(table))
                slope.scatter_add_(1, y[:, None], slope.new_full((len(y), 1), smoothing - 1))
                torch.mm(slope, table, out=to_x)
                to_table.addmm_(slope.T, x)
                if to_bias is not None:
                    to_bias += slope.sum(dim=0)
        ctx.save_for_backward(to_states, to_table, to_bias)
        return nats

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        to_states, to_table, to_bias = ctx.saved_tensors
        found = [None if part is None else part * upstream[0] for part in (to_states, to_table, to_bias)]
        return *found, None, None, None
