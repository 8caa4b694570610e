"""Forwards and backwards over micro-batches, as many at a time as there are threads. What does not fit into memory is
cut into smaller parts: the sums are the same, so the step is the same, save for dropout, which is drawn for each part,
and for batch norms, which see each part by itself.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from errno import ENOMEM
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.errors import MachineError
from dragoman.modules.dropout import seeded
from dragoman.training.counting import Counts, Total
from dragoman.training.micro_batches import cut, rows_of
from dragoman.training.objectives import LossSum, WritingLoss
from dragoman.training.team import Team, computing_with, threads_for
from dragoman.training.updates import add

SAYS_SO = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc")  # what allocators say
LARGE = 30_000_000  # numbers of a model whose operations are long enough to be shared: a gradient for each thread, and
# all that is kept for the way back, would take twice the memory
SMALLER = "lower training.tokens_per_step (or images_per_step), then data.longest, then the model's size"


class Sums(NamedTuple):
    nats: float
    tokens: int


class Learner:
    """Adds up gradients in the parameters' `grad`."""

    def __init__(
        self,
        model: nn.Module,
        objective: Callable[[Any, Any], LossSum],
        seed: int,
        team: Team | None = None,
        parts: int = 1,
    ) -> None:
        """With a `team` each of its threads learns from a micro-batch of its own. `parts` is how many a micro-batch is
        cut into, since the first one that did not fit."""
        self.model, self.objective, self.seed = model, objective, seed
        self.parameters = list(model.parameters())
        self.numbers = sum(p.numel() for p in self.parameters)
        self.counts = Counts(model)
        together = self.numbers < LARGE and can_be_together(model, objective)
        self.team = team if team and together else Team(1)
        self.parts = parts

    def learn(self, step: int, micro_batches: Sequence[Any], places: Iterable[int]) -> list[Sums]:
        """The gradient of those at these places, from zero; what each of them adds to the loss."""
        places, largest = list(places), 0
        while True:
            for p in self.parameters:
                p.grad = None
            try:
                found = list[Sums]()
                with self.counts.adding_up() as counted:
                    for i in range(0, len(places), self.team.size):
                        several = {place: micro_batches[place] for place in places[i : i + self.team.size]}
                        largest = max(largest, *map(rows_of, several.values()))
                        found += self.learn_together(step, several, counted, 1 / len(micro_batches))
                return found
            except (MemoryError, RuntimeError) as problem:
                if not is_out_of_memory(problem):
                    raise
            self.cut_finer(largest)  # out of the handler: what the failed attempt held is free by now

    def learn_together(self, step: int, several: dict[int, Any], counted: Total, share: float) -> list[Sums]:
        """From each of these at the same time; their gradients are added in the order of their places."""
        if self.team.size == 1:
            return [self.learn_one(step, *one, counted, share) for one in several.items()]
        apart = self.team.each(lambda one: self.slopes(step, *one), several.items())
        with computing_with(threads_for(self.numbers)):
            for slopes in (slopes for _, found in apart for slopes in found):
                self.take(slopes)
        return [sums for sums, _ in apart]

    def take(self, slopes: Sequence[Tensor | None]) -> None:
        known, added = list[Tensor](), list[Tensor]()
        for p, slope in zip(self.parameters, slopes, strict=True):
            if slope is not None and p.grad is None:  # laid out as its parameter, as fused optimizers take for granted
                p.grad = slope if slope.stride() == p.stride() else torch.empty_like(p).copy_(slope)
            elif slope is not None and p.grad is not None:
                known.append(p.grad)
                added.append(slope)
        add(known, added)

    def learn_one(self, step: int, place: int, batch: Any, counted: Total, share: float, weight: float = 1.0) -> Sums:
        """`share` is that of this micro-batch in what norms count."""
        torch.manual_seed(seed_of(self.seed, step, place))  # for a GPU, where dropout draws from torch's own generator

        def back(nats: Tensor, part: float) -> None:
            (nats * weight if weight != 1 else nats).backward()
            counted.add(share * part * weight)

        sums = self.go_through(step, place, batch, back)
        if not rows_of(batch):  # nothing was counted
            counted.add(share * weight)
        return sums

    def slopes(self, step: int, place: int, batch: Any) -> tuple[Sums, list[Sequence[Tensor | None]]]:
        """The gradient of each part, beside the parameters: other threads have theirs."""
        found = list[Sequence[Tensor | None]]()

        def take(nats: Tensor, _: float) -> None:
            found.append(torch.autograd.grad(nats, self.parameters, allow_unused=True))

        return self.go_through(step, place, batch, take), found

    def go_through(self, step: int, place: int, batch: Any, back: Callable[[Tensor, float], None]) -> Sums:
        """`back` is given the nats of each part, and what share of the batch it is."""
        nats, tokens, parts = 0.0, 0, [part for part in cut(batch, self.parts) if rows_of(part)]
        with seeded(seed_of(self.seed, step, place)):  # dropout depends on that, not on the past
            for part in parts:
                loss = self.objective(self.model, part)
                back(loss.nats, 1 / len(parts))
                nats, tokens = nats + loss.nats.item(), tokens + loss.tokens
        return Sums(nats, tokens)

    def cut_finer(self, rows: int) -> None:
        """One micro-batch at a time needs less; then a part of one."""
        if self.team.size > 1:
            self.team = Team(1)
            return
        if self.parts >= rows or carries_on(self.model, self.objective):  # such a state has a row for each of the batch
            raise MachineError(
                "E-ENV-06",
                f"a step does not fit into memory, in {self.parts} parts of {max(1, rows // self.parts)} rows either; "
                f"{SMALLER}",
            )
        self.parts = min(rows, 2 * self.parts)


def can_be_together(model: nn.Module, objective: Any) -> bool:
    """Whether threads may go through it at the same time: only where the processor computes, not where norms count what
    they see, and not where a state goes on from one window of a text into the next."""
    on_cpu = all(p.device.type == "cpu" for p in model.parameters())
    counts = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    return on_cpu and not counts and not carries_on(model, objective)


def carries_on(model: Any, objective: Any) -> bool:
    """Whether a state goes on from one window of a text into the next."""
    return isinstance(objective, WritingLoss) and bool(model.carries)


def is_out_of_memory(problem: BaseException) -> bool:
    if isinstance(problem, OSError):
        return problem.errno == ENOMEM
    return isinstance(problem, MemoryError) or any(words in str(problem) for words in SAYS_SO)


@contextmanager
def fitting_into_memory(what: str) -> Iterator[None]:
    """For what is not cut into parts: where it does not fit, that is said."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as problem:
        if not is_out_of_memory(problem):
            raise
        raise MachineError("E-ENV-06", f"{what} does not fit into memory; {SMALLER}") from None


def seed_of(seed: int, step: int, micro_batch: int) -> int:
    """One number for each place in a run; close places are far apart, since the generator mixes it well."""
    return ((seed * 1_000_003 + step) * 4_099 + micro_batch) % (1 << 63)
