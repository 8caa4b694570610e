"""How a run went, from its folder: the curves of its log, and its dev sentences as they got better.

Where a checkpoint of that step is still there, so is what the model looked at then.
"""

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from dragoman.config import Settings
from dragoman.decoding.translate import Translator
from dragoman.decoding.watch import watch_translation
from dragoman.runs.checkpoint import checkpoint_folder, is_whole
from dragoman.runs.inventory import progress_of, read_settings
from dragoman.runs.record import read_log, read_toml
from dragoman.runs.weights import load_weights, read_tensors
from dragoman.seeing.attention import DIGITS, mean_over_heads
from dragoman.seeing.packed import Packed, pack
from dragoman.text.reading import clean

CURVES = {  # on the page -> in the log
    "step": "step",
    "loss": "nats_per_token",
    "rate": "rate",
    "speed": "tokens_per_second",
    "gradient": "gradient_norm",
}
NO_SCORES = {"kind", "step", "nats_per_token", "best", "samples"}  # of a validation


class Reports(Settings):
    step: list[int]
    minutes: list[float]
    loss: list[float]
    rate: list[float]
    speed: list[float]
    gradient: list[float]


class Validations(Settings):
    step: list[int]
    loss: list[float]
    scores: dict[str, list[float | None]]  # None where a validation lacks it


class FlipAttention(Settings):
    queries: list[str]
    keys: list[str]
    weights: Packed  # the mean over all heads of all blocks


class FlipSentence(Settings):
    source: str
    reference: str
    output: str
    attention: FlipAttention | None = None


class Flip(Settings):
    step: int
    sentences: list[FlipSentence]


class Training(Settings):
    counted: str  # what the loss is a mean over: tokens, texts, images
    finished: bool  # nothing follows: the last validation was made and the best model saved
    steps: int  # planned
    reports: Reports
    validations: Validations
    flips: list[Flip]


Opener = Callable[[], Translator]


def history(run: Path, opener: Opener | None = None) -> Training | None:
    """None where the folder is no run's. `opener` gives a translator to put the checkpoints' weights into."""
    if not (run / "run.toml").is_file():
        return None
    lines = read_log(run / "log.jsonl")
    progress = progress_of(run, read_settings(run), lines)
    reports = [line for line in lines if line["kind"] == "report"]
    validations = [line for line in lines if line["kind"] == "validation"]
    steps = read_toml(run / "run.toml").get("training", {}).get("steps") or 0
    return Training(
        counted=reports[-1].get("counted", "tokens") if reports else "tokens",
        finished=progress.is_finished,
        steps=steps,
        reports=Reports(
            minutes=[round(line["seconds"] / 60, 3) for line in reports],
            **{name: [line[key] for line in reports] for name, key in CURVES.items()},
        ),
        validations=show_validations(validations),
        flips=[flip(run, line, opener) for line in validations if line["samples"]],
    )


def show_validations(lines: list[dict[str, Any]]) -> Validations:
    names = [name for name in dict.fromkeys(chain.from_iterable(lines)) if name not in NO_SCORES]
    return Validations(
        step=[line["step"] for line in lines],
        loss=[line["nats_per_token"] for line in lines],
        scores={name: [line.get(name) for line in lines] for name in names},
    )


# ── the flip-book ─────────────────────────────────────────────────────────────────────────


def flip(run: Path, line: dict[str, Any], opener: Opener | None) -> Flip:
    samples = [tuple(sample) for sample in line["samples"]]  # source, output, reference
    looked: list[FlipAttention | None] = [None] * len(samples)
    checkpoint = checkpoint_folder(run, line["step"])
    if opener is not None and checkpoint.is_dir() and is_whole(checkpoint):
        translator = opener()
        load_weights(translator.model, read_tensors(checkpoint / "weights.safetensors"), checkpoint)
        looked = [look_again(translator, source, output) for source, output, _ in samples]
    return Flip(
        step=line["step"],
        sentences=[
            FlipSentence(source=source, reference=reference, output=output, attention=attention)
            for (source, output, reference), attention in zip(samples, looked, strict=True)
        ],
    )


def look_again(translator: Translator, source: str, output: str) -> FlipAttention | None:
    """What it looked at while it wrote this; None for a model without attention."""
    tokenizers = translator.tokenizers
    [read], [written] = tokenizers.source.encode([clean(source)]), tokenizers.target.encode([clean(output)])
    maps = [m for m in watch_translation(translator.model, tokenizers, read, written).maps if m.kind == "cross"]
    weights = mean_over_heads(maps)
    if weights is None:
        return None
    return FlipAttention(queries=maps[0].queries, keys=maps[0].keys, weights=pack(weights, DIGITS))
