"""`dragoman.train(…)`: the job as Python calls it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.jobs.events import Finished
from dragoman.jobs.request import Request
from dragoman.jobs.start import start


def train(
    *corpora: str | Path,
    valid: str | Path | Sequence[str | Path] = (),
    out: str | Path = "",
    task: str = "",
    family: str = "",
    preset: str = "",
    start_from: str | Path = "",
    embeddings: str | Path = "",
    minutes: float | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    seed: int = 1,
    threads: int | None = None,
    fresh: bool = False,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Train to the end, quietly, and return the run's folder: `dragoman.load` opens it.

    `settings` are sections of values, {"model": {"width": 256}}; `start_from` is a model to go on from.
    The same call on the same folder goes on.
    """
    several = [valid] if isinstance(valid, str | Path) else valid
    values = {
        "corpora": [str(path) for path in corpora], "valid": [str(path) for path in several], "out": str(out),
        "task": task, "family": family, "epochs": epochs, "preset": preset, "minutes": minutes, "seed": seed,
        "start_from": str(start_from), "embeddings": str(embeddings), "settings": with_steps(settings or {}, steps),
    }  # fmt: skip
    request = Request.read(values, section="train")
    [finished] = [e for e in start(request, threads=threads, fresh=fresh) if isinstance(e, Finished)]
    return finished.run


def with_steps(settings: Mapping[str, Mapping[str, Any]], steps: int | None) -> dict[str, dict[str, Any]]:
    made = {section: dict(values) for section, values in settings.items()}
    if steps is not None:
        made.setdefault("training", {})["steps"] = steps
    return made
