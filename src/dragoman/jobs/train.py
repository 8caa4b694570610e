"""A whole training run: loop, validation, saves. The caller is told of everything by events, and shows them.

The same call on the same folder goes on where the last one stopped (run.py). Several workers all do this at once, step
by step together; the first of them alone validates and writes.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from dragoman.errors import DataError, Interrupted, MachineError
from dragoman.jobs.events import Event, Finished, Notice, Report, Validation, flat
from dragoman.jobs.precision import weigh_int8
from dragoman.jobs.run import Run
from dragoman.jobs.shortlisting import learn_shortlist
from dragoman.jobs.signals import Stop
from dragoman.runs.checkpoint import average_weights, is_whole, last_good_checkpoint, set_aside_others
from dragoman.runs.files import check_folder
from dragoman.runs.record import Log, read_log
from dragoman.runs.weights import load_weights, weights_of
from dragoman.training.counting import Counts
from dragoman.training.learner import fitting_into_memory
from dragoman.training.loop import Step

FIVE = 5  # steps in a row without a finite gradient send a run back; the second time they end it
SLOWER = 0.5  # share of the rate that it goes on with then


def follow(run: Run, stop: Stop) -> Iterator[Event]:
    """Train to the last step, or until validation says to stop; save on the way and at the end."""
    t = run.training
    log = Log(run.folder / "log.jsonl", after_step=run.progress.step) if run.workers.first else None
    yield from remake_lost_model(run)
    meter, steps = Meter(run.progress.seconds), run.steps()
    while run.progress.step < t.steps and not run.progress.stopped:
        with fitting_into_memory(f"step {run.progress.step + 1:,}"):
            step = next(steps)
        if step.parts > run.progress.parts:
            yield Notice(tell_parts(run, step.parts))
        count_step(run, step, meter)
        if not step.applied:
            yield Notice(name_bad_step(run, step, log))
        if run.progress.refused >= FIVE:
            yield go_back(run, log)
            meter.begin_anew()
            steps = run.steps()
            continue
        if is_due(step.number, t.report_every, t.steps):
            yield make_report(run, step, meter, log)
        if is_due(step.number, t.validate_every, t.steps):
            with meter.apart():
                model = run.whole_model()
                found = validate(run, model, log) if run.workers.first else None
            if found:
                yield found
        stopping = agree(run, stop)
        run.progress.seconds = meter.seconds()
        planned = is_due(step.number, t.save_every, t.steps) and (not run.progress.refused or step.number == t.steps)
        if planned or run.progress.stopped or stopping:
            with meter.apart():
                said = run.save()
            yield from map(Notice, said)
        if stopping:
            raise Interrupted("E-RUN-07", f"stopped at step {step.number:,} and saved; the same command goes on")
    finished = finish(run)
    if run.workers.first:
        yield from measure_costs(run, stop)
    yield finished


def measure_costs(run: Run, stop: Stop) -> Iterator[Notice]:
    """What quicker ways to use the model cost. It is trained and saved: what is not measured now can be later."""
    for measure in (weigh_int8, learn_shortlist):
        try:
            with fitting_into_memory("measuring what int8 and a shortlist cost"):
                yield from (Notice(sentence) for sentence in measure(run.folder / "model", run.task, stop))
        except MachineError as problem:
            yield Notice(f"{problem.sentence}. The model is saved; the same command measures it")
        if stop.asked:
            raise Interrupted(
                "E-RUN-07",
                f"stopped after all {run.progress.step:,} steps, which are saved, and before all was measured; the "
                "same command goes on",
            )


def tell_parts(run: Run, parts: int) -> str:
    """What comes of it: dropout is drawn for each part, and what a batch norm sees is one."""
    same = "its batch norms see one part at a time" if Counts(run.model) else "the sums are the same"
    return f"a batch did not fit into memory; going on with {parts} parts of each ({same}), also when the run goes on"


def is_due(step: int, every: int, last: int) -> bool:
    return step % every == 0 or step == last


def agree(run: Run, stop: Stop) -> bool:
    """Whether all stop here: any worker may have been asked to. The first one knows what validation says. Who is asked
    from now on, while others are waited for, says so after the next step."""
    told = run.workers.largest(2 if stop.asked else 1 if run.progress.stopped else 0)
    if told == 1 and not run.progress.stopped:
        run.progress.stopped = "the first worker stopped"
    return told == 2


def count_step(run: Run, step: Step, meter: "Meter") -> None:
    progress = run.progress
    progress.step, progress.seconds = step.number, meter.seconds()
    progress.refused = 0 if step.applied else progress.refused + 1
    progress.parts = step.parts
    meter.count(step)


class Meter:
    """Seconds of this run, those of earlier sittings included; and since the last report, loss and tokens per second.
    One step's loss says little, since its texts are of like length: long ones and short ones differ more than an hour
    of training does."""

    def __init__(self, before: float) -> None:
        self.start = time.monotonic() - before
        self.begin_anew()

    def begin_anew(self) -> None:
        self.since, self.tokens, self.learned, self.nats = time.monotonic(), 0, 0, 0.0

    def seconds(self) -> float:
        return time.monotonic() - self.start

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is done in this block is no part of the tokens per second."""
        began = time.monotonic()
        yield
        self.since += time.monotonic() - began

    def count(self, step: Step) -> None:
        self.tokens += step.tokens
        if step.applied:
            self.learned += step.tokens
            self.nats += step.nats_per_token * step.tokens

    def nats_per_token(self) -> float:
        return self.nats / self.learned if self.learned else float("nan")

    def tokens_per_second(self) -> float:
        return self.tokens / max(1e-9, time.monotonic() - self.since)


