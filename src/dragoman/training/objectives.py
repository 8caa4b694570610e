"""What a model is asked to make small. An objective returns a SUM and a COUNT, never a mean:
sums of micro-batches and of processes add up to the gradient of one large batch; means do not."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.models.state import State, Translating, map_tensors, tensors_of
from dragoman.modules.embeddings import TokenScores
from dragoman.text.batches import Batch, LabelledBatch
from dragoman.text.corruption import MaskedBatch
from dragoman.text.stream import Window
from dragoman.training.entropy import cross_entropy


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
