"""dragoman look: what happens inside a model at work on one text or image, as numbers and as one offline page."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.options import Model, Threads, Whole

if TYPE_CHECKING:
    from dragoman.decoding.images import ImageModel
    from dragoman.decoding.insides import Insides
    from dragoman.seeing.looked import Look
    from dragoman.seeing.shown import Chosen

ENDINGS = (".html", ".json", ".png", ".svg")


def look(
    model: Model,
    text: str,
    /,
    *,
    out: Path = Path("look.html"),
    target: str | None = None,
    gold: str | None = None,
    beam: Whole | None = None,
    number: Whole | None = None,
    threads: Threads = None,
) -> int:
    """Show every layer and head of a model while it works on TEXT, and how its output came about, as one offline page.

    Of a model that reads images TEXT is a file: a vit's patches look at each other like words; of a cnn there are the
    feature maps.

    Parameters
    ----------
    text
        A sentence; or an image file, an idx file, a .npz or a folder, of which --number says the image.
    out
        The file to write: a page (.html), every number (.json), or a drawing of the attention (.png, .svg).
    target
        A reference translation, to score: is the model to blame for an error, or the search?
    gold
        Links from words of TEXT to words of the reference, or of the output where there is none, as 0-0 1-2: the error
        of each head is told.
    beam
        Beginnings kept at each step of the search; the model's own setting where not given.
    number
        Which image of a corpus, counted from 1; the first where not given.
    """
    refuse_file(out)
    refuse_unseen(Path(model))
    if reads_images(Path(model)):
        refuse_reference(target, gold)
        return look_at_image(model, text, out, 1 if number is None else number, threads)

    from dragoman.decoding.settings import refuse_wide

    refuse_wide(beam)

    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load
    from dragoman.seeing.look import look as look_at

    use_threads(threads)
    learned = load(model)
    refuse_number(model, number)
    asked: dict[str, Any] = {"target": target, "gold": gold, "beam": beam}
    seen = look_at(learned, text, **asked)
    save_look(Path(model), learned, seen, asked, out)
    tell(seen)
    print(out)
    return 0


def refuse_file(out: Path) -> None:
    from importlib.util import find_spec

    from dragoman.errors import MachineError, UsageError

    if out.suffix.lower() not in ENDINGS:
        raise UsageError(
            "E-LOOK-07", f"--out {out} is none of {', '.join(ENDINGS)}; name it {out.with_suffix('.html').name}"
        )
    if not out.parent.is_dir():  # told before the model is opened, and not as a disk that is full
        raise UsageError("E-LOOK-07", f"--out {out} names a folder that is not there; make it: mkdir -p {out.parent}")
    if out.suffix.lower() in (".png", ".svg") and find_spec("matplotlib") is None:
        raise MachineError(
            "E-IMG-16",
            f"a {out.suffix} is drawn with matplotlib, which is missing: pip install 'dragoman[plot]', or write .html",
        )


def refuse_unseen(model: Path) -> None:
    """Families without anything to look at are refused before torch is imported."""
    from dragoman.cli.kind import kind_of
    from dragoman.errors import DataError

    family = kind_of(model)[1]
    if family in ("bag", "word2vec", "glove", "mlp"):
        raise DataError(
            "E-LOOK-02",
            f"{model} is a {family}, which has neither attention between words nor feature maps to look at; "
            "give a transformer, rnn, t5, gpt, bert, vit or cnn",
        )


def reads_images(model: Path) -> bool:
    from dragoman.cli.kind import kind_of
    from dragoman.images import FAMILIES

    return kind_of(model)[1] in FAMILIES


def refuse_reference(target: str | None, gold: str | None) -> None:
    from dragoman.errors import UsageError

    if target is not None or gold is not None:
        raise UsageError("E-LOOK-03", "a reference and its links are for translators, and this model reads images")


def refuse_number(model: str, number: int | None) -> None:
    from dragoman.errors import UsageError

    if number is not None:
        raise UsageError("E-LOOK-03", f"--number {number} says which image, and {model} reads texts; leave it out")


def save_look(model: Path, learned: Any, seen: "Look", asked: dict[str, Any], out: Path) -> None:
    from dragoman.errors import DataError
    from dragoman.runs.files import write_file

    if out.suffix.lower() == ".json":
        write_file(out, seen.model_dump_json(indent=1))
    elif out.suffix.lower() == ".html":
        from dragoman.seeing.page import page_data, saved_page

        write_file(out, saved_page(page_data(model, learned, seen, asked)))
    elif not seen.attention:
        raise DataError("E-LOOK-02", f"{model} has no attention to draw as {out.suffix}; write .html for its steps")
    else:
        from dragoman.seeing.figures import draw_look
        from dragoman.seeing.plots import save_as

        save_as(draw_look(seen), out)


def tell(seen: "Look") -> None:
    """What came out, and how widely each head looks."""
    if seen.translation:
        print(f"{seen.text} → {seen.translation.text}   (log p {seen.translation.log_prob:.2f})")
    for mask in seen.masks:
        print(", ".join(f"{one.token or '∅'} ({one.probability:.1%})" for one in mask.candidates[:4]))
    if seen.reference:
        print(f"{seen.reference.verdict}: {seen.reference.sentence}")
    if seen.attention:
        print("bits of each head, from 0 (one place) up to the number behind it (everywhere alike):")
    for layer in seen.attention:
        heads = " ".join(f"{bits:5.2f}" for bits in layer.entropy)
        print(f"  {layer.kind:<8} block {layer.number}  {heads}   of {layer.most_entropy:.2f}")
    if seen.gold:
        best = seen.gold.best
        where = f"block {seen.attention[best.layer].number}, head {best.head + 1}"
        print(f"alignment error: best in {where}, {best.aer:.3f}")


# ── images ────────────────────────────────────────────────────────────────────────────────


def look_at_image(model: str, image: str, out: Path, number: int, threads: int | None) -> int:
    from dragoman.images.corpus import find_shown

    find_shown([image])

    from dragoman.decoding.images import ImageModel
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as
    from dragoman.seeing.shown import choose

    use_threads(threads)
    opened = load_as(ImageModel, model)
    chosen = choose(image, number, opened.form)
    found = opened.look(chosen.pixels)
    save_image_look(Path(model), opened, chosen, found, out)
    show(found, chosen.title)
    print(out)
    return 0


def save_image_look(model: Path, opened: "ImageModel", chosen: "Chosen", found: "Insides", out: Path) -> None:
    """A drawing is of what the model saw on its way; the page and its numbers are those of all that attend, and a cnn
    has a page of its own."""
    from dragoman.seeing.insides import save_insides
    from dragoman.seeing.picture import look_at_image as look_at

    if found.attention and out.suffix.lower() in (".html", ".json"):
        save_look(model, opened, look_at(opened, chosen.pixels, chosen.name), {"image": chosen.python}, out)
    else:
        save_insides(found, chosen.title, out)


def show(found: "Insides", title: str) -> None:
    print(f"{title}: {', '.join(f'{word} ({value})' for word, value in found.told)}")
    for block in found.attention:
        print(f"\n{block.layer:<12}{'bits':>8}{'most at':>12}{'weight':>9}{'at class':>11}")
        rows = zip(block.entropy(), block.strongest(), block.at_class.tolist(), strict=True)
        for head, (bits, (row, column, weight), at_class) in enumerate(rows, start=1):
            place = f"{row + 1}, {column + 1}"
            print(f"head {head:<7}{bits:>8.2f}{place:>12}{weight:>9.1%}{at_class:>11.1%}")
    for layer in found.maps:
        count, height, width = layer.maps.shape
        print(
            f"{layer.layer:<18}{count:>4} maps of {width}×{height}   brightest {layer.strongest() + 1}   "
            f"dark everywhere {layer.silent():.0%}"
        )
