"""Begin a run, or go on with one: the job that `dragoman train` and `dragoman.train` call.

    new run       find the corpus, prepare it, plan, time a few steps, write run.toml
    known run     read run.toml; refuse what may not change; find the newest checkpoint
    either way    follow the run to its end

All of it is a generator of events. `--minutes` is a real limit: it counts from the moment of the call.

Under torchrun the first worker leads: it does all of the above, and the others join it in the run it has made.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import islice, pairwise
from math import inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dragoman.config import Settings
from dragoman.errors import DataError, UsageError
from dragoman.jobs import plan
from dragoman.jobs.events import Event, Notice
from dragoman.jobs.given_vectors import fit_width, open_vectors, put_vectors, refuse_other_width
from dragoman.jobs.machine import collecting_anew, keep_memory, peak_memory, refuse_full_disk, use_threads
from dragoman.jobs.place import beginning, is_begun, refuse_foreign, set_aside
from dragoman.jobs.record import (
    Timing,
    describe,
    other_machine,
    record,
    refuse_changed_files,
    refuse_other_tokenizer,
)
from dragoman.jobs.recorded import read_recorded, reopen_task
from dragoman.jobs.request import Request, refuse_changes
from dragoman.jobs.run import Run, build_model
from dragoman.jobs.signals import Stop, polite_stop
from dragoman.jobs.task import Sources, Task
from dragoman.jobs.tasks import job_of, refuse_unknown_settings, resolve, with_types
from dragoman.jobs.train import follow
from dragoman.models import find_family
from dragoman.runs.checkpoint import SCRATCH, newest_whole_checkpoint, recover_checkpoints, save_checkpoint
from dragoman.runs.data import refuse_damaged_data, seal_data
from dragoman.runs.files import ROOM, recover_folder
from dragoman.runs.lock import only_writer
from dragoman.runs.model import SavedModel, open_model
from dragoman.runs.record import write_toml
from dragoman.runs.weights import take_over
from dragoman.text.stream import WindowOrder
from dragoman.training.counting import Counts
from dragoman.training.learner import fitting_into_memory
from dragoman.training.parallel import Workers, join_workers
from dragoman.training.rows import LearnsByRows
from dragoman.training.settings import TrainingConfig
from dragoman.training.sharding import refuse_odd_sharding
from dragoman.training.team import team_size
from dragoman.training.torchrun import is_under_torchrun

VALIDATING = 0.06  # at most this share of the time goes into validation
MOST_VALIDATIONS, FEWEST_VALIDATIONS = 12, 3
TIMING, LONGEST_TIMING = 0.04, 20.0  # share of the time given to measuring a step, and seconds at most
RESERVE = 0.06  # share of the time left over: the mean step takes 3 % longer than the median, and machines slow down

SLICES = 4  # parts of each batch where workers share it: the same for one, two and four of them


class Planned(NamedTuple):
    """What will be done, as pairs of a word and a sentence."""

    lines: list[tuple[str, str]]


class Began(NamedTuple):
    """The moment of the call, and whether what is done before the first step is part of the time given."""

    moment: float
    preparing_counts: bool

    def seconds(self) -> float:
        return time.monotonic() - self.moment

    def seconds_used(self) -> float:
        return self.seconds() if self.preparing_counts else 0.0


def start(
    request: Request,
    *,
    threads: int | None = None,
    fresh: bool = False,
    dry_run: bool = False,
    training_alone: bool = False,
) -> Iterator[Event | Planned]:
    """With `training_alone` the minutes are those of the steps and validations; what comes before is not counted."""
    began = Began(time.monotonic(), preparing_counts=not training_alone)
    keep_memory()
    use_threads(threads_for(request, threads))
    request = resolve(request)
    refuse_unknown_settings(request, request.task)
    request = with_types(request)
    sources = job_of(request.task, request.family).find(request)
    folder = Path(request.out or f"runs/{sources.name}-{request.family}-{request.preset or 'auto'}")
    with join_workers() as workers:
        if dry_run:
            refuse_foreign(folder)
            with TemporaryDirectory() as scratch:
                yield from begin(Path(scratch), folder, request, sources, began, workers) if workers.first else ()
        elif workers.first:
            yield from lead(folder, request, sources, began, workers, fresh=fresh)
        else:
            yield from assist(folder, workers)


def threads_for(request: Request, threads: int | None) -> int | None:
    """As asked for; one where the bits must not hang on their number."""
    if not TrainingConfig.read(request.asked("training"), section="training").reproducible:
        return threads
    if threads not in (None, 1):
        raise UsageError(
            "E-USE-07",
            f"--reproducible gives each worker one thread, and --threads {threads} were asked for; leave it out",
        )
    return 1


def lead(
    folder: Path, request: Request, sources: Sources, began: Began, workers: Workers, *, fresh: bool
) -> Iterator[Event | Planned]:
    """What the first worker does, and the only one: begin the run or open it, and then train."""
    with ExitStack() as held:
        with saying_when_ready(workers) as ready:
            refuse_foreign(folder)
            held.enter_context(only_writer(folder))
            if is_begun(folder) and not fresh:
                run = yield from go_on(folder, request, workers)
            else:
                yield from begin_anew(folder, needed(request, sources))  # without run.toml it is what a kill left over
                with beginning(folder):
                    run = yield from begin(folder, folder, request, sources, began, workers)
            ready.append(run.training.steps)
        with polite_stop() as stop:  # before this there is nothing to save
            yield from resume_and_follow(run, stop)


@contextmanager
def saying_when_ready(workers: Workers) -> Iterator[list[int]]:
    """The others wait meanwhile. They are told the number of steps, or 0 if there is nothing to do together."""
    steps: list[int] = []
    try:
        yield steps
    finally:
        workers.tell(steps[0] if steps else 0)


def assist(folder: Path, workers: Workers) -> Iterator[Event]:
    """What every other worker does: open the run when it is ready, and train with the first."""
    steps = workers.tell(0)
    if steps:  # else the first one says what is wrong
        recorded = read_recorded(folder)
        training = TrainingConfig.read({**recorded["training"], "steps": steps}, section="training")
        with polite_stop() as stop:
            yield from resume_and_follow(reopen(folder, recorded, training, workers), stop)


def resume_and_follow(run: Run, stop: Stop) -> Iterator[Event]:
    yield from (Notice(sentence) for sentence in run.resume())
    done, steps = run.progress.step, run.training.steps
    if done >= steps or run.progress.stopped:
        why = run.progress.stopped or f"all {steps:,} steps are done"
        yield Notice(f"{run.folder} is finished ({why}); raise --steps, --minutes or --epochs to go on")
    elif done:
        yield Notice(f"going on from step {done:,} of {steps:,}")
    with collecting_anew():
        yield from follow(run, stop)


# ── a new run ─────────────────────────────────────────────────────────────────────────────


def begin_anew(folder: Path, kept: Sequence[Path]) -> Iterator[Event]:
    if said := set_aside(folder, kept):
        yield Notice(said)


def needed(request: Request, sources: Sources) -> list[Path]:
    """What the run reads."""
    return [*sources.paths, *(Path(path) for path in (request.start_from, request.embeddings) if path)]


def begin(
    folder: Path, named: Path, request: Request, sources: Sources, began: Began, workers: Workers
) -> Generator[Event | Planned, None, Run]:
    """Prepare, plan and time; run.toml comes last, so a run without it has not begun. `named` is what people see."""
    saved = open_model(Path(request.start_from)) if request.start_from else None
    given = open_vectors(Path(request.embeddings)) if request.embeddings else None
    said: list[str] = []
    task = job_of(request.task, request.family).prepare(folder, request, sources, saved, said.append)
    yield from (Notice(sentence) for sentence in said)

    minutes = request.minutes or task.usual_minutes()
    speed = plan.USUAL_MACHINE if plan.is_counted(request) else plan.measure_machine()
    work = speed * 60 * minutes
    sized = fit_width(request, given.vectors.shape[1]) if given else request
    config = task.plan_from(saved_config(saved)) if saved else task.plan_model(sized, work)
    if given:
        refuse_other_width(config, given, request.embeddings)
    task.plan_use(config, request)
    asked = task.plan_training(config) | request.asked("training")
    if TrainingConfig.read(asked, section="training").sharding:
        asked = {"optimizer": "adamw"} | asked  # the usual one needs whole matrices
    asked = share_out(task, config, asked, workers) | asked
    counted = "steps" in asked or request.epochs or task.most_epochs(config) < inf  # the steps, and not the time alone
    moment = 1.0 if counted else min(LONGEST_TIMING, TIMING * 60 * minutes)
    with fitting_into_memory("a step of this run, or its validation,"):
        timing = time_run(folder, named, task, config, asked, request.seed, moment, workers.size)
    left = 60 * minutes - began.seconds_used()
    training = fit_training(config, asked, request.epochs, task, timing, left, fine_tuning=saved is not None)
    if training.steps == 1 and "steps" not in asked and not request.epochs:
        yield Notice(f"{minutes:g} minutes are over with preparing or one step; one step is trained, so give it more")
    run = Run(folder, task, training, build_model(config, request.seed), request.seed, as_asked(workers, training))
    if saved:
        take_over(run.model, saved.model, Path(request.start_from))
    vectors = put_vectors(run.model, task.tokenizers, given, request.embeddings) if given else ""
    yield Planned(describe(run, named, timing, began.seconds(), vectors))
    seal_data(folder)
    run.progress.steps = training.steps
    run.save()  # from here on a kill costs nothing
    write_toml(folder / "run.toml", record(request, sources, run, timing, minutes, vectors))
    return run


def share_out(task: Task, config: Settings, asked: dict[str, Any], workers: Workers) -> dict[str, Any]:
    """Into how many parts to cut each batch: one for each thread. Where workers come and go they are the same parts
    for any number of them; a step of which nothing can be shared is for one thread or worker, or for all threads of
    one in every operation."""
    training = TrainingConfig.read(asked, section="training")
    refuse_odd_sharding(training)
    refuse_what_cannot_be_shared(task, training, workers)
    if cannot_be_shared(task, training):
        return {}
    if is_under_torchrun() or training.reproducible:
        return {"slices": -(-max(SLICES, workers.size) // training.accumulate)}
    whole = config.model_dump().get("batch_norm", False)  # what its norms see must be the whole batch
    return {} if whole else {"slices": team_size()}


def cannot_be_shared(task: Task, training: TrainingConfig) -> str:
    """Why a batch cannot be cut into parts for several workers, if so."""
    if isinstance(task.objective(training), LearnsByRows):
        return "vectors of words are moved one after another"
    if isinstance(task.order(training, 0), WindowOrder):
        return "its state goes on from one window of the text into the next (--set training.shuffle=true would not)"
    return ""


def refuse_what_cannot_be_shared(task: Task, training: TrainingConfig, workers: Workers) -> None:
    why = cannot_be_shared(task, training)
    if why and (workers.size > 1 or training.slices > 1):
        raise UsageError(
            "E-USE-20",
            f"{max(workers.size, training.slices)} workers cannot share this training: {why}; start it on one",
        )
    micro_batches = training.accumulate * training.slices
    if training.reproducible and 1 < micro_batches < workers.size:
        raise UsageError(
            "E-USE-21",
            f"a step of this run is made of {micro_batches} micro-batches and {workers.size} workers were started; "
            f"start {micro_batches} or fewer, or begin anew with --set training.slices={workers.size}",
        )


def fit_training(
    config: Settings,
    asked: dict[str, Any],
    epochs: float | None,
    task: Task,
    timing: Timing,
    seconds: float,
    *,
    fine_tuning: bool,
) -> TrainingConfig:
    """As many steps as were asked for, or as the seconds allow, less the time that validations take."""
    validations = int(min(MOST_VALIDATIONS, max(FEWEST_VALIDATIONS, VALIDATING * seconds / timing.validation)))
    if epochs or "steps" in asked:
        validations = MOST_VALIDATIONS  # they choose the model that is kept: no clock may have a say in that
    steps = int(((1 - RESERVE) * seconds - (validations + 1) * timing.validation) / timing.step)
    most = epochs or task.most_epochs(config)
    if most < inf:
        wanted = steps_for(most, task, TrainingConfig.read(asked, section="training"))
        steps = wanted if epochs else min(steps, wanted)
    steps = TrainingConfig.read({"steps": asked.get("steps", max(1, steps))}, section="training").steps
    return plan.plan_training(config, asked, steps, validations, fine_tuning=fine_tuning)


def steps_for(epochs: float, task: Task, training: TrainingConfig) -> int:
    return max(1, round(epochs * len(task.order(training, 0)) / training.accumulate))


def time_run(
    folder: Path,
    named: Path,
    task: Task,
    config: Settings,
    asked: dict[str, Any],
    seed: int,
    seconds: float,
    workers: int,
) -> Timing:
    """Train a throw-away copy for a moment, and validate it once: the outcome of the real one is not touched. What will
    not fit on the disk is said before.

    One worker is timed, with the work of all; a step takes all of them about its share.
    """
    training = plan.plan_training(config, asked, 1000, 1, fine_tuning=False)
    run = Run(folder, task, training, build_model(config, seed), seed)
    refuse_full_disk(named, disk_needed(run))
    steps = run.steps(lambda _: 1e-6)
    list(islice(steps, 4))  # the first steps allocate
    times, start = [time.monotonic()], time.monotonic()
    while times[-1] - start < seconds or len(times) < 3:
        next(steps)
        times.append(time.monotonic())
    usual = median(b - a for a, b in pairwise(times))  # a neighbour's burst should not shorten the whole run
    return Timing(usual / workers, time_validation(run), peak_memory())


def time_validation(run: Run) -> float:
    start = time.monotonic()
    about, run.task.about = run.task.about, run.task.quick_about()
    run.model.eval()
    run.task.measure(run.model, run.training)
    run.task.about = about
    with TemporaryDirectory(dir=run.folder, prefix=SCRATCH) as scratch:
        save_checkpoint(Path(scratch), 0, run.model, run.optimizer, {})
    return time.monotonic() - start


def saved_config(saved: SavedModel) -> Any:
    return saved.model.config


def disk_needed(run: Run) -> int:
    """Checkpoints hold weights and two numbers more for each, one where no optimizer is; and there is the model. Each
    save wants some room beside what it writes."""
    size = 4 * sum(parameter.numel() for parameter in run.model.parameters())
    return (3 if run.optimizer else 2) * size * (run.training.average + 2) + 2 * size + ROOM


# ── a known run ───────────────────────────────────────────────────────────────────────────


def go_on(folder: Path, request: Request, workers: Workers) -> Generator[Event | Planned, None, Run]:
    recover_folder(folder / "model")
    recorded = read_recorded(folder)
    name, family = recorded["run"].get("task", "translate"), recorded["run"]["family"]
    before = Request.read({**recorded["asked"], "task": name, "family": family}, section="asked")
    refuse_changes(request.lasting(), with_types(before).lasting(), folder)
    refuse_changed_files(recorded["files"], folder)
    recover_checkpoints(folder)
    refuse_lost_checkpoints(folder)
    refuse_damaged_data(folder)
    refuse_other_tokenizer(recorded["run"], folder)
    task = reopen_task(folder, recorded)
    training = lengthen(TrainingConfig.read(recorded["training"], section="training"), request, recorded, task)
    done = steps_saved(folder) if training.steps < recorded["training"]["steps"] else 0
    if training.steps < done:
        yield Notice(f"{folder} has {done:,} steps already, and {training.steps:,} were asked for; none is taken back")
        training = training.changed({"steps": done}, section="training")
    elif training.model_dump() != recorded["training"]:
        write_toml(folder / "run.toml", {**recorded, "training": training.model_dump()})
    refuse_what_cannot_be_shared(task, training, workers)
    run = reopen(folder, recorded, training, workers)
    if said := other_machine(recorded["run"], run):
        yield Notice(said)
    if run.slices > training.slices and Counts(run.model):
        yield Notice(
            f"{workers.size} workers share a batch in {run.slices} parts, of which the run was begun with "
            f"{training.slices}: its batch norms see each part by itself, so losses are not those of fewer workers"
        )
    return run


def reopen(folder: Path, recorded: dict[str, Any], training: TrainingConfig, workers: Workers) -> Run:
    """The run as it was begun, before its newest checkpoint is loaded."""
    name, family, seed = recorded["run"].get("task", "translate"), recorded["run"]["family"], recorded["asked"]["seed"]
    task = reopen_task(folder, recorded)
    config = find_family(name, family).config.read(recorded["model"], section="model")
    return Run(folder, task, training, build_model(config, seed), seed, as_asked(workers, training))


def as_asked(workers: Workers, training: TrainingConfig) -> Workers:
    """In what way these workers add up."""
    return replace(workers, reproducible=training.reproducible, sharded=training.sharding and workers.size > 1)


def refuse_lost_checkpoints(folder: Path) -> None:
    """Without them a run would begin at step 1 again, and put a worse model in the place of the one it made; or begin
    with random weights where it was given others. There is one from before run.toml was written."""
    found, said = newest_whole_checkpoint(folder)
    if found is None:
        model = (folder / "model").is_dir()
        kind = f"{'a model' if model else 'settings'} and no {'whole ' if said else ''}checkpoint to go on from"
        why = f" ({'; '.join(said)})" if said else ""
        onward = f", or train on from the model: --from {folder} --out NEW" if model else ""
        raise DataError("E-RUN-16", f"{folder} has {kind}{why}; begin anew with --fresh, which moves it aside{onward}")


def steps_saved(folder: Path) -> int:
    """As far as the newest checkpoint goes that can be gone on from."""
    newest = newest_whole_checkpoint(folder)[0]
    return int(newest.name[5:]) if newest else 0


def lengthen(training: TrainingConfig, request: Request, recorded: dict[str, Any], task: Task) -> TrainingConfig:
    """The settings it had, with more steps if more were asked for: outright, by minutes, or by epochs."""
    training = training.changed(request.asked("training"), section="training")
    made, steps, step = recorded["plan"], training.steps, recorded["timing"]["step"] / 60
    if "steps" in request.asked("training"):
        return training
    asked = recorded["asked"].get("minutes")
    before = made["minutes"] if asked else steps * step  # what it was given, or what it takes
    if request.minutes and request.minutes > before:
        steps += int((request.minutes - before) / step)
        made["minutes"] = recorded["asked"]["minutes"] = request.minutes
    if request.epochs:
        steps = max(steps, steps_for(request.epochs, task, training))
    return training.changed({"steps": steps}, section="training")
