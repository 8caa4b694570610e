"""Training by torchrun: who the workers of a run are, and how their gradients become one.

    torchrun --nproc-per-node 4 -m dragoman train …

The micro-batches of a step are the same for any number of workers W; worker r takes r, r + W, r + 2W … Each adds up its
own, then all add up over workers: sums, not means of means, so that a step is the step that one worker would take.

    usual           one sum over workers; its order hangs on W, and so do the last digits
    reproducible    micro-batch after micro-batch is handed round and added in the order of their numbers: the bits are
                    the same for any W, and M gradients travel instead of one

Every worker holds the whole model and takes the same step. The first one alone writes, validates and prints.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from dragoman.errors import MachineError
from dragoman.training.learner import Learner, Sums, fitting_into_memory
from dragoman.training.micro_batches import rows_of
from dragoman.training.nearby import WORTH_IT, Nearby, find_nearby
from dragoman.training.torchrun import is_under_torchrun

MEETING = timedelta(minutes=10)  # for all workers to have been started
PATIENCE = timedelta(hours=6)  # the first worker may prepare or validate for long; one that dies is noticed at once


@dataclass(frozen=True)
class Workers:
    rank: int = 0
    size: int = 1
    reproducible: bool = False
    sharded: bool = False  # they share out the model too (sharding.py)
    nearby: Nearby | None = None  # how they add up where all are on one machine

    @property
    def first(self) -> bool:
        """The one that writes, validates and prints."""
        return self.rank == 0

    def add_up(self, learner: Learner, step: int, micro_batches: Sequence[Any]) -> Sums:
        """The gradient of the whole step in every worker's parameters, and the sums of its loss."""
        if self.reproducible:
            found = self.add_in_order(learner, step, micro_batches)
        elif self.sharded:
            found = self.keep_in_step(learner, step, micro_batches)
        else:
            found = learner.learn(step, micro_batches, range(self.rank, len(micro_batches), self.size))
            if self.size > 1:
                self.add_gradients(learner)
        if self.size > 1:
            learner.parts = self.largest(learner.parts)  # where one had to cut finer, from now on all do
        return self.add_losses(found, len(micro_batches))

    def add_losses(self, found: list[Sums], count: int) -> Sums:
        """Every number has one owner and is added to zeros, so all workers get the same, whoever owns it."""
        table = torch.zeros(count, 2, dtype=torch.float64)
        for place, sums in zip(range(self.rank, count, self.size), found, strict=True):
            table[place] = torch.tensor(sums, dtype=torch.float64)
        self.sum(table)
        return Sums(sum(table[:, 0].tolist()), int(table[:, 1].sum()))

    def add_gradients(self, learner: Learner) -> None:
        """Those of all workers, and what their norms have counted."""
        flat, known = flatten(learner)
        self.sum(flat)
        self.sum(known)
        unflatten(learner, flat, known)

    def add_in_order(self, learner: Learner, step: int, micro_batches: Sequence[Any]) -> list[Sums]:
        """W micro-batches at a time: each worker learns from one, then they are handed round in their order."""
        count, found = len(micro_batches), list[Sums]()
        total, known = torch.zeros(0), torch.zeros(0)
        before = learner.counts.before()
        for start in range(0, count, self.size):
            learner.counts.put_back(before)
            own = range(start + self.rank, min(count, start + self.rank + 1))
            found += learner.learn(step, micro_batches, own)
            flat, there = flatten(learner)
            for owner in range(min(self.size, count - start)):
                piece, its = (flat, there) if owner == self.rank else (torch.empty_like(flat), torch.empty_like(there))
                self.hand_round(piece, owner)
                self.hand_round(its, owner)
                total = total.add_(piece) if len(total) else piece.clone()
                known = known.add_(its) if len(known) else its.clone()
        unflatten(learner, total, known)
        return found

    def keep_in_step(self, learner: Learner, step: int, micro_batches: Sequence[Any]) -> list[Sums]:
        """In shards every worker is needed for every pass: one that has nothing left to do goes along for nothing. The
        gradients are added up on the way. None can try again by itself, so what does not fit ends the run."""
        learner.model.zero_grad()
        count, found = len(micro_batches), list[Sums]()
        with fitting_into_memory("a step of a model in shards"), learner.counts.adding_up() as counted:
            for place in range(self.rank, count - count % -self.size, self.size):
                own = place < count and rows_of(micro_batches[place]) > 0
                at = place if own else 0
                sums = learner.learn_one(step, at, micro_batches[at], counted, 1 / count, weight=float(own))
                if place < count and not own:  # nothing was counted
                    counted.add(1 / count)
                found += [sums if own else Sums(0.0, 0)] if place < count else []
        for mean in learner.counts.means:
            self.sum(mean)
        return found

    def share_out(self, work: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """`work` on a stack of matrices, each of them done by one worker and known to all afterwards. Not where bits
        count: a product of fewer matrices may be rounded otherwise."""
        if self.size == 1 or self.reproducible:
            return work

        def shared(stack: Float[Tensor, "N R C"]) -> Float[Tensor, "N R C"]:
            made = torch.empty_like(stack)
            own = work(stack[self.rank :: self.size]).contiguous() if self.rank < len(stack) else stack[:0]
            for owner in range(min(self.size, len(stack))):
                its = own if owner == self.rank else torch.empty_like(stack[owner :: self.size])
                self.hand_round(its, owner)
                made[owner :: self.size] = its
            return made

        return shared

    # ── what is said between workers ──

    def sum(self, numbers: Tensor) -> None:
        """Over all workers, in place; all have the same bits then."""
        if self.size > 1:
            with noticing_loss():
                if self.nearby and numbers.dtype == torch.float32 and numbers.numel() >= WORTH_IT:
                    self.nearby.sum(numbers.view(-1))
                else:
                    dist.all_reduce(numbers)

    def hand_round(self, numbers: Tensor, owner: int) -> None:
        if self.size > 1:
            with noticing_loss():
                dist.broadcast(numbers, owner)

    def tell(self, number: int) -> int:
        """What the first worker says."""
        told = torch.tensor([number])
        self.hand_round(told, 0)
        return int(told)

    def largest(self, number: int) -> int:
        """Of the numbers that the workers say."""
        told = torch.tensor([number])
        if self.size > 1:
            with noticing_loss():
                dist.all_reduce(told, dist.ReduceOp.MAX)
        return int(told)

    def wait(self) -> None:
        """Until every worker is here."""
        self.largest(0)


ALONE = Workers()


def flatten(learner: Learner) -> tuple[Float[Tensor, " N"], Float[Tensor, " P"]]:
    """All gradients and all that norms have counted, in one row; and which parameters have a gradient."""
    known = torch.tensor([p.grad is not None for p in learner.parameters], dtype=torch.float32)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learner.parameters]
    return torch.cat([part.flatten() for part in [*gradients, *learner.counts.means]]), known


