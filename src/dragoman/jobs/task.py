"""What is learned, and from what: all that differs between training a translator and training a writer of text.

A task is told from the request, finds its files, prepares them in the run's folder, and from then on hands out batches,
says what the loss is, and measures a model on the validation part. Everything else, from timing to saving, is the same
for every task.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from dragoman.config import Settings
from dragoman.errors import DataError
from dragoman.jobs.request import Request
from dragoman.text.tokenizer import Tokenizers
from dragoman.training.objectives import LossSum
from dragoman.training.settings import TrainingConfig


class Sample(NamedTuple):
    """A validation text as the model has it now."""

    source: str
    output: str
    reference: str


class Measured(NamedTuple):
    nats_per_token: float
    scores: dict[str, float]  # by name, as they are shown
    samples: list[Sample]


def lost(nats: float) -> bool:
    """Whether the model has left all bounds: then there is nothing that it could write."""
    return not isfinite(nats)


@runtime_checkable
class Sources(Protocol):
    """The files that a request names."""

    @property
    def name(self) -> str: ...
    @property
    def paths(self) -> Sequence[Path]: ...


Found = TypeVar("Found", bound=Sources)


@dataclass(frozen=True)
class Corpora(Generic[Found]):
    """What to learn from and, where it was given, what to validate with: both of one kind."""

    train: Found
    valid: Found | None

    @property
    def name(self) -> str:
        return self.train.name

    @property
    def paths(self) -> list[Path]:
        return [*self.train.paths, *(self.valid.paths if self.valid else ())]


@runtime_checkable
class Order(Protocol):
    def __len__(self) -> int:
        """Batches in an epoch."""
        ...

    def batch(self, epoch: int, k: int) -> Any: ...


@runtime_checkable
class Objective(Protocol):
    def __call__(self, model: Any, batch: Any) -> LossSum: ...
    def carried(self) -> list[Tensor]:
        """What goes on from one batch into the next, and so belongs to a checkpoint."""
        ...

    def carry(self, model: Any, tensors: list[Tensor]) -> None: ...


@torch.inference_mode()
def mean_nats(objective: Objective, model: Any, order: Order) -> float:
    """The loss over all of an epoch, a token."""
    losses = [objective(model, order.batch(0, k)) for k in range(len(order))]
    tokens = sum(loss.tokens for loss in losses)
    if not tokens:
        raise DataError(
            "E-DATA-11",
            "there is nothing to validate with: 0 tokens of the validation part are asked for, and one is the least; "
            "give a longer text, or another to --valid",
        )
    return sum(loss.nats.item() for loss in losses) / tokens


@runtime_checkable
class Task(Protocol):
    about: dict[str, Any]  # saved with the model: how to use it

    @property
    def counted(self) -> str:
        """What the loss is a mean over: tokens, texts or images."""
        ...

    @property
    def name(self) -> str:
        """As FAMILIES has it."""
        ...

    @property
    def tokenizer_settings(self) -> dict[str, Any]:
        """As chosen; empty where the tokenizers came with a model."""
        ...

    @property
    def tokenizers(self) -> Tokenizers | None:
        """None where images are read."""
        ...

    def usual_minutes(self) -> float:
        """How long to train where nobody said."""
        ...

    def most_epochs(self, config: Settings) -> float:
        """How often to see the corpus at most, where nobody said."""
        ...

    def plan_model(self, request: Request, work: float) -> Settings: ...
    def plan_from(self, config: Settings) -> Settings:
        """The settings of a model that goes on from one of these."""
        ...

    def plan_use(self, config: Settings, request: Request) -> None:
        """Fill `about`, where this task has something to say there."""
        ...

    def plan_training(self, config: Settings) -> dict[str, Any]:
        """What this task wants otherwise than TrainingConfig has it."""
        ...

    def order(self, training: TrainingConfig, seed: int) -> Order: ...
    def objective(self, training: TrainingConfig) -> Objective: ...
    def validation_loss(self, model: Any, training: TrainingConfig) -> float: ...
    def measure(self, model: Any, training: TrainingConfig) -> Measured: ...
    def quick_about(self) -> dict[str, Any]:
        """`about`, changed so that an untrained model is measured in the time that a trained one takes."""
        ...

    def describe(self) -> list[tuple[str, str]]:
        """The first lines of the plan."""
        ...

    def record(self) -> dict[str, Any]:
        """What `reopen` needs, for run.toml."""
        ...
