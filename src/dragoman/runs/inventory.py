"""What a run's folder holds, read without torch, and without trusting that any of it is whole.

a glance       the manifest, that its files are there, and that none is cut off: quick, for a list of many runs
an inspection  every byte against the manifest's checksums, as a run that goes on does it
a removal      the files that dragoman writes, by their names; whatever else stands in the folder stays
"""

import fcntl
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open

from dragoman.errors import DataError, DragomanError, MachineError, UsageError
from dragoman.runs.files import MANIFEST, check_folder, read_json
from dragoman.runs.record import read_log, read_toml

SETTINGS, LOG, LOCK = "run.toml", "log.jsonl", ".lock"
FOLDERS = ("checkpoints", "model", "tokenizer", "data")
REPLACED = r"(\.new|\.old)?"  # what a kill may leave behind of a folder
SIDE = r"(joint|source|target)(\.(bytes|pipeline|pieces))?\.(json|model)"
OURS = "|".join(  # every file of a run, by its name
    (
        r"(run\.toml|log\.jsonl)(\.new)?",
        r"\.(lock|begun)",
        r"checkpoints/step-\d+(\.new|\.old|\.gone|\.aside)?/((weights|optimizer|carried)\.safetensors|(state|manifest)\.json)",
        rf"model{REPLACED}/((weights|shortlist)\.safetensors|(config|manifest)\.json)",
        rf"(model{REPLACED}/)?tokenizer{REPLACED}/((tokenizer|manifest)\.json|{SIDE})",
        r"\.scratch-[^/]+/checkpoints/step-\d+(\.new)?/((weights|optimizer)\.safetensors|(state|manifest)\.json)",
        r"data/(valid\.json(\.new)?|manifest\.json)",
        r"data/(train|valid)/(index\.json(\.new)?|(ids|offsets|pixels|answers)\.bin)",
        r"data/pairs/(index\.json|(train|valid|part-\d+)\.(keys|counts))",
    )
)
NO_SCORES = {"kind", "step", "nats_per_token", "best", "samples"}  # of a validation


# ── finding runs ──────────────────────────────────────────────────────────────────────────


def find_runs(folder: Path) -> list[Path]:
    """Every run at or below the folder, by name; one that a kill ended before its run.toml is among them."""
    if not folder.is_dir():
        raise DataError("E-RUN-11", f"there is no folder {folder} to look for runs in; name the one that runs are in")
    found = []
    for place, inside, files in os.walk(folder):
        if SETTINGS in files or is_half_written(inside, files):
            found.append(Path(place))
            inside[:] = [name for name in inside if name not in FOLDERS]
        inside.sort()
    return found


def is_half_written(folders: Iterable[str], files: Iterable[str]) -> bool:
    return LOCK in files and any(name in FOLDERS for name in folders)


def refuse_no_run(path: Path) -> None:
    if not path.exists():
        raise DataError("E-RUN-11", f"there is no run at {path}; dragoman runs list shows those that there are")
    if not (path / SETTINGS).is_file():
        raise DataError("E-RUN-11", f"{path} is no run: it has no {SETTINGS}; give the folder that has one")


# ── one folder of files ───────────────────────────────────────────────────────────────────


def inspect(folder: Path) -> str:
    """What is wrong with a folder, every byte read; nothing if it is whole."""
    try:
        check_folder(folder)
    except DataError as problem:
        return without_name(problem, folder)
    except (OSError, AttributeError, TypeError) as problem:  # a manifest that is JSON, and yet no table of checksums
        return f"cannot be read ({problem})"
    return ""


def glance(folder: Path) -> str:
    """What can be seen to be wrong without reading all of it: what is missing, and what is cut off."""
    try:
        names = read_json(folder / MANIFEST)
    except DataError:
        names = {}
    if not names:
        return "has no manifest that can be read; it was not saved completely"
    missing = next((name for name in names if not (folder / name).is_file()), None)
    if missing is not None:
        return f"is damaged: {missing} is missing"
    cut = next((name for name in names if name.endswith(".safetensors") and is_cut_off(folder / name)), None)
    return f"is damaged: {cut} is cut off" if cut else ""


def is_cut_off(path: Path) -> bool:
    if not path.is_file():
        return True
    try:
        with safe_open(path, "np"):
            return False
    except (OSError, SafetensorError):
        return True


def without_name(problem: DragomanError, path: Path) -> str:
    return problem.sentence.removeprefix(str(path)).strip()


def count_numbers(weights: Path) -> int | None:
    """How many numbers a file of weights holds, told from its head."""
    if not weights.is_file():
        return None
    try:
        with safe_open(weights, "np") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except (OSError, SafetensorError):
        return None


# ── what a run says of itself ─────────────────────────────────────────────────────────────


