"""dragoman generate: a language model goes on with a text."""

import json as json_module
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dragoman.cli.options import Encoding, Flag, Repeated, Threads, Whole

if TYPE_CHECKING:
    from dragoman.decoding.generate import TextWriter


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """What to write on from, how long, and how it is drawn."""

    prompt: Repeated = None
    """What the text begins with; it is printed too. May be repeated: a text for each."""
    input: Path | None = None
    """A file of prompts, one a line."""
    encoding: Encoding = "utf-8"
    stop: str = ""
    """Write up to this text, and without it."""
    tokens: Whole | None = None
    """How many tokens to write; else 200, or as an imported model's settings say."""
    temperature: float | None = None
    """Below 1 prefers likely tokens, above 1 evens them out; else 1, or as an imported model's settings say."""
    top_k: Whole | None = None
    """Draw from this many likeliest tokens only."""
    top_p: float | None = None
    """Draw from the fewest tokens that have this much probability."""
    repetition: float | None = None
    """Scores of tokens that stand in the text already are divided by this; 1 leaves them as they are."""
    seed: Whole = 0
    """The same seed draws the same text."""
    threads: Threads = None
    json: Flag = False
    """One JSON object a prompt: prompt, text, seed."""

    def drawing(self, number: int) -> dict[str, Any]:
        """What was asked of drawing the text with this number: each has a seed of its own."""
        values = {name: getattr(self, name) for name in ("temperature", "top_k", "top_p", "repetition")}
        return {name: value for name, value in values.items() if value is not None} | {"seed": self.seed + number}


USUAL = Options()


def generate(
    model: Annotated[
        str, Parameter(help="The folder of a model that was trained on a text, or of a GPT-2 of Hugging Face.")
    ],
    *,
    options: Options = USUAL,
) -> int:
    """Write on from a prompt, or from nothing, token by token as they are drawn."""
    from dragoman.cli.kind import refuse_no_model
    from dragoman.decoding.settings import SampleConfig
    from dragoman.jobs.machine import refuse_odd_threads, use_threads

    prompts = read_prompts(options)
    SampleConfig.read(options.drawing(0), section="generate")
    refuse_odd_threads(options.threads)
    refuse_no_model(model)
    use_threads(options.threads)

    from dragoman.decoding.generate import TextWriter
    from dragoman.jobs.open import load_as

    writer = load_as(TextWriter, model)
    for prompt in prompts:  # what is wrong with one is said before anything is printed
        if complaint := writer.complaint(prompt):
            print(f"dragoman: {complaint}", file=sys.stderr)
    for number, prompt in enumerate(prompts):
        write_on(writer, prompt, number, options)
    return 0


def read_prompts(options: Options) -> list[str]:
    from dragoman.errors import UsageError
    from dragoman.text.reading import read_lines, refuse_encoding, refuse_missing

    if options.tokens is not None and options.tokens < 1:
        raise UsageError("E-USE-12", f"--tokens {options.tokens} asks for nothing; give 1 or more")
    if options.prompt and options.input:
        raise UsageError("E-USE-06", "--prompt and --input were both given; give one of them")
    if options.input:
        refuse_missing(options.input)
    refuse_encoding(options.encoding)
    return list(read_lines(options.input, options.encoding)) if options.input else options.prompt or [""]


def write_on(writer: "TextWriter", prompt: str, number: int, options: Options) -> None:
    sampling = writer.sampling.changed(options.drawing(number), section="generate")
    if options.json:
        text = writer.generate(prompt, tokens=options.tokens, sampling=sampling, stop=options.stop)
        print(json_module.dumps({"prompt": prompt, "text": text, "seed": sampling.seed}, ensure_ascii=False))
        return
    sys.stdout.write(prompt)
    for part in writer.stream(prompt, tokens=options.tokens, sampling=sampling, stop=options.stop):
        sys.stdout.write(part)
        sys.stdout.flush()
    print()
