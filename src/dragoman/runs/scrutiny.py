"""A folder may be damaged, or made by anyone: what it says of itself is looked at before anything of that size is made.

config.json        an object; whole numbers no larger than what the weights could fill
weights            names and shapes are those of the settings, which is seen without making the model; all finite
tokenizer          knows no id that the model has no vector for
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dragoman import models
from dragoman.config import Settings
from dragoman.errors import DataError, DragomanError
from dragoman.models.shapes import shapes_only
from dragoman.runs.files import read_json, refuse_irregular
from dragoman.runs.weights import Shapes, refuse_unequal, weights_of
from dragoman.text.tokenizer import Tokenizers

HUGE = 1e12  # no weight that was learned is so large, and products of larger ones overflow
POWERS = ("length_penalty", "longest_ratio")  # of a search: lengths are taken to this power, or so many times
LARGEST_POWER = 100  # 2,000 tokens to this power are still a number
USUAL = 1 << 20  # a number that is no size, such as how far one looks, may be this large in a small model too


def read_about(folder: Path, newest: int) -> tuple[Settings, dict[str, Any]]:
    """The model's settings, and how to use it."""
    about = read_json(folder / "config.json")
    version, model = about.pop("format", None), about.pop("model", None)
    if not isinstance(version, int) or not isinstance(model, dict):
        raise DataError(
            "E-RUN-04", f"{folder} is no model of dragoman's: its config.json has no `format` or no `model`"
        )
    if version > newest:
        raise DataError("E-RUN-05", f"{folder} was written by a newer dragoman; install that version to open it")
    try:
        config = models.from_dict(model)
    except DragomanError as problem:
        raise DataError("E-RUN-06", f"{folder} has settings that no model can have: {problem.sentence}") from None
    except (KeyError, TypeError) as problem:
        raise DataError("E-RUN-06", f"{folder} has settings that cannot be read ({problem!r})") from None
    if models.task_and_family_of(config)[0] == "translate" and "longest" not in about:
        raise DataError("E-RUN-06", f"{folder} does not say how long the sentences were that its model learned from")
    refuse_odd_use(about, folder)
    return config, about


def refuse_odd_use(about: Mapping[str, Any], folder: Path) -> None:
    """What is said about the use of a model, as far as it is there."""
    longest, languages, search = about.get("longest", 1), about.get("languages", []), about.get("search", {})
    fine = isinstance(longest, int) and longest > 0 and isinstance(search, dict) and isinstance(languages, list)
    fine = fine and all(isinstance(language, str) for language in languages)
    if not fine or not all(is_usual(search.get(name, 1)) for name in POWERS):
        raise DataError("E-RUN-06", f"{folder} says what cannot be of its use: longest, languages or search")


def is_usual(number: Any) -> bool:
    return isinstance(number, int | float) and abs(number) <= LARGEST_POWER  # false for NaN and infinity too


def shapes_in(path: Path) -> Shapes:
    """Of the tensors in a file, from its header alone."""
    refuse_irregular(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as problem:
        raise DataError("E-RUN-02", f"{path} is damaged: {problem}") from None


def refuse_other_sizes(config: Settings, path: Path) -> None:
    """Weights that are not those of these settings, before anything is made as large as the settings say."""
    there = shapes_in(path)
    numbers = sum(torch.Size(shape).numel() for shape in there.values())
    for key, value in too_large(config, numbers, len(there)):
        raise DataError(
            "E-RUN-06",
            f"the weights in {path.parent} do not fit its settings: {key} = {value:,}, and the file holds "
            f"{numbers:,} numbers in {len(there)} tensors",
        )
    try:
        with shapes_only():
            wanted = {name: tuple(tensor.shape) for name, tensor in weights_of(models.build(config)).items()}
    except (RuntimeError, ValueError, TypeError, OverflowError, ZeroDivisionError) as problem:
        why = " ".join(str(problem).split())[:200]
        raise DataError("E-RUN-06", f"{path.parent} has settings that no model can be made of ({why})") from None
    refuse_unequal(there, wanted, path.parent)


def too_large(config: Settings, numbers: int, tensors: int) -> Iterator[tuple[str, int]]:
    """Settings that no model of so many numbers in so many tensors can have."""
    for key, value in whole_numbers(config.model_dump()):
        if value > (tensors if key.endswith("layers") else max(numbers, USUAL)):
            yield key, value


def whole_numbers(values: Any, name: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(values, dict):
        for key, value in values.items():
            yield from whole_numbers(value, str(key))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from whole_numbers(value, name)
    elif isinstance(values, int) and not isinstance(values, bool):
        yield name, values


def odd_tensors(weights: Mapping[str, Tensor]) -> Iterator[str]:
    """The names of those that hold NaN or what no weight can be."""
    for name, tensor in weights.items():
        if tensor.is_floating_point() and tensor.numel() and not tensor.abs().max() < HUGE:  # true for NaN too
            yield name


def are_numbers(weights: Mapping[str, Tensor]) -> bool:
    return next(odd_tensors(weights), None) is None


def refuse_no_numbers(weights: Mapping[str, Tensor], folder: Path) -> None:
    for name in odd_tensors(weights):
        raise DataError(
            "E-RUN-17",
            f"the weights in {folder} cannot be: {name} holds NaN or a number beyond {HUGE:g}; use an older one, "
            "or fetch them again",
        )


def refuse_foreign_ids(tokens: Tokenizers, config: Any, about: Mapping[str, Any], folder: Path) -> None:
    """A tokenizer of another model would ask for vectors that are not there."""
    sides = {"source": tokens.source, "target": tokens.target}
    known = {side: getattr(config, f"{side}_vocabulary", getattr(config, "vocabulary", None)) for side in sides}
    for side, tokenizer in sides.items():
        vectors = known[side]
        largest = max(len(tokenizer) - 1, *tokenizer.special.pieces(), *tokenizer.special.ends)
        if vectors is not None and largest >= vectors:
            raise DataError(
                "E-RUN-18",
                f"{folder} has vectors for {vectors:,} tokens and a tokenizer with the id {largest:,}: they come from "
                "different models; put back the tokenizer/ it was trained with",
            )
    search, most = about.get("search", {}), known["target"]
    for key, does in (("never", "forbids"), ("first", "begins every output with")):
        if most is not None and any(not 0 <= i < most for _, i in whole_numbers(search.get(key))):
            raise DataError("E-RUN-18", f"{folder} {does} tokens (search.{key}) that its model does not have")
