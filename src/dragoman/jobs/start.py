"""Begin a run, or go on with one: the job that `dragoman train` and `dragoman.train` call.

    new run       find the corpus, prepare it, plan, time a few steps, write run.toml
    known run     read run.toml; refuse what may not change; find the newest checkpoint
    either way    follow the run to its end

All of it is a generator of events. Standing time limits are real: `--minutes` counts from the moment of the call.
"""

import platform
import shutil
import time
from collections.abc import Generator, Iterator
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

import dragoman
from dragoman.config import Settings, nearest
from dragoman.decoding.beam import SearchConfig
from dragoman.errors import DataError, UsageError
from dragoman.jobs import plan
from dragoman.jobs.machine import keep_memory, peak_memory, refuse_full_disk, use_threads
from dragoman.jobs.prepare import DataConfig, Prepared, Survey, open_prepared, prepare, survey
from dragoman.jobs.request import Request, refuse_changes
from dragoman.jobs.signals import Stop, polite_stop
from dragoman.jobs.train import Event, Notice, Run, about_model, build_model, follow, measure
from dragoman.models import config_class_of
from dragoman.models.transformer import PRESETS, TransformerConfig
from dragoman.runs.checkpoint import save_checkpoint
from dragoman.runs.files import recover_folder
from dragoman.runs.lock import only_writer
from dragoman.runs.model import SavedModel, load_weights, open_model, weights_of
from dragoman.runs.record import read_toml, write_toml
from dragoman.text.corpus import Corpus, find_corpus, fingerprint
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers
from dragoman.training.loop import train as train_steps
from dragoman.training.settings import TrainingConfig

VALIDATING = 0.06  # at most this share of the time goes into validation
MOST_VALIDATIONS, FEWEST_VALIDATIONS = 12, 3
TIMING = 0.04  # share of the time given to measuring a step, up to ten seconds


SECTIONS: dict[str, type[Settings]] = {
    "data": DataConfig,
    "tokenizer": TokenizerConfig,
    "training": TrainingConfig,
    "search": SearchConfig,
}
RUN_FILES = {"run.toml", "log.jsonl", "checkpoints", "model", "model.old", "tokenizer", "data"}


class Planned(NamedTuple):
    """What will be done, as pairs of a word and a sentence."""

    lines: list[tuple[str, str]]


class Timing(NamedTuple):
    step: float  # seconds
    validation: float
    memory: int  # bytes, at most


def start(
    request: Request,
    *,
    threads: int | None = None,
    fresh: bool = False,
    dry_run: bool = False,
) -> Iterator[Event | Planned]:
    began = time.monotonic()
    keep_memory()
    use_threads(threads)
    refuse_unknown_settings(request)
    corpus, valid = find_corpora(request)
    folder = folder_of(request, corpus)
    if dry_run:
        with TemporaryDirectory() as scratch:
            yield from begin(Path(scratch), folder, request, corpus, valid, began)
        return
    with only_writer(folder):
        begun = (folder / "run.toml").exists()
        if fresh or not begun:
            yield from set_aside(folder)  # without run.toml it is what a kill left over
        if begun and not fresh:
            run = yield from go_on(folder, request)
        else:
            run = yield from begin(folder, folder, request, corpus, valid, began)
        with polite_stop() as stop:  # before this there is nothing to save
            yield from resume_and_follow(run, stop)


def resume_and_follow(run: Run, stop: Stop) -> Iterator[Event]:
    yield from (Notice(sentence) for sentence in run.resume())
    done, steps = run.progress.step, run.training.steps
    if done >= steps or run.progress.stopped:
        why = run.progress.stopped or f"all {steps:,} steps are done"
        yield Notice(f"{run.folder} is finished ({why}); raise --steps or --minutes to go on")
    elif done:
        yield Notice(f"going on from step {done:,} of {steps:,}")
    yield from follow(run, stop)


# ── a new run ─────────────────────────────────────────────────────────────────────────────


