"""run.toml as a run that goes on reads it. We wrote it, and yet anyone may have edited it, or cut it off."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dragoman.errors import DataError
from dragoman.jobs.task import Task
from dragoman.jobs.tasks import job_of
from dragoman.runs.record import read_toml
from dragoman.runs.scrutiny import refuse_odd_use


class Section(BaseModel):
    """What a run needs of it to go on; what else it says is read where it is needed."""

    model_config = ConfigDict(extra="allow", strict=True, protected_namespaces=())


class Begun(Section):
    task: str = "translate"  # as the oldest runs have it
    family: str


class Asked(Section):
    corpora: list[str]
    seed: int = Field(ge=0)
    minutes: float | None = Field(None, gt=0, allow_inf_nan=False)


class Plan(Section):
    minutes: float = Field(gt=0, allow_inf_nan=False)


class Timed(Section):
    step: float = Field(gt=0, allow_inf_nan=False, description="seconds")


class Training(Section):
    steps: int = Field(gt=0)


class LearnedFile(Section):
    path: str
    bytes: int
    modified: int
    sha256: str


class Recorded(Section):
    run: Begun
    asked: Asked
    plan: Plan
    timing: Timed
    model: dict[str, Any]
    training: Training
    tokenizer: dict[str, Any] = {}
    search: dict[str, Any] = {}
    files: dict[str, LearnedFile]


def read_recorded(folder: Path) -> dict[str, dict[str, Any]]:
    recorded = read_toml(folder / "run.toml")
    try:
        Recorded.model_validate(recorded)
    except ValidationError as problem:
        error = problem.errors()[0]
        key = ".".join(str(part) for part in error["loc"])
        found = "is missing" if error["type"] == "missing" else f"cannot be {error['input']!r:.100}"
        raise unfit(folder, f"{key} {found}") from None
    return recorded


def reopen_task(folder: Path, recorded: dict[str, dict[str, Any]]) -> Task:
    """What is learned, as it was prepared; each task reads what it has written about itself."""
    began = recorded["run"]
    try:
        task = job_of(began.get("task", "translate"), began["family"]).reopen(folder, recorded)
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise unfit(folder, f"what it says of the task cannot be read ({problem!r})") from None
    refuse_odd_use(task.about, folder / "run.toml")
    return task


def unfit(folder: Path, problem: str) -> DataError:
    return DataError(
        "E-SET-04",
        f"{folder / 'run.toml'} is not as it was written: {problem}; put back what stood there, or begin anew with "
        "--fresh",
    )
