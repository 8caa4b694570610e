"""dragoman generate: a language model goes on with a text."""

import json as json_module
import sys
from typing import Annotated

from cyclopts import Parameter

WORDS = Parameter(negative="")


def generate(
    model: str,
    *,
    prompt: str = "",
    tokens: int = 200,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    threads: int | None = None,
    json: Annotated[bool, WORDS] = False,
) -> int:
    """Write on from a prompt, or from nothing, token by token as they are drawn.

    Parameters
    ----------
    model
        A run's folder, or a model's, that was trained on a text.
    prompt
        What the text begins with; it is printed too.
    tokens
        How many tokens to write.
    temperature
        Below 1 prefers likely tokens, above 1 evens them out.
    top_k
        Draw from this many likeliest tokens only.
    top_p
        Draw from the fewest tokens that have this much probability.
    seed
        The same seed draws the same text.
    threads
        Processor threads to use; else one for each core.
    json
        One JSON object: prompt, text, seed.
    """
    from dragoman.errors import UsageError

    try:
        prompt.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError("E-USE-12", f"the prompt {prompt!r} is not UTF-8; write it in UTF-8") from None
    if tokens < 1:
        raise UsageError("E-USE-12", f"--tokens {tokens} asks for nothing; give 1 or more")
    from dragoman.decoding.generate import load_writer
    from dragoman.decoding.sample import SampleConfig
    from dragoman.jobs.machine import use_threads

    values = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    sampling = SampleConfig.read(values, section="generate")
    use_threads(threads)
    writer = load_writer(model)
    if json:
        text = writer.generate(prompt, tokens=tokens, sampling=sampling)
        print(json_module.dumps({"prompt": prompt, "text": text, "seed": seed}, ensure_ascii=False))
        return 0
    writer.read(prompt)  # what is wrong with it is said before it is printed
    sys.stdout.write(prompt)
    for part in writer.stream(prompt, tokens=tokens, sampling=sampling):
        sys.stdout.write(part)
        sys.stdout.flush()
    print()
    return 0
