"""`dragoman.load`: a run's folder, or a model's, as what it learned to be."""

from pathlib import Path

from dragoman.decoding.generate import TextWriter
from dragoman.decoding.translate import Translator
from dragoman.runs.model import open_model


def load(path: str | Path) -> Translator | TextWriter:
    saved = open_model(Path(path))
    if saved.task == "write":
        return TextWriter(saved.model, saved.tokenizers)
    return Translator(saved.model, saved.tokenizers, saved.about)