class Settings(NamedTuple):
    """run.toml, or what is wrong with it."""

    sections: dict[str, Any]
    problem: str

    def section(self, name: str) -> dict[str, Any]:
        found = self.sections.get(name)
        return found if isinstance(found, dict) else {}


def read_settings(run: Path) -> Settings:
    path = run / SETTINGS
    if not path.is_file():
        return Settings({}, f"half-written: it ended before its {SETTINGS}; the same train command begins it anew")
    try:
        sections = read_toml(path)
    except DragomanError as problem:
        return Settings({}, f"{SETTINGS} {without_name(problem, path)}")
    absent = [name for name in ("run", "model", "training") if not isinstance(sections.get(name), dict)]
    return Settings(sections, f"{SETTINGS} has no section {', '.join(absent)}: it is cut off" if absent else "")


def checkpoint_paths(run: Path) -> list[Path]:
    """Newest first, as a run that goes on tries them; half-written ones have other names."""
    return sorted((p for p in (run / "checkpoints").glob("step-*") if p.name[5:].isdigit()), reverse=True)


def step_at(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def model_path(run: Path) -> Path:
    """Where the model is, also while the trainer is between its two renames."""
    old = run / "model.old"
    return old if old.is_dir() and not (run / "model").exists() else run / "model"


def is_being_written(run: Path) -> bool:
    """Whether a process holds the run's lock; the lock is tried for an instant, and not kept."""
    try:
        with (run / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class Progress(NamedTuple):
    done: int | None
    planned: int | None
    loss: float | None  # the best validation's, in nats
    scores: dict[str, float]  # of that validation
    state: str  # finished, stopped early, training, unfinished

    @property
    def is_finished(self) -> bool:
        return self.state in ("finished", "stopped early")


def progress_of(run: Path, settings: Settings, log: list[dict[str, Any]]) -> Progress:
    """How far it came, by the newest checkpoint that looks whole; where there is none, or in training, by its log."""
    newest = next((path for path in checkpoint_paths(run) if not glance(path)), None)
    saved = read_state(newest) if newest else {}
    training = is_being_written(run)
    logged = max((line["step"] for line in log), default=None)
    done = logged if training or newest is None else step_at(newest)
    planned = whole_number(settings.section("training").get("steps"))
    best = min(filter(is_measured, log), key=lambda line: line["nats_per_token"], default={})
    losses = [finite(saved.get("best_nats")), finite(best.get("nats_per_token"))]
    scores = {name: value for name, value in best.items() if name not in NO_SCORES and finite(value) is not None}
    return Progress(
        done,
        planned,
        min((loss for loss in losses if loss is not None), default=None),
        scores,
        state_of(done, planned, bool(saved.get("stopped")), training),
    )


def state_of(done: int | None, planned: int | None, stopped: bool, training: bool) -> str:
    if training:
        return "training"
    if done is not None and planned is not None and done >= planned:
        return "finished"
    return "stopped early" if stopped else "unfinished"


def read_state(checkpoint: Path) -> dict[str, Any]:
    try:
        return read_json(checkpoint / "state.json")
    except DataError:
        return {}


def is_measured(line: dict[str, Any]) -> bool:
    return line.get("kind") == "validation" and finite(line.get("nats_per_token")) is not None


def finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


# ── a run in one line ─────────────────────────────────────────────────────────────────────


class Summary(NamedTuple):
    path: Path
    task: str
    family: str
    progress: Progress
    bytes: int
    written: float  # seconds since 1970
    problems: list[str]


def summarise(run: Path) -> Summary:
    settings = read_settings(run)
    about = settings.section("run")
    size, written = size_and_time(run)
    return Summary(
        run,
        str(about.get("task", "translate" if about else "")),
        str(about.get("family", "")),
        progress_of(run, settings, read_log(run / LOG)),
        size,
        written,
        [settings.problem] if settings.problem else [f"{part.name} {part.problem}" for part in seen(run, settings)],
    )


def seen(run: Path, settings: Settings) -> list["Part"]:
    """What a glance finds wrong."""
    return [part for part in parts(run, settings, glance) if part.problem]


def size_and_time(run: Path) -> tuple[int, float]:
    """Bytes of all files, and when the newest was written; some may vanish while they are counted."""
    size, newest = 0, 0.0
    for path in every_file(run):
        try:
            about = path.lstat()
        except OSError:
            continue
        size += about.st_size
        newest = max(newest, 0.0 if path.name == LOCK else about.st_mtime)
    return size, newest


def every_file(folder: Path) -> Iterator[Path]:
    """Symbolic links are named, and never followed."""
    for place, inside, files in os.walk(folder):
        links = [name for name in inside if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in sorted([*files, *links]))


# ── is it whole? ──────────────────────────────────────────────────────────────────────────


class Part(NamedTuple):
    """A folder of a run with a manifest of its own."""

    name: str  # its place in the run's folder
    problem: str


def parts(run: Path, settings: Settings, look: Callable[[Path], str] = inspect) -> list[Part]:
    """The tokenizer, the data, the model and every checkpoint, newest first, each with what `look` finds wrong."""
    found = [Part(SETTINGS, "" if not settings.problem else settings.problem.removeprefix(SETTINGS).strip())]
    model = model_path(run)
    if settings.section("tokenizer") or (run / "tokenizer").exists():
        found.append(Part("tokenizer", look(run / "tokenizer") if (run / "tokenizer").exists() else "is missing"))
    if (run / "data" / MANIFEST).exists():  # older runs have none
        found.append(Part("data", look(run / "data")))
    if model.exists():
        found.append(Part(model.name, look(model)))
    elif any(line.get("best") for line in read_log(run / LOG)):
        found.append(Part("model", "is missing, though a validation has saved one"))
    for path in checkpoint_paths(run):
        problem = look(path)
        if not problem or path.exists():  # the trainer may have removed it in between
            found.append(Part(f"checkpoints/{path.name}", problem))
    return found


def resume_point(run: Path, found: list[Part]) -> Path | None:
    """The checkpoint that the same train command would go on from."""
    whole = [part.name for part in found if part.name.startswith("checkpoints/") and not part.problem]
    return run / whole[0] if whole else None


# ── choosing checkpoints to average ───────────────────────────────────────────────────────


def choose_checkpoints(run: Path, last: int | None, steps: list[int] | None) -> list[Path]:
    """Those asked for, or all; two at least, and each of them whole."""
    if last is not None and steps:
        raise UsageError("E-RUN-12", "--last and --steps both say which checkpoints to average; give one of them")
    asked = last if last is not None else len(set(steps)) if steps else 2
    if asked < 2:
        raise UsageError("E-RUN-12", f"a mean of {asked} checkpoints was asked for; give two or more")
    there = {step_at(path): path for path in checkpoint_paths(run)}
    wanted = sorted(set(steps)) if steps else sorted(there)[-(last or len(there)) :]
    known = ", ".join(str(step) for step in sorted(there)) or "none"
    absent = [step for step in wanted if step not in there]
    if absent or len(wanted) < asked:
        lacking = f"no checkpoint of step {absent[0]}" if absent else f"{len(wanted)} of the {asked} checkpoints needed"
        raise DataError("E-RUN-13", f"{run} has {lacking}; those of these steps are there: {known}")
    for step in wanted:
        check_folder(there[step])
    return [there[step] for step in wanted]


# ── removing ──────────────────────────────────────────────────────────────────────────────


class Removal(NamedTuple):
    """What goes and what stays, each file by its path."""

    run: Path
    goes: list[Path]
    stays: list[Path]  # what dragoman did not write

    def by_part(self) -> dict[str, list[Path]]:
        """What goes, under the first part of its name; each checkpoint under its own."""
        grouped: dict[str, list[Path]] = {}
        for path in self.goes:
            names = path.relative_to(self.run).parts
            grouped.setdefault("/".join(names[: 2 if names[0] == "checkpoints" else 1]), []).append(path)
        return grouped


def refuse_to_remove(run: Path) -> None:
    """What is no run, or what nobody can mean."""
    if run.is_symlink():
        raise UsageError("E-RUN-14", f"{run} is a symbolic link to {run.readlink()}; name the run's own folder")
    whole = run.resolve()
    if any(Path(place).resolve().is_relative_to(whole) for place in (Path.home(), Path.cwd())):
        raise UsageError("E-RUN-14", f"{whole} holds your home or the folder you are in; it is not removed from there")
    refuse_no_run(run)


def plan_removal(run: Path, *, only_checkpoints: bool) -> Removal:
    goes, stays = [], []
    for path in every_file(run):
        name = path.relative_to(run).as_posix()
        if path.is_symlink() or not is_ours(name):
            stays.append(path)
        elif name.startswith("checkpoints/") or not only_checkpoints:
            goes.append(path)
    return Removal(run, sorted(goes, key=lambda path: path.name in (SETTINGS, LOCK)), stays)


def is_ours(name: str) -> bool:
    """Whether dragoman writes a file of this name into a run's folder."""
    return re.fullmatch(OURS, name) is not None


def remove(removal: Removal) -> None:
    """The files that were named and no other; then the folders that are empty by that. run.toml goes last, so that a
    removal that was cut off can be done again."""
    try:
        for path in removal.goes:
            path.unlink(missing_ok=True)
        emptied = {folder for path in removal.goes for folder in path.parents if folder.is_relative_to(removal.run)}
        for folder in sorted(emptied, reverse=True):  # what is inside comes first
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    except OSError as problem:
        raise MachineError(
            "E-ENV-03", f"{problem.filename or removal.run} cannot be removed ({problem.strerror}); see who owns it"
        ) from None
