"""The live page of a model that reads images: a file is sent in place of a text.

    POST /api/look    {"text": the file's name, "image": what it holds, in base64}

What is sent goes through the reader of image files, which knows PNG and JPEG and bounds the number of pixels; no path
is ever taken from a browser.
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from dragoman.config import Settings
from dragoman.decoding.images import ImageModel
from dragoman.errors import UsageError
from dragoman.jobs.open import Learned
from dragoman.seeing.arithmetic import Arithmetic
from dragoman.seeing.live import Subject, TextRequest
from dragoman.seeing.looked import Look
from dragoman.seeing.page import Answer, answer, page_data, saved_page
from dragoman.seeing.picture import look_at_image
from dragoman.seeing.shown import Chosen, choose, first_of_run, read_sent

LARGEST_IMAGE = 12 << 20  # bytes of a file
LONGEST_NAME = 500  # letters


class ImageRequest(Settings):
    text: str = Field("an image", min_length=1, max_length=LONGEST_NAME, description="the file's name")
    image: str = Field(max_length=LARGEST_IMAGE // 3 * 4 + 4, description="what the file holds, in base64")


class ImageSubject(Subject):
    largest_body = LARGEST_IMAGE // 3 * 4 + (1 << 16)

    def __init__(self, path: Path, image: str = "", number: int = 1) -> None:
        super().__init__(path)
        self.file, self.number = image, number
        self.shown: Chosen | None = None  # last

    def page(self, *, live: bool) -> str:
        with self.one_at_a_time:
            learned = self.learned()
            shown = self.first(learned) if self.shown is None else self.shown
            seen = None if shown is None else look_at(learned, shown)
            data = page_data(self.path, learned, seen, {} if shown is None else {"image": shown.python}, live=live)
        return data.model_dump_json() if live else saved_page(data)

    def first(self, learned: Learned | None) -> Chosen | None:
        """Before one was sent: the one that the command named, or a run's own."""
        if not isinstance(learned, ImageModel):
            return None
        return choose(self.file, self.number, learned.form) if self.file else first_of_run(self.path)

    def answer_to(self, body: Mapping[str, Any]) -> Answer:
        if not body.get("image"):
            raise UsageError("E-LOOK-01", "there is no image to look at; send a PNG or a JPEG")
        asked = ImageRequest.read(body, section="look")
        with self.one_at_a_time:
            learned = self.needed()
            assert isinstance(learned, ImageModel)
            shown = read_sent(asked.text, decoded(asked.image), learned.form)
            found = answer(self.path, learned, look_at(learned, shown), {"image": shown.python})
            self.shown = shown
        return found

    def arithmetic(self, asked: TextRequest) -> Arithmetic:  # noqa: ARG002
        raise UsageError("E-LOOK-03", "this model reads images, and its arithmetic is that of the image looked at")


def look_at(learned: Learned | None, shown: Chosen) -> Look:
    assert isinstance(learned, ImageModel)
    return look_at_image(learned, shown.pixels, shown.name)


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UsageError("E-LOOK-06", "the image of this question is no base64") from None
