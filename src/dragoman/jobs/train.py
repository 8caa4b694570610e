"""A whole training run: plan, loop, validation, saves. The caller is told of everything by events, and shows them.

The same call on the same folder goes on where the last one stopped: settings are read from the folder, the newest
whole checkpoint is loaded, and batch, dropout and rate of every later step are what they would have been.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from dragoman import models
from dragoman.errors import DataError, Interrupted
from dragoman.jobs.signals import Stop
from dragoman.jobs.task import Sample, Task
from dragoman.runs.checkpoint import (
    average_weights,
    is_whole,
    load_carried,
    load_checkpoint,
    newest_whole_checkpoint,
    planned_checkpoints,
    remove_old_checkpoints,
    save_checkpoint,
)
from dragoman.runs.model import load_weights, save_model, weights_of
from dragoman.runs.record import Log
from dragoman.training.loop import Step, seed_of, train
from dragoman.training.optimizers import make_optimizer
from dragoman.training.rows import LearnsByRows, train_rows
from dragoman.training.schedules import share_of_peak
from dragoman.training.settings import TrainingConfig

FIVE = 5  # steps in a row without a finite gradient end a run


# ── what the caller is told ───────────────────────────────────────────────────────────────


class Report(NamedTuple):
    step: int
    steps: int
    epoch: float
    nats_per_token: float
    tokens_per_second: float
    rate: float
    gradient_norm: float
    seconds: float  # trained so far, over all sittings
    seconds_left: float
    counted: str = "tokens"  # or texts, or images: what the loss is a mean over


class Validation(NamedTuple):
    step: int
    nats_per_token: float
    scores: dict[str, float]  # by name: bleu and chrf, or perplexity
    best: bool
    samples: list[Sample]


class Notice(NamedTuple):
    sentence: str


class Finished(NamedTuple):
    run: Path
    step: int
    reason: str
    best_nats: float
    averaged: bool


Event = Report | Validation | Notice | Finished


# ── the run ───────────────────────────────────────────────────────────────────────────────


@dataclass
class Progress:
    """What changes as a run goes on and is saved with it, besides weights and optimizer."""

    step: int = 0
    seconds: float = 0.0
    best_nats: float = float("inf")
    validations_since_best: int = 0
    stopped: str = ""  # why it ended before its last step
    steps: int = 0  # how many were planned when this was saved


@dataclass
class Run:
    """A model in training, in its folder."""

    folder: Path
    task: Task
    training: TrainingConfig
    model: nn.Module
    seed: int
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        t = self.training
        self.order = self.task.order(t, self.seed)
        self.objective = self.task.objective(t)
        by_rows = isinstance(self.objective, LearnsByRows)
        self.optimizer = None if by_rows else make_optimizer(t.optimizer, self.model, t.rate, t.weight_decay)

    def rate(self, step: int) -> float:
        t = self.training
        return t.rate * share_of_peak(t.schedule, step, t.warmup, t.steps)

    def steps(self, rate: Callable[[int], float]) -> Iterator[Step]:
        """The steps to come, without end; `rate` is that of step n."""
        objective: Any = self.objective
        batches, first = self.batches(self.progress.step), self.progress.step + 1
        if self.optimizer is None:
            return train_rows(self.model, batches, objective, rate=rate, first=first)
        return train(
            self.model, batches, objective, self.optimizer,
            rate=rate, clip=self.training.clip, seed=self.seed, first=first,
        )  # fmt: skip

    def batches(self, after: int) -> Iterator[list[Any]]:
        """The micro-batches of step `after` + 1, + 2 …; the place in the corpus follows from the step alone."""
        place = after * self.training.accumulate
        while True:
            yield [self.batch(place + i) for i in range(self.training.accumulate)]
            place += self.training.accumulate

    def batch(self, place: int) -> Any:
        return self.order.batch(*divmod(place, len(self.order)))

    def save(self) -> None:
        carried = self.objective.carried()
        save_checkpoint(self.folder, self.progress.step, self.model, self.optimizer, vars(self.progress), carried)
        remove_old_checkpoints(self.folder, keep=self.planned_checkpoints())

    def planned_checkpoints(self) -> list[Path]:
        """The newest of those that would be there without any interruption."""
        t = self.training
        return planned_checkpoints(self.folder, t.save_every, last=t.steps)[: t.average]

    def save_model(self) -> None:
        config: Any = self.model.config
        save_model(self.folder / "model", config, weights_of(self.model), self.task.tokenizers, self.task.about)

    def resume(self) -> list[str]:
        """Go back to the newest whole checkpoint, if there is one; what is said about damaged ones."""
        path, said = newest_whole_checkpoint(self.folder)
        if path is not None:
            self.progress = Progress(**load_checkpoint(path, self.model, self.optimizer))
            self.objective.carry(self.model, load_carried(path))
        if self.training.steps > self.progress.steps:  # a new run, or more steps were asked for
            self.progress.stopped, self.progress.validations_since_best = "", 0
        self.progress.steps = self.training.steps
        return said


def follow(run: Run, stop: Stop) -> Iterator[Event]:
    """Train to the last step, or until validation says to stop; save on the way and at the end."""
    t, progress = run.training, run.progress
    log = Log(run.folder / "log.jsonl", after_step=progress.step)
    clock = Clock(progress.seconds)
    refused = 0
    steps = run.steps(run.rate)
    while progress.step < t.steps and not progress.stopped:
        step = next(steps)
        progress.step, progress.seconds = step.number, clock.seconds()
        clock.count(step.tokens)
        if not step.applied:
            refused += 1
            yield Notice(name_bad_step(run, step))
            refuse_to_go_on(run, refused)
        else:
            refused = 0
        if step.number % t.report_every == 0 or step.number == t.steps:
            report = make_report(run, step, clock)
            log.write({"kind": "report", **report._asdict()})
            yield report
        if step.number % t.validate_every == 0 or step.number == t.steps:
            validation = validate(run)
            log.write({"kind": "validation", **flat(validation)})
            yield validation
        progress.seconds = clock.seconds()
        if step.number % t.save_every == 0 or step.number == t.steps or progress.stopped or stop.asked:
            run.save()
        if stop.asked:
            raise Interrupted("E-RUN-07", f"stopped at step {step.number:,} and saved; the same command goes on")
    yield finish(run)


class Clock:
    """Seconds of this run, those of earlier sittings included, and tokens per second since the last report."""

    def __init__(self, before: float) -> None:
        self.start = time.monotonic() - before
        self.since, self.tokens = time.monotonic(), 0

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def count(self, tokens: int) -> None:
        self.tokens += tokens

    def tokens_per_second(self) -> float:
        now = time.monotonic()
        speed = self.tokens / max(1e-9, now - self.since)
        self.since, self.tokens = now, 0
        return speed


def make_report(run: Run, step: Step, clock: Clock) -> Report:
    t, done = run.training, run.progress
    return Report(
        step=step.number,
        steps=t.steps,
        epoch=step.number * t.accumulate / len(run.order),
        nats_per_token=step.nats_per_token,
        tokens_per_second=clock.tokens_per_second(),
        rate=run.rate(step.number),
        gradient_norm=step.gradient_norm,
        seconds=done.seconds,
        seconds_left=done.seconds / done.step * (t.steps - done.step),
        counted=run.task.counted,
    )


def name_bad_step(run: Run, step: Step) -> str:
    epoch, k = divmod((step.number - 1) * run.training.accumulate, len(run.order))
    return f"step {step.number:,} gave no finite gradient and was not applied (batch {k:,} of epoch {epoch + 1:,})"


def refuse_to_go_on(run: Run, refused: int) -> None:
    if refused >= FIVE:
        half = run.training.rate / 2
        raise DataError(
            "E-RUN-08",
            f"{FIVE} steps in a row gave no finite gradient; the last good checkpoint is kept. Start again with "
            f"--fresh --set training.rate={half:g}, half of what it was",
        )


# ── validation ────────────────────────────────────────────────────────────────────────────


def validate(run: Run) -> Validation:
    """Loss on the whole validation part, scores of some of it; a better loss than ever saves the model."""
    run.model.eval()
    measured = run.task.measure(run.model, run.training)
    progress = run.progress
    best = measured.nats_per_token < progress.best_nats
    progress.best_nats = min(measured.nats_per_token, progress.best_nats)
    progress.validations_since_best = 0 if best else progress.validations_since_best + 1
    if run.training.patience and progress.validations_since_best >= run.training.patience:
        progress.stopped = f"no better validation in {run.training.patience} of them"
    if best:
        run.save_model()
    return Validation(progress.step, measured.nats_per_token, measured.scores, best, measured.samples)


def flat(validation: Validation) -> dict[str, Any]:
    """Its values by name, each score under its own."""
    return {**{name: value for name, value in validation._asdict().items() if name != "scores"}, **validation.scores}


# ── the end ───────────────────────────────────────────────────────────────────────────────


def finish(run: Run) -> Finished:
    """Keep the mean of the last checkpoints as the model, if it validates better than the best single one."""
    progress, t = run.progress, run.training
    averaged = False
    last = [path for path in run.planned_checkpoints() if is_whole(path)]
    if len(last) > 1:
        trained = {name: tensor.clone() for name, tensor in weights_of(run.model).items()}
        load_weights(run.model, average_weights(last), run.folder)
        run.model.eval()
        nats = run.task.validation_loss(run.model, run.training)
        if nats < progress.best_nats:
            averaged, progress.best_nats = True, nats
            run.save_model()
        load_weights(run.model, trained, run.folder)
    if averaged:
        run.save()  # so that a run that goes on knows what it has to beat
    reason = progress.stopped or f"all {t.steps:,} steps done"
    return Finished(run.folder, progress.step, reason, progress.best_nats, averaged)


def build_model(config: Any, seed: int) -> nn.Module:
    """A model with its first random weights, the same for the same seed."""
    torch.manual_seed(seed_of(seed, 0, 0))
    return models.build(config)