def begin(
    folder: Path, named: Path, request: Request, corpus: Corpus, valid: Corpus | None, began: float
) -> Generator[Event | Planned, None, Run]:
    """Prepare, plan and time; run.toml comes last, so a run without it has not begun. `named` is what people see."""
    data = DataConfig.read(request.asked("data"), section="data")
    saved = open_model(Path(request.start_from)) if request.start_from else None
    surveyed = survey(corpus, valid is not None, data)
    tokenizer = saved.tokenizers if saved else plan.plan_tokenizer(surveyed, request.asked("tokenizer"))
    said: list[str] = []
    prepared = prepare(folder, corpus, valid, surveyed, tokenizer, data, said.append)
    yield from (Notice(sentence) for sentence in said)

    minutes = request.minutes or plan.minutes_for(len(prepared.train))
    work = plan.measure_machine() * 60 * minutes
    config = saved_config(saved) or plan.plan_model(prepared, work, request.preset, request.asked("model"))
    search = plan.plan_search(prepared, config, request.asked("search"))
    about = about_model(search, corpus.languages, int(prepared.train.lengths().max()))
    moment = 1.0 if "steps" in request.asked("training") else min(10.0, TIMING * 60 * minutes)
    timing = time_run(folder, prepared, config, request, about, moment)
    left = 60 * minutes - (time.monotonic() - began)
    training = fit_training(config, request, timing, left, fine_tuning=saved is not None)
    if timing.step > left and "steps" not in request.asked("training"):
        yield Notice(f"preparing took all of the {minutes:g} minutes; one step is trained, so give it more")
    run = make_run(folder, prepared, config, training, about, request.seed)
    if saved:
        load_weights(run.model, weights_of(saved.model), folder)
    refuse_full_disk(named, disk_needed(run))
    yield Planned(describe(run, named, surveyed, timing, time.monotonic() - began))
    run.progress.steps = training.steps
    run.save()  # from here on a kill costs nothing
    write_toml(folder / "run.toml", record(request, corpus, valid, data, tokenizer, surveyed, run, timing, minutes))
    return run


def fit_training(
    config: TransformerConfig, request: Request, timing: Timing, seconds: float, *, fine_tuning: bool
) -> TrainingConfig:
    """As many steps as the seconds allow, less the time that validations take."""
    asked = request.asked("training")
    validations = int(min(MOST_VALIDATIONS, max(FEWEST_VALIDATIONS, VALIDATING * seconds / timing.validation)))
    fitting = int((seconds - (validations + 1) * timing.validation) / timing.step)
    steps = TrainingConfig.read({"steps": asked.get("steps", max(1, fitting))}, section="training").steps
    return plan.plan_training(config, asked, steps, validations, fine_tuning=fine_tuning)


def time_run(
    folder: Path, prepared: Prepared, config: TransformerConfig, request: Request, about: dict[str, Any], seconds: float
) -> Timing:
    """Train a throw-away copy for a moment, and validate it once: the outcome of the real one is not touched."""
    training = plan.plan_training(config, request.asked("training"), 1000, 1, fine_tuning=False)
    run = make_run(folder, prepared, config, training, about, request.seed)
    steps = train_steps(run.model, run.batches(0), run.objective, run.optimizer, rate=lambda _: 1e-6)
    list(islice(steps, 4))  # the first steps allocate
    times, start = [time.monotonic()], time.monotonic()
    while times[-1] - start < seconds or len(times) < 3:
        next(steps)
        times.append(time.monotonic())
    took = sorted(b - a for a, b in pairwise(times))
    usual = took[: max(1, round(0.9 * len(took)))]  # a neighbour's burst should not halve the run
    return Timing(mean(usual), time_validation(run), peak_memory())


def time_validation(run: Run) -> float:
    """An untrained model writes to the end of its line: give it lines of the usual length."""
    start = time.monotonic()
    usual = int(run.prepared.valid.lengths()[:, 1].mean()) + 1
    run.about = {**run.about, "search": {"longest_ratio": 0.01, "longest_extra": usual}}
    measure(run)
    with TemporaryDirectory(dir=run.folder) as scratch:
        save_checkpoint(Path(scratch), 0, run.model, run.optimizer, {})
    return time.monotonic() - start


