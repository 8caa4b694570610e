"""What all models of a comparison are measured on. Translators and classifiers each have an exam of their own."""

from pathlib import Path
from typing import Protocol, runtime_checkable

from dragoman.evaluation.significance import Paired
from dragoman.lab import classifiers, translators
from dragoman.lab.asked import Asked
from dragoman.lab.memory import keep, recall
from dragoman.lab.results import HeldOut, HeldOutItems, Labelled, Translated
from dragoman.text.corpus import fingerprint


@runtime_checkable
class Exam(Protocol):
    @property
    def sha256(self) -> str:
        """Of all that is asked."""
        ...

    def describe(self, asked: Asked) -> HeldOut | HeldOutItems:
        """What the report says about it, and how much of it stands in the training data."""
        ...

    def measure(self, run: Path) -> Translated | Labelled: ...
    def compare(self, first: list[str], second: list[str]) -> list[Paired]:
        """Is the second model another than the one before it, or only luckier? By what each put out."""
        ...


def open_exam(asked: Asked) -> Exam:
    """Whatever can be wrong with it, or with the training data beside it, is found here."""
    return classifiers.read_exam(asked) if asked.learned == "classify" else translators.read_sentences(asked)


def describe_test(asked: Asked, test: Exam) -> HeldOut | HeldOutItems:
    """The training data is read for it once."""
    path = asked.folder / "test.json"
    files = asked.find(asked.corpora).paths
    depends = {"named": asked.test, "test": test.sha256, "files": [fingerprint(file) for file in files]}
    kind: type[HeldOut | HeldOutItems] = HeldOutItems if asked.learned == "classify" else HeldOut
    known = recall(path, depends, kind)
    if known:
        return known
    made = test.describe(asked)
    keep(path, depends, made)
    return made
