"""What a run writes down of itself: run.toml for machines, the plan for people."""

import platform
from pathlib import Path
from typing import Any, NamedTuple

import torch

import dragoman
from dragoman import native
from dragoman.errors import DataError
from dragoman.jobs.machine import processor
from dragoman.jobs.prepare import DataConfig
from dragoman.jobs.request import Request
from dragoman.jobs.run import Run
from dragoman.jobs.task import Sources
from dragoman.models import task_and_family_of
from dragoman.runs.files import MANIFEST, sha256
from dragoman.text.corpus import files_in, fingerprint
from dragoman.training.counting import Counts


class Timing(NamedTuple):
    step: float  # seconds
    validation: float
    memory: int  # bytes, at most


def record(
    request: Request, sources: Sources, run: Run, timing: Timing, minutes: float, vectors: str
) -> dict[str, dict[str, Any]]:
    """All that run.toml holds: what was asked, what was chosen, from which files, on which machine. `vectors` says with
    which it began, where they were given."""
    files = {
        str(number): {"path": str(path.resolve()), **size_and_time(path), "sha256": fingerprint(path)}
        for number, path in enumerate(sources.paths, start=1)
    }
    config: Any = run.model.config
    return {
        "run": {
            "dragoman": dragoman.__version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            **machine_of(run),
            **({"tokenizer": hash_of_tokenizer(run.folder)} if run.task.tokenizers else {}),
            "task": run.task.name,
            "family": task_and_family_of(config)[1],
        },
        "asked": request.with_whole_paths().model_dump(),
        "plan": {"minutes": minutes, **({"vectors": vectors} if vectors else {}), **run.task.record()},
        "timing": timing._asdict(),
        "data": DataConfig.read(request.asked("data"), section="data").model_dump(),
        "tokenizer": run.task.tokenizer_settings,
        "model": config.model_dump(),
        "training": run.training.model_dump(),
        "search": run.task.about.get("search", {}),
        "files": files,
    }


def machine_of(run: Run) -> dict[str, Any]:
    """What the last digits hang on."""
    return {
        "torch": torch.__version__,
        "cpu": processor(),
        "native": native.level(),
        "products": "our own, keys and values too" if native.has_own_products() else "torch's",
        "dropout": "seeded for each part of a batch",
        **({"norms": "the mean over the parts of a step"} if Counts(run.model) else {}),
        "threads": torch.get_num_threads(),
        "workers": run.workers.size,
    }


BEFORE = {
    "native": "none",
    "products": "torch's",
    "dropout": "seeded for each batch",
    "norms": "one part of a step after the other",
}  # of runs begun before it was written down


def other_machine(recorded: dict[str, Any], run: Run) -> str:
    """In which of these a run goes on otherwise than it was begun; nothing where the bits stay the same."""
    now = machine_of(run)
    if run.training.reproducible:
        del now["workers"]
    changed = [
        f"{name} was {recorded.get(name, BEFORE.get(name))} and is {value}"
        for name, value in now.items()
        if recorded.get(name, BEFORE.get(name, value)) != value
    ]
    return f"{'; '.join(changed)}: the run goes on, but no longer bit for bit as it was begun" if changed else ""


def size_and_time(path: Path) -> dict[str, int]:
    """Of a file; of a folder all that is in it, and the time of the newest."""
    files = files_in(path) if path.is_dir() else [path]
    about = [file.stat() for file in files]
    return {"bytes": sum(one.st_size for one in about), "modified": max((one.st_mtime_ns for one in about), default=0)}


def refuse_changed_files(files: dict[str, dict[str, Any]], folder: Path) -> None:
    """A file with the size and time it had is taken as unchanged; any other is read again, to its last byte."""
    for file in files.values():
        path = Path(file["path"])
        same = size_and_time(path) == {name: file[name] for name in ("bytes", "modified")}
        if not same and fingerprint(path) != file["sha256"]:
            raise DataError(
                "E-DATA-09", f"{path} is not the file that {folder} was begun with; use --fresh to begin anew"
            )


def hash_of_tokenizer(folder: Path) -> str:
    """Of its manifest, which holds the hashes of its files."""
    path = folder / "tokenizer" / MANIFEST
    return sha256(path) if path.is_file() else ""


def refuse_other_tokenizer(recorded: dict[str, Any], folder: Path) -> None:
    """With that of another run the ids in data/ would mean other words. Older runs have not written down which theirs
    was."""
    now = hash_of_tokenizer(folder)
    if recorded.get("tokenizer", now) != now:
        raise DataError(
            "E-RUN-18",
            f"{folder / 'tokenizer'} is not the one that the run was begun with: they come from different runs; put it "
            "back, or begin anew with --fresh",
        )


def describe(run: Run, named: Path, timing: Timing, spent: float, vectors: str) -> list[tuple[str, str]]:
    """The plan in the words of a person who made it."""
    t = run.training
    config: Any = run.model.config
    family = task_and_family_of(config)[1]
    size = sum(parameter.numel() for parameter in run.model.parameters())
    validations = -(-t.steps // t.validate_every)
    minutes = (spent + t.steps * timing.step + (validations + 1) * timing.validation) / 60
    epochs = t.steps * t.accumulate / len(run.order)
    unit = "tokens" if run.optimizer else run.task.counted
    images = run.task.counted == "images"
    each = f"{t.images_per_step:,} images" if images else f"{t.tokens_per_step:,} {unit}"
    dropout = f", dropout {config.dropout:g}" if hasattr(config, "dropout") else ""
    return [
        *run.task.describe(),
        *([("vectors", vectors)] if vectors else []),
        (
            "model",
            f"{family}, {config.shape()}: {size / 1e6:.1f} M parameters{dropout}",
        ),
        ("training", f"{t.optimizer}, rate {t.rate:g}, {t.schedule} after {t.warmup:,} steps of warm-up"),
        (
            "steps",
            f"{t.steps:,} of {each}: {epochs:.1f} epochs, validated every {t.validate_every:,}",
        ),
        ("expected", f"{minutes:.1f} minutes in all, {timing.memory / 2**30:.1f} GiB of memory"),
        ("folder", str(named)),
    ]