def make_run(
    folder: Path,
    prepared: Prepared,
    config: TransformerConfig,
    training: TrainingConfig,
    about: dict[str, Any],
    seed: int,
) -> Run:
    return Run(folder, prepared, training, build_model(config, seed), about, seed)


def saved_config(saved: SavedModel | None) -> Any:
    return saved.model.config if saved else None


def disk_needed(run: Run) -> int:
    """Checkpoints hold weights and up to two numbers more for each; and there is the model."""
    size = 4 * sum(parameter.numel() for parameter in run.model.parameters())
    return 3 * size * (run.training.average + 2) + 2 * size


# ── a known run ───────────────────────────────────────────────────────────────────────────


def go_on(folder: Path, request: Request) -> Generator[Event | Planned, None, Run]:
    recover_folder(folder / "model")
    recorded = read_toml(folder / "run.toml")
    before = Request.read(recorded["asked"], section="asked")
    refuse_changes(request.lasting(), before.lasting(), folder)
    refuse_changed_files(recorded["files"], folder)
    if recorded["run"]["torch"] != torch.__version__ or recorded["run"]["threads"] != torch.get_num_threads():
        yield Notice("torch or the number of threads is another than before: the last digits may differ")
    training = TrainingConfig.read(recorded["training"], section="training").changed(
        request.asked("training"), section="training"
    )
    made, timing = recorded["plan"], recorded["timing"]
    if request.minutes and request.minutes > made["minutes"] and "steps" not in request.asked("training"):
        more = int(60 * (request.minutes - made["minutes"]) / timing["step"])
        training = training.changed({"steps": training.steps + more}, section="training")
        made["minutes"] = request.minutes
    if training.model_dump() != recorded["training"]:
        write_toml(folder / "run.toml", {**recorded, "training": training.model_dump()})
    config = config_class_of(recorded["run"]["family"]).read(recorded["model"], section="model")
    run = Run(
        folder, open_prepared(folder), training, build_model(config, before.seed), recorded_about(recorded), before.seed
    )
    return run


def recorded_about(recorded: dict[str, Any]) -> dict[str, Any]:
    search = SearchConfig.read(recorded["search"], section="search")
    made = recorded["plan"]
    return about_model(search, (made["languages"][0], made["languages"][1]), made["longest"])


def refuse_changed_files(files: dict[str, dict[str, Any]], folder: Path) -> None:
    """A file with the size and time it had is taken as unchanged; any other is read again, to its last byte."""
    for file in files.values():
        path = Path(file["path"])
        about = path.stat()
        same = (about.st_size, about.st_mtime_ns) == (file["bytes"], file["modified"])
        if not same and fingerprint(path) != file["sha256"]:
            raise DataError(
                "E-DATA-09", f"{path} is not the file that {folder} was begun with; use --fresh to begin anew"
            )


def set_aside(folder: Path) -> Iterator[Event]:
    """Move an old run out of the way; what it made is not lost. First run.toml, so that half of one is none."""
    made = sorted((p for p in folder.iterdir() if p.name in RUN_FILES), key=lambda p: p.name != "run.toml")
    if made:
        number = next(n for n in range(1, 10_000) if not folder.with_name(f"{folder.name}.old-{n}").exists())
        aside = folder.with_name(f"{folder.name}.old-{number}")
        aside.mkdir()
        for path in made:
            shutil.move(path, aside / path.name)
        yield Notice(f"what was in {folder} is now in {aside}")


# ── names and words ───────────────────────────────────────────────────────────────────────


def refuse_unknown_settings(request: Request) -> None:
    """Before any work: a wrong name must not be found after minutes of preparing."""
    sizes = {"source_vocabulary": 8, "target_vocabulary": 8}
    config_class_of(request.family).read({**sizes, **request.asked("model")}, section="model")
    for section, settings in SECTIONS.items():
        settings.read(request.asked(section), section=section)
    if request.preset and request.preset not in PRESETS:
        raise UsageError("E-SET-07", f"there is no preset {request.preset!r}; {nearest(request.preset, list(PRESETS))}")


