"""dragoman explain: the arithmetic of one attention block, printed to be followed by hand."""

import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from dragoman.cli.options import Flag, Threads

if TYPE_CHECKING:
    from dragoman.decoding.images import ImageModel
    from dragoman.errors import DataError
    from dragoman.seeing.arithmetic import Arithmetic, Matrix, Stage, Terms

WIDTH = 80  # columns of a terminal
LABEL = 10  # letters of a word that are shown
BETWEEN = "   "  # two matrices side by side


class Line(NamedTuple):
    text: str
    style: str = ""  # on a terminal


def explain(
    text: str | None = None,
    *,
    model: str | None = None,
    numbers: Literal["toy", "slides"] | None = None,
    threads: Threads = None,
    json: Flag = False,
) -> int:
    """Print what attention computes, step by step: queries, keys, scores, softmax, the sum of values, the norm.

    Parameters
    ----------
    text
        Words to follow; else YOUR CAT IS A LOVELY CAT. Of a vit an image file.
    model
        A run's folder, a model's, or one of Hugging Face, whose first block is shown at work on the text or image; of
        an rnn, how its decoder looks at the text.
    numbers
        Without a model: of a toy that can be followed by hand, or those that lecture 001 prints on its slides.
    json
        One JSON object instead, as the page reads it.
    """
    refuse_contradictions(text, model, numbers)

    from dragoman.jobs.machine import use_threads

    use_threads(threads)
    found = work_out(text, model, numbers)
    if json:
        print(found.model_dump_json())
    else:
        show(lines_of(found))
    return 0


def refuse_contradictions(text: str | None, model: str | None, numbers: str | None) -> None:
    from dragoman.errors import UsageError
    from dragoman.text.reading import clean

    if text is not None and not clean(text):
        raise UsageError("E-EXP-01", f"there is no word in {text!r}; give one or more, such as 'the cat sat'")
    if model:
        refuse_nothing_to_read(text, model)
    if model and numbers:
        raise UsageError(
            "E-EXP-02", f"--numbers {numbers} and --model {model} are two sources of numbers; give one of them"
        )
    if text is not None and numbers == "slides":
        raise UsageError("E-EXP-02", f"the slides have numbers for their own sentence alone; leave out {text!r}")


def refuse_nothing_to_read(text: str | None, model: str) -> None:
    """What has no attention is not first asked for a text."""
    from dragoman.cli.kind import kind_of
    from dragoman.errors import UsageError
    from dragoman.images import FAMILIES

    family = kind_of(Path(model))[1]
    if family in FAMILIES and family != "vit":
        raise without_attention(model)
    if text is None and family == "vit":
        raise UsageError("E-EXP-01", f"no image was given for {model} to see; give a file, such as cat.png")
    if text is None:
        raise UsageError("E-EXP-01", f"no text was given for {model} to read; give one, such as 'the cat sat'")


def without_attention(model: str) -> "DataError":
    from dragoman.cli.kind import kind_of
    from dragoman.errors import DataError

    return DataError(
        "E-EXP-03",
        f"{model} is of the family {kind_of(Path(model))[1]} and has no attention to explain; give a transformer, "
        "marian, t5, gpt, bert or vit, or an rnn that learned to translate with attention, or leave out --model",
    )


def work_out(text: str | None, model: str | None, numbers: str | None) -> "Arithmetic":
    from dragoman.seeing.arithmetic import CAT, model_arithmetic, slides_arithmetic, toy_arithmetic
    from dragoman.text.reading import clean

    if model is None:
        return slides_arithmetic() if numbers == "slides" else toy_arithmetic(clean(text).split() if text else CAT)

    from dragoman.decoding.images import ImageModel
    from dragoman.jobs.open import load

    learned = load(model)
    found = (
        work_out_image(learned, text or "")
        if isinstance(learned, ImageModel)
        else model_arithmetic(learned, text or "")
    )
    if found is None:
        raise without_attention(model)
    return found


def work_out_image(learned: "ImageModel", image: str) -> "Arithmetic":
    from dragoman.seeing.arithmetic import patch_arithmetic
    from dragoman.seeing.shown import choose

    return patch_arithmetic(learned, choose(image, 1, learned.form).pixels.transpose(2, 0, 1))


# ── lines ─────────────────────────────────────────────────────────────────────────────────


def lines_of(found: "Arithmetic") -> Iterator[Line]:
    yield from paragraph(found.title, style="bold")
    yield from paragraph(found.note)
    heads = f"{found.heads} head" + ("s" if found.heads > 1 else "")
    yield Line(f"{len(found.words)} words shown, width {found.width}, {heads} of width {found.head_width}")
    for number, stage in enumerate(found.stages, start=1):
        yield from stage_lines(number, stage)
    if found.shuffle:
        yield Line("")
        yield Line(heading("shuffle"), "bold")
        yield from paragraph(" ".join(map(visible, found.shuffle.words)))
        yield from paragraph(found.shuffle.sentence)


def stage_lines(number: int, stage: "Stage") -> Iterator[Line]:
    yield Line("")
    yield Line(heading(f"{number} {stage.name}"), "bold")
    yield from paragraph(stage.sentence)
    for row in rows_of([as_block(matrix) for matrix in stage.matrices]):
        yield Line("")
        yield from (Line(line, "bold" if first else "") for first, line in zip_longest([True], beside(row)))
    if stage.terms:
        yield Line("")
        yield from terms_lines(stage.terms)


