"""What whoever started a training run is told of it: the terminal, the log, `--json` and Python all listen to these."""

from pathlib import Path
from typing import Any, NamedTuple

from dragoman.jobs.task import Sample


class Report(NamedTuple):
    step: int
    steps: int
    epoch: float
    nats_per_token: float  # the mean since the last report
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


def flat(validation: Validation) -> dict[str, Any]:
    """Its values by name, each score under its own."""
    return {**{name: value for name, value in validation._asdict().items() if name != "scores"}, **validation.scores}
