"""dragoman generate: a language model goes on with a text."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

WORDS = Parameter(negative="")


def generate(
    model: str,
    *,
    prompt: Annotated[list[str] | None, Parameter(negative="")] = None,
    input: Path | None = None,
    stop: str = "",
    tokens: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    json: Annotated[bool, WORDS] = False,
) -> int:
    """Write on from a prompt, or from nothing, token by token as they are drawn.

    Parameters
    ----------
    model
        A run's folder, a model's, or one of Hugging Face, that was trained on a text.
    prompt
        What the text begins with; it is printed too. May be repeated: a text for each.
    input
        A file of prompts, one a line.
    stop
        Write up to this text, and without it.
    tokens
        How many tokens to write; else 200, or as an imported model's settings say.
    temperature
        Below 1 prefers likely tokens, above 1 evens them out; else 1, or as an imported model's settings say.
    top_k
        Draw from this many likeliest tokens only.
    top_p
        Draw from the fewest tokens that have this much probability.
    repetition
        Scores of tokens that stand in the text already are divided by this; 1 leaves them as they are.
    seed
        The same seed draws the same text.
    threads
        Processor threads to use; else one for each core.
    json
        One JSON object a prompt: prompt, text, seed.
    """
    from dragoman.decoding.settings import SampleConfig
    from dragoman.errors import UsageError
    from dragoman.jobs.machine import use_threads
    from dragoman.text.reading import read_lines, refuse_missing

    if tokens is not None and tokens < 1:
        raise UsageError("E-USE-12", f"--tokens {tokens} asks for nothing; give 1 or more")
    if prompt and input:
        raise UsageError("E-USE-06", "--prompt and --input were both given; give one of them")
    if input:
        refuse_missing(input)
    prompts = list(read_lines(input)) if input else prompt or [""]
    strange = [one for one in prompts if not is_unicode(one)]
    if strange:
        raise UsageError("E-USE-12", f"the prompt {strange[0]!r} is not UTF-8; write it in UTF-8")

    values = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "repetition": repetition}
    asked = {name: value for name, value in values.items() if value is not None}
    SampleConfig.read({**asked, "seed": seed}, section="generate")
    use_threads(threads)

    from dragoman.decoding.generate import TextWriter
    from dragoman.jobs.open import load_as

    writer = load_as(TextWriter, model)
    for one in prompts:  # what is wrong with one is said before anything is printed
        if complaint := writer.complaint(one):
            print(f"dragoman: {complaint}", file=sys.stderr)
    for number, one in enumerate(prompts):
        sampling = writer.sampling.changed({**asked, "seed": seed + number}, section="generate")
        if json:
            text = writer.generate(one, tokens=tokens, sampling=sampling, stop=stop)
            print(json_module.dumps({"prompt": one, "text": text, "seed": seed + number}, ensure_ascii=False))
            continue
        sys.stdout.write(one)
        for part in writer.stream(one, tokens=tokens, sampling=sampling, stop=stop):
            sys.stdout.write(part)
            sys.stdout.flush()
        print()
    return 0


def is_unicode(text: str) -> bool:
    """False where a byte of the command line was not UTF-8: Python keeps it as half of a surrogate pair."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