def find_corpora(request: Request) -> tuple[Corpus, Corpus | None]:
    def find(arguments: list[str]) -> Corpus:
        return find_corpus(
            arguments,
            source_language=request.source or None,
            target_language=request.target or None,
            encoding=request.encoding,
        )

    return find(request.corpora), find(request.valid) if request.valid else None


def folder_of(request: Request, corpus: Corpus) -> Path:
    return Path(request.out or f"runs/{corpus.name}-{request.family}-{request.preset or 'auto'}")


def record(
    request: Request,
    corpus: Corpus,
    valid: Corpus | None,
    data: DataConfig,
    tokenizer: TokenizerConfig | Tokenizers,
    surveyed: Survey,
    run: Run,
    timing: Timing,
    minutes: float,
) -> dict[str, dict[str, Any]]:
    """All that run.toml holds: what was asked, what was chosen, from which files, on which machine."""
    paths = [*corpus.paths, *(valid.paths if valid else ())]
    files = {
        str(number): {
            "path": str(path.resolve()),
            "bytes": path.stat().st_size,
            "modified": path.stat().st_mtime_ns,
            "sha256": fingerprint(path),
        }
        for number, path in enumerate(paths, start=1)
    }
    config: Any = run.model.config
    return {
        "run": {
            "dragoman": dragoman.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
            "family": request.family,
        },
        "asked": request.with_whole_paths().model_dump(),
        "plan": {
            "minutes": minutes,
            "pairs": len(run.prepared.train),
            "valid_share": surveyed.valid_share,
            "languages": run.about["languages"],
            "longest": run.about["longest"],
        },
        "timing": timing._asdict(),
        "data": data.model_dump(),
        "tokenizer": tokenizer.model_dump() if isinstance(tokenizer, TokenizerConfig) else {},
        "model": config.model_dump(),
        "training": run.training.model_dump(),
        "search": run.about["search"],
        "files": files,
    }


def describe(run: Run, named: Path, surveyed: Survey, timing: Timing, spent: float) -> list[tuple[str, str]]:
    """The plan in the words of a person who made it."""
    train, t, c = run.prepared.train, run.training, run.model.config
    about, tokenizers = train.about, run.prepared.tokenizers
    assert isinstance(c, TransformerConfig)
    size = sum(parameter.numel() for parameter in run.model.parameters())
    validations = -(-t.steps // t.validate_every)
    minutes = (spent + t.steps * timing.step + (validations + 1) * timing.validation) / 60
    lengths = f"{about['source_tokens'] / len(train):.1f} → {about['target_tokens'] / len(train):.1f} a pair"
    split = " (split off by a hash of the source)" if surveyed.valid_share else ""
    kept = f"{len(train):,} kept, {about['read'] - len(train):,} dropped"
    shape = f"{c.layers}+{c.layers} blocks, width {c.width}, {c.heads} heads, feed-forward {c.hidden}"
    epochs = t.steps * t.accumulate / len(run.order)
    return [
        ("pairs", f"{kept}; {len(run.prepared.valid):,} for validation{split}"),
        ("tokens", f"{describe_vocabulary(tokenizers)}; {lengths}"),
        ("model", f"transformer, {shape}: {size / 1e6:.1f} M parameters, dropout {c.dropout:g}"),
        ("training", f"{t.optimizer}, rate {t.rate:g}, {t.schedule} after {t.warmup:,} steps of warm-up"),
        (
            "steps",
            f"{t.steps:,} of {t.tokens_per_step:,} tokens: {epochs:.1f} epochs, validated every {t.validate_every:,}",
        ),
        ("expected", f"{minutes:.1f} minutes in all, {timing.memory / 2**30:.1f} GiB of memory"),
        ("folder", str(named)),
    ]


def describe_vocabulary(tokenizers: Tokenizers) -> str:
    source = f"{len(tokenizers.source):,} {tokenizers.source.kind}"
    if tokenizers.joint:
        return f"{source}, one vocabulary for both sides"
    return f"{source} and {len(tokenizers.target):,} {tokenizers.target.kind}"
