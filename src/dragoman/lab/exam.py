"""What all models of a comparison are measured on. Each task has an exam of its own."""

from pathlib import Path
from typing import Protocol, runtime_checkable

from dragoman.evaluation.significance import Paired
from dragoman.lab import classifiers, regressors, segmenters, translators
from dragoman.lab.asked import Asked
from dragoman.lab.memory import keep, recall
from dragoman.lab.results import HeldOut, HeldOutItems, Outcome
from dragoman.text.corpus import fingerprint


@runtime_checkable
class Exam(Protocol):
    @property
    def sha256(self) -> str:
        """Of all that is asked."""
        ...

    @property
    def kind(self) -> type[Outcome]:
        """What measuring makes."""
        ...

    @property
    def file(self) -> str:
        """The name of the file of what a model put out."""
        ...

    def describe(self, asked: Asked) -> HeldOut | HeldOutItems:
        """What the report says about it, and how much of it stands in the training data."""
        ...

    def measure(self, run: Path) -> Outcome: ...
    def compare(self, first: list[str], second: list[str]) -> list[Paired]:
        """Is the second model another than the one before it, or only luckier? By what each put out."""
        ...


def open_exam(asked: Asked) -> Exam:
    """Whatever can be wrong with it, or with the training data beside it, is found here."""
    match asked.learned:
        case "classify":
            return classifiers.read_exam(asked)
        case "regress":
            return regressors.read_exam(asked)
        case "segment":
            return segmenters.read_exam(asked)
        case _:
            return translators.read_sentences(asked)


def describe_test(asked: Asked, test: Exam) -> HeldOut | HeldOutItems:
    """The training data is read for it once."""
    path = asked.folder / "test.json"
    files = asked.find(asked.corpora).paths
    depends = {"named": asked.test, "test": test.sha256, "files": [fingerprint(file) for file in files]}
    kind: type[HeldOut | HeldOutItems] = HeldOut if asked.learned == "translate" else HeldOutItems
    known = recall(path, depends, kind)
    if known:
        return known
    made = test.describe(asked)
    keep(path, depends, made)
    return made
