"""dragoman embed: texts, words or images as vectors, and which of them are near to each other."""

import json as json_module
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dragoman.cli.options import Flag, Threads, Whole

if TYPE_CHECKING:
    import numpy as np

    from dragoman.decoding.embed import Embedder
    from dragoman.decoding.words import Near, WordVectors

USUAL_NEAR = 5  # words told for an analogy, where nobody said how many


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """Where the texts come from, and what is wanted of their vectors."""

    input: Path | None = None
    """A file, one text a line; or the name of one image a line."""
    output: Path | None = None
    """Write the vectors to this file: .npy (a row for each) or .json; those of words also as word2vec's .txt or .bin,
    and all words of the model where no text is given."""
    near: Whole = 0
    """Instead of vectors, print the nearest with their cosines: of words so many of all that the model knows, with dot
    products too; of texts and images so many of the others given."""
    analogy: Annotated[tuple[str, str, str] | None, Parameter(negative="")] = None
    """A B C: A is to B as C is to which words?"""
    encoding: str = "utf-8"
    """Of the input."""
    threads: Threads = None
    json: Flag = False
    """One JSON object for each."""


USUAL = Options()


def embed(
    model: Annotated[
        str, Parameter(help="A model's folder: of the family bert, word2vec, glove, or a vit without a head.")
    ],
    *texts: str,
    options: Options = USUAL,
) -> int:
    """Turn texts, words or images into vectors, and tell which are near to each other.

    A bert gives each text a vector of length 1, and a vit without a head each image. word2vec and glove have a vector
    for each word; a text of several words is the mean of theirs.

    Parameters
    ----------
    texts
        What to embed; else the lines of --input, or of standard input. For a model that reads images: image files, or
        idx files, .npz files and folders of images.
    """
    from dragoman.cli.kind import kind_of, refuse_no_model
    from dragoman.cli.translate import refuse_no_folder, refuse_no_text
    from dragoman.images import FAMILIES
    from dragoman.jobs.machine import refuse_odd_threads, use_threads
    from dragoman.text.reading import refuse_encoding

    refuse_nonsense(texts, options)
    refuse_encoding(options.encoding)
    refuse_no_folder(options.output)
    refuse_odd_threads(options.threads)
    refuse_no_model(model)
    if texts or options.input or not (options.analogy or options.output):  # those do something without a text
        refuse_no_text(texts, options.input)
    use_threads(options.threads)
    if kind_of(Path(model)) in [("embed", family) for family in FAMILIES]:
        from dragoman.cli.embed_images import embed_images

        refuse_words_of_texts(model, options, "images")
        return embed_images(model, texts, options)

    from dragoman.decoding.words import WordVectors
    from dragoman.jobs.open import load_embedder

    embedder = load_embedder(model)
    if not isinstance(embedder, WordVectors):
        refuse_words_of_texts(model, options, "texts")
    elif options.analogy:
        show_analogy(options.analogy, embedder.analogy(*options.analogy, options.near or USUAL_NEAR), options.json)
        return 0
    elif options.output and not texts and not options.input:
        save(options.output, embedder.words, embedder.vectors)
        return 0
    use(embedder, list(texts) or read_texts(options), options)
    return 0


def read_texts(options: Options) -> list[str]:
    from dragoman.cli.translate import read_input
    from dragoman.text.reading import read_lines

    if options.input:
        return list(read_lines(options.input, options.encoding))
    return [line for lines in read_input([], None, options.encoding) for line in lines]


def use(embedder: "Embedder | WordVectors", lines: Sequence[str], options: Options) -> None:
    from dragoman.decoding.words import WordVectors

    if options.near and not isinstance(embedder, WordVectors):
        refuse_lone(lines, "text")
    vectors = embedder.embed(lines)
    if options.output:
        save(options.output, lines, vectors)
    if options.near and isinstance(embedder, WordVectors):
        for line, found in zip(lines, embedder.near(lines, options.near), strict=True):
            show_words(line, found, options.json)
    elif options.near:
        show_near(lines, vectors, options.near, options.json)
    elif not options.output:
        show(lines, vectors, options.json)


def refuse_nonsense(texts: Sequence[str], options: Options) -> None:
    from dragoman.errors import UsageError

    output, near = options.output, options.near
    if output and output.suffix not in (".npy", ".json", ".txt", ".bin"):
        raise UsageError(
            "E-USE-12",
            f"--output {output} is written as .npy, .json, .txt or .bin; name it {output.with_suffix('.npy')}",
        )
    if near < 0:
        raise UsageError("E-USE-12", f"--near {near} asks for nothing; give 1 or more")
    if options.analogy and (texts or options.input or output):
        raise UsageError("E-USE-12", "--analogy names its three words itself; leave out other texts and --output")


def refuse_lone(given: Sequence[str], what: str) -> None:
    """Words are compared with all that the model knows; these only with each other."""
    from dragoman.errors import UsageError

    if len(given) < 2:
        raise UsageError(
            "E-USE-12", f"--near compares each {what} with the others, and {len(given)} was given; give two or more"
        )


def refuse_words_of_texts(model: str, options: Options, what: str) -> None:
    """What only vectors of words are good for; `what` this model has vectors of."""
    from dragoman.errors import DataError, UsageError

    if options.analogy:
        raise DataError(
            "E-RUN-10", f"--analogy is about words, and {model} has vectors of {what}; give a word2vec or glove"
        )
    if options.output and options.output.suffix in (".txt", ".bin"):
        raise UsageError(
            "E-USE-12",
            f"--output {options.output} is for vectors of words, and {model} has those of {what}; "
            f"name it {options.output.with_suffix('.npy')}",
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