def make_report(run: Run, step: Step, meter: Meter, log: Log | None) -> Report:
    t, done = run.training, run.progress
    report = Report(
        step=step.number,
        steps=t.steps,
        epoch=step.number * t.accumulate / len(run.order),
        nats_per_token=meter.nats_per_token(),
        tokens_per_second=meter.tokens_per_second(),
        rate=run.rate(step.number),
        gradient_norm=step.gradient_norm,
        seconds=done.seconds,
        seconds_left=done.seconds / done.step * (t.steps - done.step),
        counted=run.task.counted,
    )
    meter.begin_anew()
    if log:
        log.write({"kind": "report", **report._asdict()})
    return report


# ── steps without a finite gradient ───────────────────────────────────────────────────────


def name_bad_step(run: Run, step: Step, log: Log | None) -> str:
    """Which batch it was, in words and in the log."""
    epoch, k = divmod((step.number - 1) * run.training.accumulate, len(run.order))
    if log:
        log.write({"kind": "refused", "step": step.number, "epoch": epoch + 1, "batch": k})
    return f"step {step.number:,} gave no finite gradient and was not applied (batch {k:,} of epoch {epoch + 1:,})"


def go_back(run: Run, log: Log | None) -> Notice:
    """To the last checkpoint before the trouble, with a lower rate. Once: what fails again is not a matter of luck."""
    bad, rate = run.progress.step, run.training.rate * SLOWER
    path = last_good_checkpoint(run.folder) if run.workers.first else None
    there = run.workers.tell(int(path is not None))
    if run.progress.slowed < 1 or not there:
        why = "at half the rate too" if there else "and no good checkpoint is left to go back to"
        kept = "; the last good checkpoint is kept" if there else ""
        raise DataError(
            "E-RUN-08",
            f"{FIVE} steps in a row gave no finite gradient, up to step {bad:,}, {why}{kept}. Look at the batches that "
            f"log.jsonl names, or begin anew with --fresh --set training.rate={rate / 5:g}",
        )
    best, since = run.progress.best_nats, run.progress.validations_since_best
    parts = run.progress.parts
    run.load(path)
    run.progress.slowed, run.progress.parts = SLOWER, parts
    if best < run.progress.best_nats:  # the model of that validation is still there, and only a better one replaces it
        run.progress.best_nats, run.progress.validations_since_best = best, since
    good = run.progress.step
    if path:
        set_aside_others(run.folder, good)
    run.save()  # who begins again from here knows that it was sent back once
    if log:
        refused = [line for line in read_log(log.path) if line.get("kind") == "refused" and line["step"] > good]
        log.drop_after(good)
        log.write({"kind": "returned", "step": good, "from_step": bad, "rate": rate, "refused": refused})
    return Notice(
        f"{FIVE} steps in a row gave no finite gradient; going back to step {good:,} with half the rate ({rate:g}). "
        "The next time ends the run"
    )


