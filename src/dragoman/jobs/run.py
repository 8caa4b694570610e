"""A model in training, in its folder: what it is built of, where it stands, how it is saved and taken up again.

Settings are read from the folder, the newest whole checkpoint is loaded, and batch, dropout and rate of every later
step are what they would have been: all three are functions of the step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dragoman import models
from dragoman.jobs.request import MAY_CHANGE, refuse_changes
from dragoman.jobs.task import Task
from dragoman.runs.checkpoint import (
    checkpoint_folder,
    is_sound,
    load_carried,
    load_checkpoint,
    newest_whole_checkpoint,
    optimizer_tensors,
    planned_checkpoints,
    remove_leftovers,
    remove_old_checkpoints,
    save_checkpoint,
    set_aside_others,
    step_of,
)
from dragoman.runs.model import save_model
from dragoman.runs.progress import Progress
from dragoman.runs.weights import load_weights, weights_of
from dragoman.training.learner import fitting_into_memory, seed_of
from dragoman.training.loop import Step, train
from dragoman.training.micro_batches import MicroBatches
from dragoman.training.optimizers import make_optimizer
from dragoman.training.parallel import ALONE, Workers
from dragoman.training.rows import LearnsByRows, train_rows
from dragoman.training.schedules import share_of_peak
from dragoman.training.settings import TrainingConfig
from dragoman.training.sharding import shard


def build_model(config: Any, seed: int) -> nn.Module:
    """A model with its first random weights, the same for the same seed."""
    torch.manual_seed(seed_of(seed, 0, 0))
    return models.build(config)


@dataclass
class Run:
    """A model in training, in its folder."""

    folder: Path
    task: Task
    training: TrainingConfig
    model: nn.Module
    seed: int
    workers: Workers = ALONE
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        t = self.training
        self.slices = max(t.slices, -(-self.workers.size // t.accumulate))  # at least one micro-batch for each worker
        self.order = self.task.order(t, self.seed)
        self.objective = self.task.objective(t)
        self.optimizer = self.make_optimizer()

    def make_optimizer(self) -> torch.optim.Optimizer | None:
        t = self.training
        by_rows = isinstance(self.objective, LearnsByRows)
        return None if by_rows else make_optimizer(t.optimizer, self.model, t.rate, t.weight_decay, self.workers)

    def rate(self, step: int) -> float:
        t = self.training
        return t.rate * self.progress.slowed * share_of_peak(t.schedule, step, t.warmup, t.steps)

    def steps(self, rate: Callable[[int], float] | None = None) -> Iterator[Step]:
        """The steps to come, without end; `rate` is that of step n, where it is not the run's own."""
        rate = rate or self.rate
        objective: Any = self.objective
        batches, first = self.batches(self.progress.step), self.progress.step + 1
        if self.optimizer is None:
            return train_rows(self.model, batches, objective, rate=rate, first=first)
        return train(
            self.model, batches, objective, self.optimizer,
            rate=rate, clip=self.training.clip, seed=self.seed, first=first, parts=self.progress.parts,
            workers=self.workers,
        )  # fmt: skip

    def batches(self, after: int) -> Iterator[MicroBatches]:
        """The micro-batches of step `after` + 1, + 2 …; the place in the corpus follows from the step alone."""
        for place in count(after * self.training.accumulate, self.training.accumulate):
            yield MicroBatches(self.batch, place, self.training.accumulate, self.slices)

    def batch(self, place: int) -> Any:
        return self.order.batch(*divmod(place, len(self.order)))

    def save(self) -> list[str]:
        """A checkpoint of now; what is said about older ones that cannot be removed."""
        if not self.workers.first:
            self.hand_over()
            return []
        carried, state = self.objective.carried(), {**vars(self.progress), "settings": self.lasting()}
        with fitting_into_memory(f"the checkpoint of step {self.progress.step:,}"):
            saved = save_checkpoint(self.folder, self.progress.step, self.model, self.optimizer, state, carried)
            sound = is_sound(saved)
        if not sound:  # a run that goes back will need an older one
            return []
        return remove_old_checkpoints(self.folder, saved, keep=self.planned_checkpoints())  # it was read back by now

    def lasting(self) -> dict[str, Any]:
        """The settings that each step hangs on: in a checkpoint they cannot be edited."""
        flat = {f"training.{key}": value for key, value in self.training.model_dump().items()}
        return {key: value for key, value in {**flat, "seed": self.seed}.items() if key not in MAY_CHANGE}

    def planned_checkpoints(self) -> list[Path]:
        """The newest of those that would be there without any interruption, up to now."""
        t = self.training
        found = planned_checkpoints(self.folder, t.save_every, last=t.steps)
        return [path for path in found if step_of(path) <= self.progress.step][: t.average]

    def save_model(self, model: nn.Module) -> None:
        config: Any = self.model.config
        save_model(self.folder / "model", config, weights_of(model), self.task.tokenizers, self.task.about)

    def whole_model(self) -> nn.Module:
        """The model to measure; where workers share it out, a whole one, which all of them put together."""
        if not self.workers.sharded:
            return self.model.eval()
        config: Any = self.model.config
        made = models.build(config)
        load_weights(made, weights_of(self.model), self.folder)
        return made.eval()

    def hand_over(self) -> None:
        """What the first worker writes is in shards with all of them."""
        if self.workers.sharded and self.optimizer:
            weights_of(self.model)
            optimizer_tensors(self.model, self.optimizer)

    def resume(self) -> list[str]:
        """Go back to the newest whole checkpoint, if there is one; what is said about damaged ones."""
        path, said = None, list[str]()
        if self.workers.sharded:  # not before: all workers must be here for it
            shard(self.model)
            self.optimizer = self.make_optimizer()
        if self.workers.first:
            remove_leftovers(self.folder)
            path, said = newest_whole_checkpoint(self.folder)
        self.load(path)
        if path:
            set_aside_others(self.folder, step_of(path))
        said += self.told_of_more_steps()
        if self.training.steps > self.progress.steps:  # a new run, or more steps were asked for
            self.progress.stopped, self.progress.validations_since_best = "", 0
        self.progress.steps = self.training.steps
        return said

    def told_of_more_steps(self) -> list[str]:
        """The rate has fallen towards the end that was planned; it cannot be taken back."""
        t, done, planned = self.training, self.progress.step, self.progress.steps
        before, now = (share_of_peak(t.schedule, done, t.warmup, steps) for steps in (planned, t.steps))
        if not done or before == now:
            return []
        return [
            f"the first {done:,} steps were taken with a rate that ends at step {planned:,}: what comes out is not "
            f"what {t.steps:,} steps asked for at once would give"
        ]

    def load(self, path: Path | None) -> None:
        """The checkpoint that the first worker found; it is there until all have read it."""
        step = self.workers.tell(step_of(path) if path else -1)
        if step >= 0:
            found = checkpoint_folder(self.folder, step)
            state = load_checkpoint(found, self.model, self.optimizer)
            refuse_changes(self.lasting(), state.pop("settings", self.lasting()), self.folder)  # older ones have none
            self.progress = Progress.read(state, found)
            self.objective.carry(self.model, load_carried(found))
        self.workers.wait()
