"""Forwards and backwards over micro-batches. What does not fit into memory is cut into smaller parts: the sums are the
same, so the step is the same, save for dropout, which is drawn for each part."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from dragoman.errors import MachineError
from dragoman.training.micro_batches import cut, rows_of
from dragoman.training.objectives import LossSum

SAYS_SO = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc")  # what allocators say


class Sums(NamedTuple):
    nats: float
    tokens: int


class Learner:
    """Adds up gradients in the parameters' `grad`."""

    def __init__(self, model: nn.Module, objective: Callable[[Any, Any], LossSum], seed: int) -> None:
        self.model, self.objective, self.seed = model, objective, seed
        self.parts = 1  # that a micro-batch is cut into, since the first one that did not fit

    def learn(self, step: int, micro_batches: Sequence[Any], places: Iterable[int]) -> list[Sums]:
        """The gradient of those at these places, from zero; what each of them adds to the loss."""
        places, largest = list(places), 0
        while True:
            self.model.zero_grad()
            try:
                found = []
                for place in places:
                    batch = micro_batches[place]
                    largest = max(largest, rows_of(batch))
                    found.append(self.learn_one(step, place, batch))
                return found
            except (MemoryError, RuntimeError) as problem:
                if not is_out_of_memory(problem):
                    raise
            self.cut_finer(largest)  # out of the handler: what the failed attempt held is free by now

    def learn_one(self, step: int, place: int, batch: Any, weight: float = 1.0) -> Sums:
        torch.default_generator.manual_seed(seed_of(self.seed, step, place))  # dropout depends on that, not on the past
        nats, tokens = 0.0, 0
        for part in cut(batch, self.parts):
            if rows_of(part):
                loss = self.objective(self.model, part)
                (loss.nats * weight if weight != 1 else loss.nats).backward()
                nats, tokens = nats + loss.nats.item(), tokens + loss.tokens
        return Sums(nats, tokens) if weight else Sums(0.0, 0)

    def cut_finer(self, rows: int) -> None:
        carried: list[Any] = getattr(self.objective, "carried", list)()
        if self.parts >= rows or carried:  # a state that goes on has a row for each of the batch
            raise MachineError(
                "E-ENV-06",
                f"a step does not fit into memory, in {self.parts} parts of {max(1, rows // self.parts)} rows either; "
                "lower training.tokens_per_step (or images_per_step), then data.longest, then the model's size",
            )
        self.parts = min(rows, 2 * self.parts)


def is_out_of_memory(problem: BaseException) -> bool:
    return isinstance(problem, MemoryError) or any(words in str(problem) for words in SAYS_SO)


def seed_of(seed: int, step: int, micro_batch: int) -> int:
    """One number for each place in a run; close places are far apart, since the generator mixes it well."""
    return ((seed * 1_000_003 + step) * 4_099 + micro_batch) % (1 << 63)
