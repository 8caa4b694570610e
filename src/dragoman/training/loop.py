"""The training loop, as a generator: it yields after each step, and the caller decides what to do then."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from dragoman.training.objectives import LossSum


class Step(NamedTuple):
    number: int
    nats_per_token: float
    tokens: int
    gradient_norm: float
    applied: bool  # False where the gradient was not finite and the parameters were left alone


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
) -> Iterator[Step]:
    """One step for each item of `batches`; steps count from `first`, so a resumed run goes on counting."""
    parameters = list(model.parameters())
    for number, micro_batches in enumerate(batches, start=first):
        model.train()
        optimizer.zero_grad()
        nats, tokens = 0.0, 0
        for i, batch in enumerate(micro_batches):
            torch.default_generator.manual_seed(seed_of(seed, number, i))  # dropout depends on the place, not the past
            loss = objective(model, batch)
            loss.nats.backward()
            nats, tokens = nats + loss.nats.item(), tokens + loss.tokens
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_div_(gradients, float(tokens))
        norm = nn.utils.clip_grad_norm_(parameters, clip).item()
        applied = norm < float("inf")  # false for NaN too
        if applied:
            for group in optimizer.param_groups:
                group["lr"] = rate(number)
            optimizer.step()
        yield Step(number, nats / tokens, tokens, norm, applied)


def seed_of(seed: int, step: int, micro_batch: int) -> int:
    """One number for each place in a run; close places are far apart, since the generator mixes it well."""
    return ((seed * 1_000_003 + step) * 4_099 + micro_batch) % (1 << 63)
