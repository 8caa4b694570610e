"""dragoman classify: one line in, its label out, whatever the line holds; or an image in, what is on it out."""

import json as json_module
import sys
from collections.abc import Iterator
from pathlib import Path

from dragoman.cli.options import Encoding, Flag, Threads


def classify(
    model: str,
    *texts: str,
    input: Path | None = None,
    output: Path | None = None,
    encoding: Encoding = "utf-8",
    threads: Threads = None,
    json: Flag = False,
) -> int:
    """Tell the label of each text, line by line: `label<TAB>probability`. Of images also numbers, or masks.

    Parameters
    ----------
    model
        A run's folder, or a model's, that learned to classify, or of images to regress or to segment.
    texts
        What to label; else the lines of --input, or of standard input. A tab divides two texts judged together. For a
        model that reads images: image files, or idx files, .npz files and folders of images.
    input
        A file, one text a line; or the name of one image a line.
    output
        Of a model that labels every pixel: the folder to write a mask for each image into. Masks that are there
        already stay as they are, and are refused.
    json
        One JSON object a line: the label, its probability, and the probabilities of all.
    """
    from dragoman.cli.kind import kind_of, refuse_no_model
    from dragoman.cli.translate import read_input, refuse_no_text
    from dragoman.errors import UsageError
    from dragoman.images import FAMILIES
    from dragoman.jobs.machine import refuse_odd_threads
    from dragoman.text.reading import refuse_encoding

    refuse_no_text(texts, input)
    refuse_encoding(encoding)
    refuse_odd_threads(threads)
    refuse_no_model(model)
    if kind_of(Path(model))[1] in FAMILIES:
        from dragoman.cli.classify_images import classify_images

        return classify_images(model, texts, input, output, threads, json)
    if output:
        raise UsageError("E-IMG-14", f"--output is for the masks of images, and {model} labels texts; leave it out")
    classify_texts(model, read_input(list(texts), input, encoding), threads, json)
    return 0


def classify_texts(model: str, read: Iterator[list[str]], threads: int | None, json: bool) -> None:
    from dragoman.cli.translate import open_output
    from dragoman.decoding.classify import Classifier
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(threads)
    classifier = load_as(Classifier, model)
    done = 0
    with open_output(None) as out:
        for lines in read:
            found = classifier.classify(
                lines, first_line=done + 1, notice=lambda sentence: print(f"dragoman: {sentence}", file=sys.stderr)
            )
            for one in found:
                whole = json_module.dumps(one._asdict(), ensure_ascii=False)
                print(whole if json else f"{one.label}\t{one.probability:.4f}", file=out)
            out.flush()
            done += len(lines)
