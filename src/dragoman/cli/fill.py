"""dragoman fill: what stands in the masked places of a text."""

import json as json_module

from dragoman.cli.options import Flag, Threads, Whole


def fill(
    model: str,
    text: str,
    *,
    top: Whole = 5,
    threads: Threads = None,
    json: Flag = False,
) -> int:
    """Name the likeliest tokens for each [MASK] in a text.

    Parameters
    ----------
    model
        A run's folder, a model's, or one of Hugging Face, of the family bert.
    text
        A text with [MASK] where something is to be filled in.
    top
        How many candidates for each place.
    json
        One JSON object a place: its candidates with their probabilities and the whole text.
    """
    from dragoman.errors import UsageError
    from dragoman.jobs.machine import use_threads

    if top < 1:
        raise UsageError("E-USE-12", f"--top {top} asks for nothing; give 1 or more")
    use_threads(threads)

    from dragoman.decoding.fill import Filler
    from dragoman.jobs.open import load_as

    for number, candidates in enumerate(load_as(Filler, model).fill(text, top=top), start=1):
        if json:
            found = [candidate._asdict() for candidate in candidates]
            print(json_module.dumps({"place": number, "candidates": found}, ensure_ascii=False))
            continue
        for candidate in candidates:
            print(f"{number}  {candidate.probability:6.1%}  {candidate.token:<16} {candidate.text}")
    return 0