# ── validation ────────────────────────────────────────────────────────────────────────────


def validate(run: Run, model: nn.Module, log: Log | None) -> Validation:
    """Loss on the whole validation part, scores of some of it; a better loss than ever saves the model."""
    progress = run.progress
    try:
        with fitting_into_memory(f"the validation after step {progress.step:,}"):
            measured = run.task.measure(model, run.training)
    except MachineError:
        if not run.workers.sharded:  # where they share the model out, all of them must be here to save it
            run.save()  # or the steps up to it would be lost each time
        raise
    best = measured.nats_per_token < progress.best_nats
    progress.best_nats = measured.nats_per_token if best else progress.best_nats  # NaN is never the best
    progress.validations_since_best = 0 if best else progress.validations_since_best + 1
    if run.training.patience and progress.validations_since_best >= run.training.patience:
        progress.stopped = f"no better validation in {run.training.patience} of them"
    if best:
        run.save_model(model)
    validation = Validation(progress.step, measured.nats_per_token, measured.scores, best, measured.samples)
    if log:
        log.write({"kind": "validation", **flat(validation)})
    return validation


def remake_lost_model(run: Run) -> Iterator[Notice]:
    """A model that a validation has saved, and that is gone or damaged since, is made again from what there is."""
    why = why_lost(run) if run.workers.first else ""
    if not run.workers.tell(int(bool(why))):
        return
    run.progress.best_nats = float("inf")
    model = run.whole_model()
    if run.workers.first:
        step = run.progress.step
        yield Notice(f"{why}; it is made again from the checkpoint of step {step:,}, which may be worse than it was")
        validate(run, model, None)
    yield from map(Notice, run.save())


def why_lost(run: Run) -> str:
    folder = run.folder / "model"
    if run.progress.best_nats == float("inf"):  # no validation has saved one
        return ""
    if not folder.exists():
        return f"{folder} is gone"
    try:
        check_folder(folder)
    except DataError as problem:
        return problem.sentence
    return ""


# ── the end ───────────────────────────────────────────────────────────────────────────────


def finish(run: Run) -> Finished:
    with fitting_into_memory("the mean of the last checkpoints, or its validation,"):
        averaged = keep_mean(run)
    if run.workers.tell(averaged):
        run.save()  # so that a run that goes on knows what it has to beat
    progress = run.progress
    reason = progress.stopped or f"all {run.training.steps:,} steps done"
    return Finished(run.folder, progress.step, reason, progress.best_nats, averaged)


def keep_mean(run: Run) -> bool:
    """Keep the mean of the last checkpoints as the model, if it validates better than the best single one."""
    progress, averaged, model = run.progress, False, run.whole_model()
    last = [path for path in run.planned_checkpoints() if is_whole(path)] if run.workers.first else []
    if len(last) > 1:
        trained = {name: tensor.clone() for name, tensor in weights_of(model).items()}
        load_weights(model, average_weights(last), run.folder)
        nats = run.task.validation_loss(model, run.training)
        if nats < progress.best_nats:
            averaged, progress.best_nats = True, nats
            run.save_model(model)
        load_weights(model, trained, run.folder)
    return averaged
