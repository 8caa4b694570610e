"""The training loop, as a generator: it yields after each step, and the caller decides what to do then."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.training.learner import Learner
from dragoman.training.objectives import LossSum
from dragoman.training.parallel import ALONE, Workers
from dragoman.training.team import Team, computing_with, team_size, threads_for
from dragoman.training.updates import length_of, multiply


class Step(NamedTuple):
    number: int
    nats_per_token: float
    tokens: int
    gradient_norm: float
    applied: bool  # False where the gradient was not finite and the parameters were left alone
    parts: int = 1  # that a micro-batch was cut into, where it did not fit into memory


def train(
    model: nn.Module,
    batches: Iterable[Sequence[Any]],  # for each step, the micro-batches whose gradients are added
    objective: Callable[[Any, Any], LossSum],
    optimizer: torch.optim.Optimizer,
    *,
    rate: Callable[[int], float],  # the learning rate of step n
    clip: float = 1.0,
    seed: int = 0,
    first: int = 1,
    parts: int = 1,
    workers: Workers = ALONE,
) -> Iterator[Step]:
    """One step for each item of `batches`; steps count from `first`, so a resumed run goes on counting, and its
    micro-batches are cut into as many `parts` as it found necessary."""
    parameters, besides = list(model.parameters()), Besides(model, objective)
    learner = Learner(model, objective, seed, Team(team_size()), parts)
    for number, micro_batches in enumerate(batches, start=first):
        if not model.training:  # the caller may have validated
            model.train()
        besides.keep()
        sums = workers.add_up(learner, number, micro_batches)
        learner.counts.count_step()
        with computing_with(threads_for(learner.numbers)):
            norm = divide_and_clip(parameters, max(1, sums.tokens), clip)
            applied = norm < float("inf")  # false for NaN too
            if applied:
                for group in optimizer.param_groups:
                    group["lr"] = rate(number)
                optimizer.step()
            else:
                besides.put_back()
        yield Step(number, sums.nats / max(1, sums.tokens), sums.tokens, norm, applied, learner.parts)


class Besides:
    """What a step changes besides the parameters: what norms have counted, and the state that goes on into the next
    batch. Of a step that is not applied nothing must stay, or one NaN would spoil every later one."""

    def __init__(self, model: nn.Module, objective: Any) -> None:
        lasting = model.state_dict().keys()  # a table that is computed is not among them
        self.counted = [buffer for name, buffer in model.named_buffers() if name in lasting]
        self.model, self.objective = model, objective
        self.carries = hasattr(objective, "carried") and hasattr(objective, "carry")

    def keep(self) -> None:
        self.before = [buffer.clone() for buffer in self.counted]
        self.carried: list[Tensor] = self.objective.carried() if self.carries else []

    def put_back(self) -> None:
        for buffer, before in zip(self.counted, self.before, strict=True):
            buffer.copy_(before)
        if self.carries:
            self.objective.carry(self.model, self.carried)


def divide_and_clip(parameters: Sequence[nn.Parameter], tokens: int, clip: float) -> float:
    """Sums become means; the length that their gradient has before it is cut to `clip`."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    multiply(gradients, 1 / tokens)  # first: squares of sums would be beyond float32 far sooner
    length = length_of(gradients)
    if length > clip:
        multiply(gradients, clip / (length + 1e-6))
    return length
