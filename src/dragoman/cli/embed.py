"""dragoman embed: texts, words or images as vectors, and which of them are near to each other."""

import json as json_module
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    import numpy as np

    from dragoman.decoding.embed import Embedder
    from dragoman.decoding.words import Near, WordVectors

USUAL_NEAR = 5  # words told for an analogy, where nobody said how many


def embed(
    model: str,
    *texts: str,
    input: Path | None = None,
    output: Path | None = None,
    near: int = 0,
    analogy: Annotated[tuple[str, str, str] | None, Parameter(negative="")] = None,
    encoding: str = "utf-8",
    threads: int | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Turn texts, words or images into vectors, and tell which are near to each other.

    A bert gives each text a vector of length 1, and a vit without a head each image. word2vec and glove have a vector
    for each word; a text of several words is the mean of theirs.

    Parameters
    ----------
    model
        A run's folder, a model's, or one of Hugging Face, of the family bert, word2vec, glove, or a vit without a head.
    texts
        What to embed; else the lines of --input, or of standard input. For a model that reads images: image files, or
        idx files, .npz files and folders of images.
    input
        A file, one text a line; or the name of one image a line.
    output
        Write the vectors to this file: .npy (a row for each) or .json; those of words also as word2vec's .txt or .bin,
        and all words of the model where no text is given.
    near
        Instead of vectors, print the nearest with their cosines: of words so many of all that the model knows, with dot
        products too; of texts and images so many of the others given.
    analogy
        A B C: A is to B as C is to which words?
    encoding
        Of the input file.
    threads
        Processor threads to use; else one for each core.
    json
        One JSON object for each.
    """
    from dragoman.cli.kind import kind_of
    from dragoman.cli.translate import read_input, refuse_no_text
    from dragoman.images import FAMILIES
    from dragoman.jobs.machine import use_threads
    from dragoman.text.reading import read_lines

    refuse_nonsense(texts, input, output, near, analogy)
    if texts or input or not (analogy or output):  # those have something to do without a text
        refuse_no_text(texts, input)
    use_threads(threads)
    if kind_of(Path(model)) in [("embed", family) for family in FAMILIES]:
        from dragoman.cli.embed_images import embed_images

        refuse_words_of_texts(None, model, output, analogy, "images")
        return embed_images(model, texts, input, output, near, encoding, json)

    from dragoman.decoding.words import WordVectors
    from dragoman.jobs.open import load_embedder

    embedder = load_embedder(model)
    words = embedder if isinstance(embedder, WordVectors) else None
    refuse_words_of_texts(words, model, output, analogy)
    if words and analogy:
        show_analogy(analogy, words.analogy(*analogy, near or USUAL_NEAR), json)
        return 0
    if words and output and not texts and not input:
        save(output, words.words, words.vectors)
        return 0
    lines = list(texts) or list(read_lines(input, encoding) if input else chain.from_iterable(read_input([], None)))
    use(embedder, lines, output, near, json)
    return 0


def use(embedder: "Embedder | WordVectors", lines: Sequence[str], output: Path | None, near: int, json: bool) -> None:
    from dragoman.decoding.words import WordVectors

    if near and not isinstance(embedder, WordVectors):
        refuse_lone(lines, "text")
    vectors = embedder.embed(lines)
    if output:
        save(output, lines, vectors)
    if near and isinstance(embedder, WordVectors):
        for line, found in zip(lines, embedder.near(lines, near), strict=True):
            show_words(line, found, json)
    elif near:
        show_near(lines, vectors, near, json)
    elif not output:
        show(lines, vectors, json)


def refuse_nonsense(
    texts: Sequence[str], input: Path | None, output: Path | None, near: int, analogy: Sequence[str] | None
) -> None:
    from dragoman.errors import UsageError

    if output and output.suffix not in (".npy", ".json", ".txt", ".bin"):
        raise UsageError(
            "E-USE-12",
            f"--output {output} is written as .npy, .json, .txt or .bin; name it {output.with_suffix('.npy')}",
        )
    if near < 0:
        raise UsageError("E-USE-12", f"--near {near} asks for nothing; give 1 or more")
    if analogy and (texts or input or output):
        raise UsageError("E-USE-12", "--analogy names its three words itself; leave out other texts and --output")


def refuse_lone(given: Sequence[str], what: str) -> None:
    """Words are compared with all that the model knows; these only with each other."""
    from dragoman.errors import UsageError

    if len(given) < 2:
        raise UsageError(
            "E-USE-12", f"--near compares each {what} with the others, and {len(given)} was given; give two or more"
        )


def refuse_words_of_texts(
    words: "WordVectors | None",
    model: str,
    output: Path | None,
    analogy: Sequence[str] | None,
    what: str = "texts",
) -> None:
    from dragoman.errors import DataError, UsageError

    if words:
        return
    if analogy:
        raise DataError(
            "E-RUN-10", f"--analogy is about words, and {model} has vectors of {what}; give a word2vec or glove"
        )
    if output and output.suffix in (".txt", ".bin"):
        named = output.with_suffix(".npy")
        raise UsageError(
            "E-USE-12", f"--output {output} is for vectors of words, and {model} has those of {what}; name it {named}"
        )


def save(path: Path, names: Sequence[str], vectors: "np.ndarray") -> None:
    import io

    import numpy as np

    from dragoman.runs.files import write_file
    from dragoman.text.vectors import to_binary, to_json, to_text

    match path.suffix:
        case ".npy":
            whole = io.BytesIO()
            np.save(whole, vectors)
            write_file(path, whole.getvalue())
        case ".json":
            write_file(path, to_json(names, vectors))
        case ".txt":
            write_file(path, to_text(one_word_each(names), vectors))
        case _:
            write_file(path, to_binary(one_word_each(names), vectors))


def one_word_each(names: Sequence[str]) -> list[str]:
    """These formats end a word at a space."""
    return ["_".join(name.split()) for name in names]


def show(lines: Sequence[str], vectors: "np.ndarray", json: bool, what: str = "text") -> None:
    for line, vector in zip(lines, vectors.tolist(), strict=True):
        numbers = [round(number, 6) for number in vector]
        print(json_module.dumps({what: line, "vector": numbers}, ensure_ascii=False) if json else numbers)


def show_near(lines: Sequence[str], vectors: "np.ndarray", near: int, json: bool, what: str = "text") -> None:
    from dragoman.decoding.embed import nearest

    for line, others in zip(lines, nearest(vectors, near), strict=True):
        if json:
            found = [{what: lines[other], "cosine": round(cosine, 6)} for other, cosine in others]
            print(json_module.dumps({what: line, "near": found}, ensure_ascii=False))
            continue
        print(line)
        for other, cosine in others:
            print(f"  {cosine:6.3f}  {lines[other]}")


def show_analogy(words: Sequence[str], found: "Sequence[Near]", json: bool) -> None:
    first, second, third = words
    show_words(f"{first} is to {second} as {third} is to", found, json)


def show_words(text: str, found: "Sequence[Near]", json: bool) -> None:
    if json:
        near = [{"word": one.word, "cosine": round(one.cosine, 6), "dot": round(one.dot, 6)} for one in found]
        print(json_module.dumps({"text": text, "near": near}, ensure_ascii=False))
        return
    print(text)
    print("  cosine  dot product  word")
    for one in found:
        print(f"  {one.cosine:6.3f}  {one.dot:11.3f}  {one.word}")
