"""What batch norms count, over the micro-batches of a step: each of them moves the running means from where they stood
before the step, and the mean of where it moved them counts. So nothing hangs on their order, nor on who takes which.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class Counts:
    def __init__(self, model: nn.Module) -> None:
        norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
        buffers = [buffer for norm in norms for buffer in norm.buffers()]
        self.means = [buffer for buffer in buffers if buffer.is_floating_point()]
        self.steps = [buffer for buffer in buffers if not buffer.is_floating_point()]  # how often each has counted

    def __bool__(self) -> bool:
        return bool(self.means)

    def before(self) -> list[Tensor]:
        return [buffer.clone() for buffer in (*self.means, *self.steps)]

    def put_back(self, before: list[Tensor]) -> None:
        for buffer, value in zip((*self.means, *self.steps), before, strict=True):
            buffer.copy_(value)

    @contextmanager
    def adding_up(self) -> Iterator["Total"]:
        """Inside this block each part of a step is counted from the same beginning. Afterwards the running means are
        the sum of the shares: those of one worker, to which the others' are to be added."""
        before = self.before()
        total = Total(self, before, [torch.zeros_like(mean) for mean in self.means])
        try:
            yield total
        except BaseException:
            self.put_back(before)
            raise
        self.put_back(before)
        for mean, summed in zip(self.means, total.sums, strict=True):
            mean.copy_(summed)

    def count_step(self) -> None:
        for steps in self.steps:
            steps.add_(1)


class Total:
    def __init__(self, counts: Counts, before: list[Tensor], sums: list[Tensor]) -> None:
        self.counts, self.before, self.sums = counts, before, sums

    def add(self, share: float) -> None:
        """What has been counted since the beginning, times its share; and back to the beginning."""
        for summed, mean in zip(self.sums, self.counts.means, strict=True):
            summed.add_(mean, alpha=share)
        self.counts.put_back(self.before)
