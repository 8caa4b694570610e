"""From files of images to bytes on disk: find out their form and what is to be learned, split, write both indexes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from dragoman.config import Settings
from dragoman.errors import DataError, UsageError
from dragoman.images.answers import KINDS, Answers, answers_of
from dragoman.images.batches import Levels, Moves
from dragoman.images.corpus import ImageCorpus, find_images
from dragoman.images.index import ImageIndex, IndexWriter, fingerprint, part_of
from dragoman.images.pixels import Form, Pixels, Size, read_size
from dragoman.jobs.plan_images import evenly_cut
from dragoman.jobs.prepare import Notice
from dragoman.jobs.request import Request
from dragoman.jobs.task import Corpora
from dragoman.runs.model import SavedModel
from dragoman.text.labels import some

FEW = 1000  # images
LARGE = 256 * 256  # pixels of an image that make a step slow


class ImagesConfig(Settings):
    size: str = Field("", description="width and height to resize all images to, as 64x48; else they are as they are")
    valid: int = Field(2000, gt=0, description="about how many images are split off where no --valid is given")
    shift: int | None = Field(None, ge=0, description="pixels that a training image is moved by at most, to any side")
    flip: bool = Field(False, description="every other training image left to right; not for digits, text or angles")

    def asked_size(self) -> Size | None:
        return read_size(self.size) if self.size else None


def find(request: Request) -> Corpora[ImageCorpus]:
    return Corpora(find_images(request.corpora), find_images(request.valid) if request.valid else None)


@dataclass
class ImageData:
    """Images as bytes, and what is to be learned of each."""

    train: ImageIndex
    valid: ImageIndex
    answers: Answers
    about: dict[str, Any]  # for whoever uses the model: levels of the images and of the numbers, values of the masks
    moves: Moves
    split_off: bool  # whether the validation images are a part of the training corpus

    @classmethod
    def prepare(
        cls, folder: Path, request: Request, corpora: Corpora[ImageCorpus], saved: SavedModel | None, notice: Notice
    ) -> "ImageData":
        """A model that goes on keeps the form, the levels and, where it knows them all, the labels that it has."""
        config = ImagesConfig.read(request.asked("images"), section="images")
        form = form_of(corpora.train, config, saved, notice)
        moves = moves_for(request.task, config, form)
        answers = KINDS[request.task].find(corpora.train, form)
        known = known_answers(request.task, answers, corpora.train, saved, notice)
        writer = Writer(folder / "data", form, known or answers)
        share = 0.0 if corpora.valid else held_share(corpora.train, form, config.valid)
        train, valid = writer.write(corpora, share, notice)
        about = {"images": {"mean": train.mean, "deviation": train.deviation}, **answers.about(train)}
        about |= {"images": saved.about["images"]} if saved else {}
        about |= saved.about if saved and known else {}
        return cls(train, valid, writer.answers, about, moves, share > 0)

    @classmethod
    def reopen(cls, folder: Path, recorded: Mapping[str, Any]) -> "ImageData":
        train, valid = (ImageIndex(folder / "data" / part) for part in ("train", "valid"))
        made = recorded["plan"]
        answers = answers_of(recorded["run"]["task"], recorded["model"], made["use"])
        return cls(train, valid, answers, made["use"], Moves(made["shift"], made["flip"]), made["split_off"])

    @property
    def levels(self) -> Levels:
        return Levels.read(self.about["images"], section="images")


def form_of(corpus: ImageCorpus, config: ImagesConfig, saved: SavedModel | None, notice: Notice) -> Form:
    if saved:
        known: Any = saved.model.config
        levels = Levels.read(saved.about["images"], section="images")
        height, width = known.size
        form = Form(known.channels, height, width, levels.resampling)
        there = corpus.form(form.size)
        if there.channels != form.channels:
            notice(f"the images of {corpus.name} are in {colours(there)}; the model reads them in {colours(form)}")
        return form
    form = corpus.form(config.asked_size())
    if form.height * form.width > LARGE:
        small = evenly_cut(Size(max(1, form.height // 4), max(1, form.width // 4)))
        notice(f"images of {form.size} take long to learn from; --set images.size={small} makes them smaller")
    return form


def colours(form: Form) -> str:
    return "grey" if form.channels == 1 else "colour"


def known_answers(
    task: str, found: Answers, corpus: ImageCorpus, saved: SavedModel | None, notice: Notice
) -> Answers | None:
    """Those that the model to start from tells, where all that is to be learned is among them."""
    if saved is None or saved.task != task:
        return None
    config: Any = saved.model.config
    known = answers_of(task, config.model_dump(), saved.about)
    if found == known or (task == "classify" and set(found.names) <= set(known.names)):
        return known
    notice(
        f"{corpus.name} has {some(found.names)} to learn and the model knows {some(known.names)}: its last layer is new"
    )
    return None


def held_share(corpus: ImageCorpus, form: Form, wanted: int) -> float:
    """A tenth of the images, or so many as are wanted. Of few images chance might hold back none: there they are
    counted out."""
    images = sum(1 for _ in corpus.names())
    share = min(0.1, wanted / max(1, images))
    if images > FEW:
        return share
    places = sorted(part_of(fingerprint(pixels)) for pixels in corpus.pixels(form))
    return places[max(1, round(share * images))] if images > 1 else 0.0


def moves_for(task: str, config: ImagesConfig, form: Form) -> Moves:
    """A fourteenth of the size, as for digits; none where a moved image has other numbers."""
    if task == "regress" and (config.shift or config.flip):
        moved = "shift" if config.shift else "flip"
        raise UsageError(
            "E-IMG-13", f"images.{moved} is not for the task regress: an image that is moved has other numbers"
        )
    usual = 0 if task == "regress" else round(min(form.size) / 14)
    return Moves(usual if config.shift is None else config.shift, config.flip)


@dataclass(frozen=True)
class Writer:
    """Writes images and their answers into a folder, in one pass over the corpus."""

    folder: Path
    form: Form
    answers: Answers

    def write(self, corpora: Corpora[ImageCorpus], share: float, notice: Notice) -> tuple[ImageIndex, ImageIndex]:
        with self.open("train") as train, self.open("valid") as valid:
            met = self.fill(train, valid, corpora, share)
        if not (train.count and valid.count):
            raise DataError(
                "E-IMG-02",
                f"{corpora.name} leaves {train.count:,} images to learn from and there are {valid.count:,} to validate "
                "with; give more images, or some to --valid",
            )
        if met:
            notice(f"{met:,} training images also stand in the validation data")
        return train.finish(), valid.finish()

    def fill(self, train: IndexWriter, valid: IndexWriter, corpora: Corpora[ImageCorpus], share: float) -> int:
        """Each image into its part; how many to learn from are also to validate with."""
        held, met = set[int](), 0
        if corpora.valid:
            for pixels, answer in self.images(corpora.valid):
                held.add(fingerprint(pixels))
                valid.add(pixels, answer)
        for pixels, answer in self.images(corpora.train):
            mark = fingerprint(pixels)
            met += mark in held
            (valid if part_of(mark) < share else train).add(pixels, answer)
        return met

    def open(self, part: str) -> IndexWriter:
        return IndexWriter(self.folder / part, self.form, self.answers.dtype, self.answers.shape(self.form))

    def images(self, corpus: ImageCorpus) -> Iterator[tuple[Pixels, Any]]:
        return zip(corpus.pixels(self.form), self.answers.of(corpus, self.form), strict=True)
