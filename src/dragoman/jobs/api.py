"""`dragoman.train(…)`: the job as Python calls it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import UsageError
from dragoman.jobs.events import Finished
from dragoman.jobs.request import Request
from dragoman.jobs.start import start


def train(
    *corpora: str | Path,
    valid: str | Path | Sequence[str | Path] | None = None,
    out: str | Path | None = None,
    task: str = "",
    family: str = "",
    preset: str = "",
    start_from: str | Path | None = None,
    embeddings: str | Path | None = None,
    source_language: str = "",
    target_language: str = "",
    encoding: str = "utf-8",
    minutes: float | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    fresh: bool = False,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Train to the end, quietly, and return the run's folder: `dragoman.load` opens it.

    All is as on the command line, and what is not said is chosen from the corpus: without `valid` a part is split off,
    without minutes, epochs or steps the time follows from its size. `settings` are sections of values,
    {"model": {"width": 256}}; `start_from` is a model to go on from. The same call on the same folder goes on. What is
    wrong is said by a `dragoman.DragomanError`.
    """
    several = [valid] if isinstance(valid, str | Path) else valid or ()
    values = {
        "corpora": [str(path) for path in corpora], "valid": [str(path) for path in several], "out": str(out or ""),
        "task": task, "family": family, "epochs": epochs, "preset": preset, "minutes": minutes, "seed": seed,
        "source": source_language, "target": target_language, "encoding": encoding,
        "start_from": str(start_from or ""), "embeddings": str(embeddings or ""),
        "settings": with_steps(settings or {}, steps),
    }  # fmt: skip
    request = Request.read(values, section="train")
    [finished] = [e for e in start(request, threads=threads, fresh=fresh) if isinstance(e, Finished)]
    return finished.run


def with_steps(settings: Mapping[str, Mapping[str, Any]], steps: int | None) -> dict[str, dict[str, Any]]:
    if not isinstance(settings, Mapping) or not all(isinstance(values, Mapping) for values in settings.values()):
        raise UsageError("E-SET-05", 'settings are sections of values, as {"model": {"width": 256}}')
    made = {section: dict(values) for section, values in settings.items()}
    if steps is not None:
        made.setdefault("training", {})["steps"] = steps
    return made
