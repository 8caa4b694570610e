"""dragoman look: what an image model sees on its way to an answer, as numbers, a picture, or a page."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.decoding.insides import Insides


def look(model: str, image: str, /, *, out: Path | None = None, number: int = 1, threads: int | None = None) -> int:
    """Show the feature maps of each layer of a cnn, or where each head of a vit's class token looks.

    Parameters
    ----------
    model
        A run's folder, a model's, or one of Hugging Face, that reads images.
    image
        An image file; or an idx file, a .npz or a folder, of which --number says the image.
    out
        The file to write: a picture (.png) or a page (.html); else the numbers alone are printed.
    number
        Which image of a corpus, counted from 1.
    threads
        Processor threads to use; else one for each core.
    """
    from dragoman.cli.kind import kind_of
    from dragoman.errors import UsageError
    from dragoman.images import FAMILIES
    from dragoman.images.corpus import find_shown

    refuse_file(out)
    family = kind_of(Path(model))[1]
    if family and family not in FAMILIES:
        raise UsageError(
            "E-IMG-15",
            f"dragoman look shows models that read images so far, and {model} is a {family}, which reads text",
        )
    [shown] = find_shown([image])

    from dragoman.decoding.images import ImageModel
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(threads)
    opened = load_as(ImageModel, model)
    names, pixels = list(shown.names()), shown.pixels(opened.form)
    if not 1 <= number <= len(names):
        raise UsageError("E-IMG-15", f"--number {number} cannot be; {image} holds {len(names):,} images")
    chosen = next(one for place, one in enumerate(pixels, start=1) if place == number)
    found = opened.look(chosen.transpose(1, 2, 0))
    title = Path(names[number - 1]).name
    if out:
        from dragoman.seeing.insides import save_insides

        save_insides(found, title, out)
        print(out)
    else:
        show(found, title)
    return 0


def refuse_file(out: Path | None) -> None:
    from importlib.util import find_spec

    from dragoman.errors import MachineError, UsageError

    if out and out.suffix.lower() not in (".png", ".html"):
        raise UsageError("E-IMG-15", f"--out {out} is neither .png nor .html; name it {out.with_suffix('.html')}")
    if out and out.suffix.lower() == ".png" and find_spec("matplotlib") is None:
        raise MachineError(
            "E-IMG-16",
            "a .png is drawn with matplotlib, which is missing: pip install 'dragoman[plot]', or write .html",
        )


def show(found: "Insides", title: str) -> None:
    print(f"{title}: {', '.join(f'{word} ({value})' for word, value in found.told)}")
    for block in found.attention:
        print(f"\n{block.layer:<12}{'bits':>8}{'most at':>12}{'weight':>9}{'at itself':>11}")
        rows = zip(block.entropy(), block.strongest(), block.itself.tolist(), strict=True)
        for head, (bits, (row, column, weight), itself) in enumerate(rows, start=1):
            place = f"{row + 1}, {column + 1}"
            print(f"head {head:<7}{bits:>8.2f}{place:>12}{weight:>9.1%}{itself:>11.1%}")
    for layer in found.maps:
        count, height, width = layer.maps.shape
        print(
            f"{layer.layer:<18}{count:>4} maps of {width}×{height}   brightest {layer.strongest() + 1}   "
            f"dark everywhere {layer.silent():.0%}"
        )
