"""Look at a model while it works on one text or image: `dragoman.look("runs/de-en", "Ein Hund läuft.")`.

translators     the search as a tree, then one watched pass over its output; a reference is scored the same way
writers         the text and how it goes on, the likeliest token each time
readers         a text read in both directions, and what fits its masked places
seers           an image, whose patches look at each other like words
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.decoding.classify import Classifier
from dragoman.decoding.embed import Embedder
from dragoman.decoding.fill import Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.images import ImageModel, Shown
from dragoman.decoding.settings import refuse_wide
from dragoman.decoding.translate import Translator
from dragoman.errors import DataError, UsageError
from dragoman.jobs.open import Learned, load
from dragoman.seeing.looked import Look
from dragoman.seeing.picture import look_at_image
from dragoman.seeing.reading import look_at_reading
from dragoman.seeing.translation import look_at_translation
from dragoman.seeing.writing import look_at_writing


def look(
    model: str | Path | Learned,
    text: Shown,
    *,
    target: str | None = None,
    gold: str | None = None,
    beam: int | None = None,
    force: Sequence[int] = (),
) -> Look:
    """Everything that there is to see. Of a model that reads images `text` is one: a file, or an array of rows and
    columns with 1 or 3 channels. `target` is a reference to score, where it is not blank; `gold` links the words of
    `text` to its words, or to those of the output where there is no reference, as Pharaoh writes them (0-0 1-2);
    `force` are tokens that the output must begin with, or that come next after a writer's text."""
    refuse_wide(beam)
    learned: Any = load(model) if isinstance(model, str | Path) else model
    target, gold = (given if given and given.strip() else None for given in (target, gold))
    if isinstance(learned, ImageModel):
        refuse_writing(target, gold, force)
        return look_at_image(learned, text)
    if not isinstance(text, str):
        raise UsageError("E-LOOK-01", "this model reads texts and was given an image; give a sentence")
    refuse_unfit(learned, text, target, gold)
    if isinstance(learned, Translator):
        return look_at_translation(learned, text, target, gold, beam, list(force))
    if isinstance(learned, TextWriter):
        return look_at_writing(learned, text, list(force))
    return look_at_reading(learned, text)


def refuse_writing(target: str | None, gold: str | None, force: Sequence[int]) -> None:
    if target is not None or gold is not None or force:
        raise UsageError(
            "E-LOOK-03", "a reference, links and forced tokens are for what writes, and this model reads images"
        )


def refuse_unfit(learned: Learned, text: str, target: str | None, gold: str | None) -> None:
    if not text.strip():
        raise UsageError("E-LOOK-01", "there is no text to look at; give a sentence")
    if why := unfit(learned):
        raise DataError("E-LOOK-02", why)
    if not isinstance(learned, Translator) and (target is not None or gold is not None):
        raise UsageError("E-LOOK-03", "a reference and its links are for translators, and this model is none")


def unfit(learned: Learned) -> str:
    """Why no text can be looked at with this model, in a sentence; "" where one can."""
    if not isinstance(learned, Translator | TextWriter | Filler | Embedder | Classifier):
        return "this model has no attention over texts to look at; give a transformer, rnn, t5, gpt or bert"
    if not isinstance(learned, Translator | TextWriter) and not hasattr(learned.model, "reader"):
        return "this classifier has no attention between words to look at; give one of the family bert"
    return ""
