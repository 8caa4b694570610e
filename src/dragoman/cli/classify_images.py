"""dragoman classify, where the model reads images: a line for each of them, what it tells first, then its name."""

import json as json_module
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.decoding.images import ImageModel, ImageSegmenter
    from dragoman.images.corpus import ImageCorpus
    from dragoman.images.folder import ImageFiles


def classify_images(
    model: str, images: Sequence[str], input: Path | None, output: Path | None, threads: int | None, json: bool
) -> int:
    from dragoman.cli.kind import kind_of
    from dragoman.errors import UsageError
    from dragoman.images.corpus import find_shown
    from dragoman.text.reading import read_lines

    named = [line for line in read_lines(input, "utf-8") if line] if input else images
    shown, task = find_shown(named), kind_of(Path(model))[0]
    refuse_no_head(model, task)
    if (task == "segment") != (output is not None):
        way = "say where with --output DIR" if output is None else "leave out --output"
        raise UsageError(
            "E-IMG-14", f"masks are written by a model that labels pixels, and {model} learned to {task}; {way}"
        )

    masks = iter(masks_for(shown, output) if output else ())

    from dragoman.decoding.images import ImageModel
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(threads)
    opened = load_as(ImageModel, model)
    for part in shown:
        for words, whole in told_of(opened, part, masks):
            print(json_module.dumps(whole, ensure_ascii=False) if json else words, flush=True)
    return 0


def refuse_no_head(model: str, task: str) -> None:
    from dragoman.errors import DataError

    if task == "embed":
        raise DataError(
            "E-RUN-10",
            f"{model} has no head to tell anything with; put one on it by dragoman train IMAGES --from {model}, or use "
            "it with dragoman embed",
        )


def masks_for(shown: "Sequence[ImageFiles | ImageCorpus]", output: Path) -> list[Path]:
    """Where the mask of each image will be; what is there already stays as it is."""
    from dragoman.images.corpus import ImageCorpus
    from dragoman.images.mask_names import mask_names, refuse_existing

    images = list[Path]()
    for part in shown:
        folder = part.paths[0].parent if isinstance(part, ImageCorpus) else Path()
        images += [Path(name) if Path(name).is_file() else folder / name for name in part.names()]
    names = mask_names(images)
    refuse_existing(output, names)
    return [output / name for name in names]


def told_of(
    model: "ImageModel", images: "ImageFiles | ImageCorpus", masks: Iterator[Path]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is told of each image: as a line, and as an object."""
    from dragoman.decoding.images import ImageClassifier, ImageRegressor, ImageSegmenter

    pixels = images.pixels(model.form)
    if isinstance(model, ImageClassifier):
        for name, one in zip(images.names(), model.label(pixels), strict=True):
            yield f"{one.label}\t{one.probability:.4f}\t{name}", {"image": name, **one._asdict()}
    elif isinstance(model, ImageRegressor):
        for name, row in zip(images.names(), model.numbers(pixels).tolist(), strict=True):
            numbers = dict(zip(model.names, row, strict=True))
            yield "\t".join([*(f"{value:.6g}" for value in row), name]), {"image": name, "numbers": numbers}
    elif isinstance(model, ImageSegmenter):
        yield from write_masks(model, images, masks)


def write_masks(
    model: "ImageSegmenter", images: "ImageFiles | ImageCorpus", paths: Iterator[Path]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A mask for each image: of the size of its image, where that is a file."""
    from dragoman.images.pixels import measure, resize_mask, save_mask

    for name, mask in zip(images.names(), model.masks(images.pixels(model.form)), strict=True):
        size, path = measure(Path(name)).size if Path(name).is_file() else model.form.size, next(paths)
        save_mask(resize_mask(model.values[mask], size), path)
        shares = {label: float((mask == number).mean()) for number, label in enumerate(model.classes)}
        listed = ", ".join(f"{label} {share:.1%}" for label, share in shares.items() if share)
        yield f"{listed}\t{path}", {"image": name, "mask": str(path), "shares": shares}
