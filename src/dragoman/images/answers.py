"""What is to be learned of each image, as numbers: its class, its values, or the class of every pixel.

One small object for each, that knows its names, how an answer is stored, and how to read the answers of a corpus.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import UInt8

from dragoman.errors import DataError
from dragoman.images.corpus import ImageCorpus, classes_in, mask_values
from dragoman.images.index import ImageIndex
from dragoman.images.pixels import Form
from dragoman.text.labels import some


@dataclass(frozen=True)
class ClassAnswers:
    names: tuple[str, ...]
    dtype = "int64"

    @classmethod
    def find(cls, corpus: ImageCorpus, _: Form) -> "ClassAnswers":
        return cls(classes_in(corpus, corpus.labels()))

    def shape(self, _: Form) -> tuple[int, ...]:
        return ()

    def of(self, corpus: ImageCorpus, _: Form) -> Iterator[int]:
        numbers = {name: number for number, name in enumerate(self.names)}
        for label, image in zip(corpus.labels(), corpus.names(), strict=True):
            if label not in numbers:
                raise DataError(
                    "E-IMG-12",
                    f"{image} has the label {label!r}, which the model does not know (known: {some(self.names)}); "
                    "mend or remove it",
                )
            yield numbers[label]

    def settings(self) -> dict[str, Any]:
        """What the model's settings say of it."""
        return {"classes": self.names}

    def about(self, _: ImageIndex) -> dict[str, Any]:
        """What is saved beside them, for whoever uses the model."""
        return {}


@dataclass(frozen=True)
class NumberAnswers:
    names: tuple[str, ...]
    dtype = "float32"

    @classmethod
    def find(cls, corpus: ImageCorpus, _: Form) -> "NumberAnswers":
        return cls(corpus.numbers()[0])

    def shape(self, _: Form) -> tuple[int, ...]:
        return (len(self.names),)

    def of(self, corpus: ImageCorpus, _: Form) -> Iterator[np.ndarray]:
        names, rows = corpus.numbers()
        if len(names) != len(self.names):
            raise DataError(
                "E-IMG-10",
                f"{corpus.name} has {len(names)} numbers an image and the model tells {len(self.names)} "
                f"({some(self.names)}); give as many",
            )
        return iter(rows)

    def settings(self) -> dict[str, Any]:
        return {"numbers": self.names}

    def about(self, train: ImageIndex) -> dict[str, Any]:
        """Where the numbers lie: a model tells deviations from their mean."""
        rows = np.asarray(train.answers, dtype=np.float64)
        deviation = [spread or 1.0 for spread in rows.std(axis=0).tolist()]
        return {"numbers": {"mean": rows.mean(axis=0).tolist(), "deviation": deviation}}


@dataclass(frozen=True)
class MaskAnswers:
    names: tuple[str, ...]
    values: tuple[int, ...]  # what stands for each class in a mask
    dtype = "uint8"

    @classmethod
    def find(cls, corpus: ImageCorpus, form: Form) -> "MaskAnswers":
        values = mask_values(corpus, form.size)
        return cls(corpus.mask_names(values), tuple(values))

    def shape(self, form: Form) -> tuple[int, ...]:
        return form.size

    def of(self, corpus: ImageCorpus, form: Form) -> Iterator[UInt8[np.ndarray, "H W"]]:
        for mask, image in zip(corpus.masks(form.size), corpus.names(), strict=True):
            yield self.numbered(mask, image)

    def numbered(self, mask: UInt8[np.ndarray, "H W"], image: str) -> UInt8[np.ndarray, "H W"]:
        """The number of each pixel's class, instead of what stands for it."""
        places = np.full(256, 255, dtype=np.uint8)
        places[list(self.values)] = np.arange(len(self.values))
        found = places[mask]
        if found.max() >= len(self.values):
            wrong = int(mask[found >= len(self.values)][0])
            raise DataError(
                "E-IMG-12",
                f"the mask of {image} holds the number {wrong}, which the model does not know "
                f"(known: {some([str(value) for value in self.values])}); mend or remove it",
            )
        return found

    def settings(self) -> dict[str, Any]:
        return {"classes": self.names}

    def about(self, _: ImageIndex) -> dict[str, Any]:
        return {"masks": list(self.values)}


Answers = ClassAnswers | NumberAnswers | MaskAnswers
KINDS: dict[str, type[Answers]] = {"classify": ClassAnswers, "regress": NumberAnswers, "segment": MaskAnswers}


def answers_of(task: str, config: Any, about: dict[str, Any]) -> Answers:
    """Those that a model of these settings tells."""
    match task:
        case "regress":
            return NumberAnswers(tuple(config["numbers"]))
        case "segment":
            return MaskAnswers(tuple(config["classes"]), tuple(about["masks"]))
        case _:
            return ClassAnswers(tuple(config["classes"]))
