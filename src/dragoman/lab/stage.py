"""Where a comparison stands: which of its runs is at work, and how long the rest will take."""

from typing import NamedTuple

from dragoman.jobs.events import Report


class Stage(NamedTuple):
    model: str
    doing: str  # "training", "measuring" …
    number: int  # this run's, from 1
    of: int
    expected: float | None  # seconds that each later run will take, where it is known

    def seconds_left(self, report: Report) -> float:
        """Of the training in all; while nothing else is known, later runs are taken to last as long as this one."""
        each = self.expected or report.seconds + report.seconds_left
        return report.seconds_left + (self.of - self.number) * each