def unflatten(learner: Learner, flat: Tensor, known: Tensor) -> None:
    """Put a sum of what `flatten` gave back."""
    parts = flat.split([part.numel() for part in [*learner.parameters, *learner.counts.means]])
    for p, part, there in zip(learner.parameters, parts, known.tolist(), strict=False):
        p.grad = part.view_as(p) if there else None  # nobody's parameter stays one that an optimizer leaves alone
    for mean, part in zip(learner.counts.means, parts[len(learner.parameters) :], strict=True):
        mean.copy_(part.view_as(mean))


# ── joining ───────────────────────────────────────────────────────────────────────────────


@contextmanager
def join_workers() -> Iterator[Workers]:
    """The workers that torchrun started, for as long as this block runs; without torchrun one that is alone."""
    if not is_under_torchrun():
        yield ALONE
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with noticing_loss():
        dist.init_process_group("gloo", store=meeting_place(), rank=rank, world_size=size, timeout=PATIENCE)
    try:
        workers = Workers(rank, size)
        yield replace(workers, nearby=find_nearby(workers))
    finally:
        dist.destroy_process_group()


def meeting_place() -> Any:  # a store; torch does not tell mypy of them
    """Where workers leave their addresses for each other. torchrun keeps it when it begins again, and with it the
    addresses of workers that are dead; so every attempt has a corner of its own."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # else the first worker keeps it
    stores: Any = dist
    store = stores.TCPStore(address, port, is_master=not kept and os.environ["RANK"] == "0", timeout=MEETING)
    return stores.PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


@contextmanager
def noticing_loss() -> Iterator[None]:
    """Inside this block nothing is computed, so whatever fails is the way to another worker."""
    try:
        yield
    except RuntimeError as problem:
        raise MachineError(
            "E-ENV-07",
            f"another worker is gone ({' '.join(str(problem).split())[:120]}); with --max-restarts torchrun begins "
            "again from the last checkpoint, and the same command does too",
        ) from None
