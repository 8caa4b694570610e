"""dragoman embed: texts as vectors, and which of them are near to each other."""

import json as json_module
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    import numpy as np


def embed(
    model: str,
    *texts: str,
    input: Path | None = None,
    output: Path | None = None,
    near: int = 0,
    encoding: str = "utf-8",
    threads: int | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Turn each text into a vector of length 1; the dot product of two is their cosine.

    Parameters
    ----------
    model
        A run's folder, a model's, or one of Hugging Face, of the family bert.
    texts
        What to embed; else the lines of --input, or of standard input.
    input
        A file, one text a line.
    output
        Write the vectors to this .npy file, a row a text.
    near
        Instead of vectors, print for each text its so many nearest among the others, with their cosines.
    encoding
        Of the input file.
    threads
        Processor threads to use; else one for each core.
    json
        One JSON object a text.
    """
    from dragoman.errors import UsageError
    from dragoman.text.reading import read_lines, refuse_missing

    if texts and input:
        raise UsageError("E-USE-06", "texts and --input were both given; give one of them")
    if output and output.suffix != ".npy":
        raise UsageError("E-USE-12", f"--output {output} is written as .npy; name it {output.with_suffix('.npy')}")
    if near < 0:
        raise UsageError("E-USE-12", f"--near {near} asks for nothing; give 1 or more")
    if input:
        refuse_missing(input)

    from dragoman.cli.translate import read_input
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_embedder

    use_threads(threads)
    embedder = load_embedder(model)
    lines = list(texts) or list(read_lines(input, encoding) if input else chain.from_iterable(read_input([], None)))
    vectors = embedder.embed(lines)
    if output:
        save(output, vectors)
    if near:
        show_near(lines, vectors, near, json)
    elif not output:
        show(lines, vectors, json)
    return 0


def save(path: Path, vectors: "np.ndarray") -> None:
    import io

    import numpy as np

    from dragoman.runs.files import write_file

    whole = io.BytesIO()
    np.save(whole, vectors)
    write_file(path, whole.getvalue())


def show(lines: Sequence[str], vectors: "np.ndarray", json: bool) -> None:
    for line, vector in zip(lines, vectors.tolist(), strict=True):
        numbers = [round(number, 6) for number in vector]
        print(json_module.dumps({"text": line, "vector": numbers}, ensure_ascii=False) if json else numbers)


def show_near(lines: Sequence[str], vectors: "np.ndarray", near: int, json: bool) -> None:
    from dragoman.decoding.embed import nearest

    for line, others in zip(lines, nearest(vectors, near), strict=True):
        if json:
            found = [{"text": lines[other], "cosine": round(cosine, 6)} for other, cosine in others]
            print(json_module.dumps({"text": line, "near": found}, ensure_ascii=False))
            continue
        print(line)
        for other, cosine in others:
            print(f"  {cosine:6.3f}  {lines[other]}")