def heading(title: str) -> str:
    return f"── {title} ".ljust(WIDTH, "─")


def paragraph(text: str, style: str = "") -> Iterator[Line]:
    """Broken between words by the columns they take, of which some letters need two; a word too wide, within it."""
    line = ""
    for word in visible(text).split():
        while width_of(word) > WIDTH:
            cut = max(n for n in range(1, len(word)) if width_of(word[:n]) <= WIDTH)
            yield from ([Line(line, style)] if line else [])
            yield Line(word[:cut], style)
            line, word = "", word[cut:]
        longer = f"{line} {word}" if line else word
        if width_of(longer) > WIDTH:
            yield Line(line, style)
            longer = word
        line = longer
    yield Line(line, style)


def visible(text: str) -> str:
    """Nothing that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def terms_lines(terms: "Terms") -> Iterator[Line]:
    """One cell written out: the second row looking at the first column."""
    row = min(1, len(terms.rows) - 1)
    products, total = terms.products.unpack()[row, 0].tolist(), terms.sums.unpack()[row, 0].item()
    factors = factors_of(terms, row)
    across = max(20, *map(width_of, factors))
    yield Line(f"{fit(terms.rows[row])} looks at {fit(terms.columns[0])}, term by term:", "bold")
    for number, (factor, product) in enumerate(zip(factors, products, strict=True)):
        sign = "  " if number == 0 else "+ "
        yield Line(f"  {sign}{factor:<{across}} = {product:>9.{terms.products.digits}f}")
    more = f"   with {terms.left_out} more terms" if terms.left_out else ""
    formula = "= v·tanh(q + k)" if terms.v else "= q·k"
    yield Line(f"  {formula:<{across + 2}}   {total:>9.{terms.sums.digits}f}{more}")


def factors_of(terms: "Terms", row: int) -> list[str]:
    """The terms of this row with the first column, before they are multiplied."""
    asked = [f"{value:.{terms.queries.digits}f}" for value in terms.queries.unpack()[row].tolist()]
    found = [f"{value:.{terms.keys.digits}f}" for value in terms.keys.unpack()[0].tolist()]
    if terms.v is None:
        return [f"{q} × {k}" for q, k in zip(asked, found, strict=True)]
    v = [f"{value:.{terms.v.digits}f}" for value in terms.v.unpack().tolist()]
    return [f"{weight} × tanh({q} + {k})" for weight, q, k in zip(v, asked, found, strict=True)]


# ── matrices ──────────────────────────────────────────────────────────────────────────────


def as_block(matrix: "Matrix") -> list[str]:
    """Name and shape, a line of labels, a line for each row; all equally wide."""
    cells = [[number(value, matrix.values.digits) for value in row] for row in matrix.values.unpack().tolist()]
    columns, labels = [fit(name) for name in matrix.columns], [fit(name) for name in matrix.rows]
    across = max(width_of(cell) for row in [columns, *cells] for cell in row)
    if len(columns) * (across + 1) > WIDTH - LABEL:
        across = (WIDTH - LABEL) // len(columns) - 1
        columns = [fit(name, across) for name in columns]
    margin = max(map(width_of, labels))
    title = f"{matrix.sign} {matrix.name} ({' × '.join(map(str, matrix.shape))})".lstrip()
    lines = [title, pad("", margin) + spread(columns, across)]
    lines += [pad(label, margin) + spread(row, across) for label, row in zip(labels, cells, strict=True)]
    widest = max(map(width_of, lines))
    return [pad(line, widest) for line in lines]


def number(value: float, digits: int) -> str:
    return "−∞" if value == -float("inf") else f"{value:.{digits}f}"


def spread(cells: Sequence[str], across: int) -> str:
    return "".join(" " * (1 + across - width_of(cell)) + cell for cell in cells)


def fit(label: str, most: int = LABEL) -> str:
    """A word, cut where it is too long; a space is to be seen, too."""
    from rich.cells import set_cell_size

    label = visible(label) if label.strip() else "␣"
    return label if width_of(label) <= most else set_cell_size(label, most - 1).rstrip() + "…"


def pad(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    """Columns of a terminal; some letters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def rows_of(blocks: Sequence[list[str]]) -> list[list[list[str]]]:
    """As many side by side as there is room for."""
    rows: list[list[list[str]]] = []
    room = 0
    for block in blocks:
        needed = width_of(block[0]) + len(BETWEEN)
        if not rows or needed - len(BETWEEN) > room:
            rows.append([])
            room = WIDTH
        rows[-1].append(block)
        room -= needed
    return rows


def beside(blocks: Sequence[list[str]]) -> Iterator[str]:
    widths = [width_of(block[0]) for block in blocks]
    for lines in zip_longest(*blocks, fillvalue=""):
        yield BETWEEN.join(pad(line, width) for line, width in zip(lines, widths, strict=True)).rstrip()


# ── out ───────────────────────────────────────────────────────────────────────────────────


def show(lines: Iterator[Line]) -> None:
    """Plain text into a file or a pipe; with weight on a terminal."""
    if not sys.stdout.isatty():
        for line in lines:
            print(line.text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=line.style))
