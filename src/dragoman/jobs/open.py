"""`dragoman.load`: a run's folder, a model's, or one of Hugging Face, as what it learned to be."""

import sys
from pathlib import Path
from typing import TypeVar

from dragoman.decoding.classify import Classifier
from dragoman.decoding.embed import Embedder
from dragoman.decoding.fill import Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.images import ImageClassifier, ImageEmbedder, ImageModel, ImageRegressor, ImageSegmenter
from dragoman.decoding.settings import SampleConfig
from dragoman.decoding.translate import Translator
from dragoman.decoding.words import WordVectors
from dragoman.errors import DataError
from dragoman.interop.huggingface import is_huggingface
from dragoman.interop.importing import import_folder
from dragoman.runs.model import SavedModel, open_model

Learned = Translator | TextWriter | Filler | Classifier | Embedder | WordVectors | ImageModel
Wanted = TypeVar("Wanted", Translator, TextWriter, Filler, Classifier, WordVectors, ImageModel, ImageEmbedder)
COMMANDS = {  # task -> command
    "translate": "translate",
    "write": "generate",
    "fill": "fill",
    "embed": "embed",
    "classify": "classify",
    "regress": "classify",
    "segment": "classify",
}
IMAGE_MODELS: dict[str, type[ImageModel]] = {
    "classify": ImageClassifier,
    "regress": ImageRegressor,
    "segment": ImageSegmenter,
    "embed": ImageEmbedder,
}


def load(path: str | Path) -> Learned:
    """The model in this folder, as what it learned to be: a `Translator`, a `TextWriter`, a `Classifier` …"""
    return as_learned(open_any(Path(path)))


def open_any(path: Path) -> SavedModel:
    """A folder of ours, or one of Hugging Face as it is; importing that once opens it faster."""
    if is_huggingface(path):
        return import_folder(path, lambda sentence: print(f"dragoman: {sentence}", file=sys.stderr)).saved
    return open_model(path)


def as_learned(saved: SavedModel) -> Learned:
    if saved.tokens is None:
        return IMAGE_MODELS[saved.task](saved.model, saved.about)
    match saved.task:
        case "write":
            sampling = SampleConfig.read(saved.about.get("sampling", {}), section="sampling")
            return TextWriter(saved.model, saved.tokenizers, sampling)
        case "fill":
            return Filler(saved.model, saved.tokenizers)
        case "embed":
            return embedder_of(saved)
        case "classify":
            return Classifier(saved.model, saved.tokenizers)
        case _:
            return Translator(saved.model, saved.tokenizers, saved.about, saved.shortlist)


def load_as(kind: type[Wanted], path: str | Path) -> Wanted:
    """The model there, which must have learned to be one of this kind."""
    saved = open_any(Path(path))
    found = as_learned(saved)
    if not isinstance(found, kind):
        what = " images" if saved.tokens is None else ""
        raise DataError(
            "E-RUN-10",
            f"{path} holds a model that learned to {saved.task}{what}; use it with dragoman {COMMANDS[saved.task]}",
        )
    return found


def load_embedder(path: str | Path) -> Embedder | WordVectors:
    saved = open_any(Path(path))
    if saved.tokens is None or not (hasattr(saved.model, "reader") or hasattr(saved.model, "vectors")):
        raise DataError(
            "E-RUN-10",
            f"{path} holds a model that learned to {saved.task}, and has no vectors for texts or images; give one of "
            "the family bert, word2vec or glove, or for images a vit without a head",
        )
    return embedder_of(saved)


def embedder_of(saved: SavedModel) -> Embedder | WordVectors:
    kind = Embedder if hasattr(saved.model, "reader") else WordVectors
    return kind(saved.model, saved.tokenizers)
