"""Train attention models from your own text, look inside them, and put them to work.

Letters for tensor axes, the same in every file:

    B  sentences in a batch      H  attention heads
    S  source tokens             D  width of a token vector
    T  target tokens             d  width of one head, D / H
    Q  queries                   V  vocabulary
    K  keys (and values)         C  channels of an image, or classes
    P  patches of an image       H W  its height and width, where there are no heads

Masks are boolean and say where one MAY look: True is visible, False is hidden.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# How long a thread looks for work before it sleeps. Without end, as is usual, it stands in the way as soon as another
# program wants its core: on two busy cores training was eight times slower. Too short, and every small operation wakes
# it again, which on a virtual machine takes longer than the operation: the demo's step took 60 to 80 ms with 10,000
# looks and up to 190 with 1,000. Read by torch's libgomp when it is first imported.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

if TYPE_CHECKING:
    from dragoman.decoding.classify import Classified as Classified
    from dragoman.decoding.classify import Classifier as Classifier
    from dragoman.decoding.generate import TextWriter as TextWriter
    from dragoman.decoding.images import ImageClassifier as ImageClassifier
    from dragoman.decoding.images import ImageRegressor as ImageRegressor
    from dragoman.decoding.images import ImageSegmenter as ImageSegmenter
    from dragoman.decoding.settings import SampleConfig as SampleConfig
    from dragoman.decoding.translate import Translation as Translation
    from dragoman.decoding.translate import Translator as Translator
    from dragoman.decoding.words import WordVectors as WordVectors
    from dragoman.errors import DragomanError as DragomanError
    from dragoman.jobs.api import train as train
    from dragoman.jobs.open import load as load
    from dragoman.seeing.look import look as look
    from dragoman.seeing.looked import Look as Look

PUBLIC = {  # imported when first used: `import dragoman` must not import torch
    "load": "dragoman.jobs.open",
    "look": "dragoman.seeing.look",
    "Look": "dragoman.seeing.looked",
    "DragomanError": "dragoman.errors",
    "SampleConfig": "dragoman.decoding.settings",
    "Classified": "dragoman.decoding.classify",
    "Classifier": "dragoman.decoding.classify",
    "TextWriter": "dragoman.decoding.generate",
    "ImageClassifier": "dragoman.decoding.images",
    "ImageRegressor": "dragoman.decoding.images",
    "ImageSegmenter": "dragoman.decoding.images",
    "Translator": "dragoman.decoding.translate",
    "Translation": "dragoman.decoding.translate",
    "WordVectors": "dragoman.decoding.words",
    "train": "dragoman.jobs.api",
}

__all__ = [*PUBLIC]


def __dir__() -> list[str]:
    return [*globals(), *PUBLIC]


if not TYPE_CHECKING:  # a name that there is not is told by type checkers, too

    def __getattr__(name: str) -> Any:
        if name in PUBLIC:
            return getattr(import_module(PUBLIC[name]), name)
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
