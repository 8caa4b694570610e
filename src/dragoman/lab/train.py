"""Train one model of a comparison, at one learning rate or at three, and read from its logs how that went.

The first run plans everything for itself. Those at other rates take its model and its steps as they were planned, so
that the rate is all that differs, whatever else the machine has to do meanwhile. What was trained to its end before is
not trained again.
"""

from collections.abc import Generator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from dragoman.jobs.events import Event, Finished, Notice
from dragoman.jobs.request import Request
from dragoman.jobs.start import Planned, start
from dragoman.lab.asked import Asked
from dragoman.lab.memory import hash_of_model, keep, recall
from dragoman.lab.names import Named
from dragoman.lab.results import Curve, Trained
from dragoman.lab.stage import Stage
from dragoman.models import SIZES_FROM_DATA
from dragoman.runs.record import read_log, read_toml

RATES = (  # a run's folder, its share of the planned rate, what is being done
    ("run", 1.0, "training"),
    ("run-half-rate", 0.5, "training at half the rate"),
    ("run-double-rate", 2.0, "training at twice the rate"),
)
Told = Event | Planned | Stage


def train_model(asked: Asked, model: Named, stage: Stage, threads: int | None) -> Generator[Told, None, list[Trained]]:
    """One run for each rate, the planned one first."""
    home = asked.folder / model.folder
    runs = []
    for place, (folder, factor, doing) in enumerate(RATES[: asked.rates]):
        request = request_for(asked, model, home / folder)
        if place:
            request = at_another_rate(request, home / RATES[0][0], factor)
        here = stage._replace(doing=doing, number=stage.number + place)
        runs.append((yield from train_run(request, home / f"{folder}.json", here, threads)))
    return runs


def train_run(request: Request, record: Path, stage: Stage, threads: int | None) -> Generator[Told, None, Trained]:
    """Begin a run, go on with it, or remember how it ended."""
    run = Path(request.out)
    known = recall(record, depends(request, run), Trained)
    if known:
        yield Notice(f"{stage.model} is trained already ({record.stem}): {known.reason}")
        return known
    yield stage
    for event in start(request, threads=threads):
        yield event
        if isinstance(event, Finished):
            finished = event
    trained = read_training(run, finished)
    keep(record, depends(request, run), trained)
    return trained


def depends(request: Request, run: Path) -> dict[str, Any]:
    return {"asked": request.lasting(), "model": hash_of_model(run)}


def request_for(asked: Asked, model: Named, run: Path) -> Request:
    settings = {**asked.settings, "model": {**asked.settings.get("model", {}), **model.settings}}
    values = asked.model_dump(include={"corpora", "valid", "source", "target", "encoding", "minutes", "epochs", "seed"})
    own = {"task": asked.learned, "family": model.family, "preset": model.preset, "out": str(run), "settings": settings}
    return Request.read({**values, **own}, section="compare")


def at_another_rate(request: Request, planned: Path, factor: float) -> Request:
    """The same model for the same steps as that of the run `planned`, at a multiple of its rate."""
    recorded = read_toml(planned / "run.toml")
    follows = SIZES_FROM_DATA.keys()  # and may not be asked for
    model = {key: value for key, value in recorded["model"].items() if key not in follows}
    learned = recorded["training"]
    training = {**request.asked("training"), "steps": learned["steps"], "rate": factor * learned["rate"]}
    settings = {**request.settings, "model": model, "training": training}
    return request.model_copy(update={"preset": "", "epochs": None, "settings": settings})


def read_training(run: Path, finished: Finished) -> Trained:
    lines = read_log(run / "log.jsonl")
    reports = [line for line in lines if line["kind"] == "report"]
    validations = [line for line in lines if line["kind"] == "validation"]
    steps = [line["step"] for line in reports]
    minutes = [line["seconds"] / 60 for line in reports]
    return Trained(
        run=str(Path(run.parent.name) / run.name),
        rate=read_toml(run / "run.toml")["training"]["rate"],
        steps=finished.step,
        epochs=reports[-1]["epoch"],
        minutes=minutes[-1],
        tokens_per_second=median(line["tokens_per_second"] for line in reports),
        validation_nats=finished.best_nats,
        reason=finished.reason,
        training=Curve(minutes, [line["nats_per_token"] for line in reports]),
        validation=Curve(
            [float(np.interp(line["step"], steps, minutes)) for line in validations],
            [line["nats_per_token"] for line in validations],
        ),
    )
