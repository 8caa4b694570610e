"""dragoman score, of a language model: how well it foresees a text."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.score import Options


def score_text(model: str, task: str, path: Path, options: "Options") -> int:
    from dragoman.text.reading import read_lines, refuse_missing

    refuse_no_reference(model, path, task)
    refuse_missing(path)

    from dragoman.decoding.generate import TextWriter
    from dragoman.evaluation.perplexity import perplexity
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(options.threads)
    writer = load_as(TextWriter, model)
    found = perplexity(writer.model, writer.tokenizer, read_lines(path, options.encoding))
    per_token, bits = found.per_token, found.bits_per_character
    if options.json:
        print(json_module.dumps({**found._asdict(), "perplexity": per_token, "bits_per_character": bits}))
    else:
        unknown = f", {found.unknown:,} tokens unknown to the model" if found.unknown else ""
        print(f"{found.tokens:,} tokens, {found.characters:,} characters{unknown}")
        print(f"perplexity {per_token:.4g} a token   {found.nats_per_token:.4f} nats   {bits:.3f} bits a character")
    return 0


def refuse_no_reference(model: str, path: Path, task: str) -> None:
    from dragoman.errors import UsageError

    if task == "translate":
        raise UsageError(
            "E-USE-01",
            f"{model} is a translator and is scored by what it should have written, and one file was given ({path}); "
            f"use it so: dragoman score {model} SOURCE REFERENCE",
        )
