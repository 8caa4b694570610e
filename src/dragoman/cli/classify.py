"""dragoman classify: one line in, its label out, whatever the line holds."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def classify(
    model: str,
    *texts: str,
    input: Path | None = None,
    threads: int | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Tell the label of each text, line by line: `label<TAB>probability`.

    Parameters
    ----------
    model
        A run's folder, or a model's, that learned to classify.
    texts
        What to label; else the lines of --input, or of standard input. A tab divides two texts judged together.
    input
        A file, one text a line.
    threads
        Processor threads to use; else one for each core.
    json
        One JSON object a line: the label, its probability, and the probabilities of all.
    """
    from dragoman.errors import UsageError
    from dragoman.text.reading import refuse_missing

    if texts and input:
        raise UsageError("E-USE-06", "texts and --input were both given; give one of them")
    if input:
        refuse_missing(input)

    from dragoman.cli.translate import open_output, read_input
    from dragoman.decoding.classify import Classifier
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(threads)
    classifier = load_as(Classifier, model)
    done = 0
    with open_output(None) as out:
        for lines in read_input(list(texts), input):
            found = classifier.classify(
                lines, first_line=done + 1, notice=lambda sentence: print(f"dragoman: {sentence}", file=sys.stderr)
            )
            for one in found:
                whole = json_module.dumps(one._asdict(), ensure_ascii=False)
                print(whole if json else f"{one.label}\t{one.probability:.4f}", file=out)
            out.flush()
            done += len(lines)
    return 0
