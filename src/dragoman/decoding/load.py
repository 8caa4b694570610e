"""`dragoman.load`: a run's folder, or a model's, as what it learned to be."""

from pathlib import Path
from typing import TypeVar

from dragoman.decoding.classify import Classifier
from dragoman.decoding.embed import Embedder
from dragoman.decoding.fill import Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.translate import Translator
from dragoman.errors import DataError
from dragoman.runs.model import SavedModel, open_model

Wanted = TypeVar("Wanted", Translator, TextWriter, Filler, Classifier)
COMMANDS = {"translate": "translate", "write": "generate", "fill": "fill", "classify": "classify"}  # task -> command


def load(path: str | Path) -> Translator | TextWriter | Filler | Classifier:
    return as_learned(open_model(Path(path)))


def as_learned(saved: SavedModel) -> Translator | TextWriter | Filler | Classifier:
    match saved.task:
        case "write":
            return TextWriter(saved.model, saved.tokenizers)
        case "fill":
            return Filler(saved.model, saved.tokenizers)
        case "classify":
            return Classifier(saved.model, saved.tokenizers)
        case _:
            return Translator(saved.model, saved.tokenizers, saved.about)


def load_as(kind: type[Wanted], path: str | Path) -> Wanted:
    """The model there, which must have learned to be one of this kind."""
    saved = open_model(Path(path))
    found = as_learned(saved)
    if not isinstance(found, kind):
        raise DataError(
            "E-RUN-10",
            f"{path} holds a model that learned to {saved.task}; use it with dragoman {COMMANDS[saved.task]}",
        )
    return found


def load_embedder(path: str | Path) -> Embedder:
    saved = open_model(Path(path))
    if not hasattr(saved.model, "reader"):
        raise DataError(
            "E-RUN-10",
            f"{path} holds a model that learned to {saved.task}, and has no vectors for texts; give one of the family "
            "bert",
        )
    return Embedder(saved.model, saved.tokenizers)
