"""A translator's shortlist as a file of its model's folder; one that does not fit the model is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from dragoman.errors import DataError
from dragoman.runs.weights import read_tensors
from dragoman.text.shortlist import Shortlist

NAME = "shortlist.safetensors"
PARTS = {"always": 1, "copies": 0, "starts": 1, "tokens": 1}  # and how many dimensions each has


def save_shortlist(folder: Path, shortlist: Shortlist) -> None:
    lists = {name: torch.from_numpy(np.asarray(part, dtype=np.int64)) for name, part in shortlist._asdict().items()}
    save_file({name: part.to(torch.int32) for name, part in lists.items()}, folder / NAME)


def open_shortlist(folder: Path, config: Any, ends: Sequence[int]) -> Shortlist | None:
    """None where there is none."""
    if not (folder / NAME).exists():
        return None
    parts = read_tensors(folder / NAME)
    problem = problem_of(parts, config, ends)
    if problem:
        raise DataError("E-RUN-19", f"{folder / NAME} does not fit this model: {problem}; fetch the model again")
    always, starts, tokens = (parts[name].numpy().astype(np.int64) for name in ("always", "starts", "tokens"))
    return Shortlist(always, starts, tokens, bool(parts["copies"]))


def problem_of(parts: dict[str, Tensor], config: Any, ends: Sequence[int]) -> str | None:
    """What makes these no lists of this model's tokens, of which some end a text."""
    source, target = getattr(config, "source_vocabulary", None), getattr(config, "target_vocabulary", None)
    if source is None or target is None:
        return "it translates nothing"
    if parts.keys() != PARTS.keys():
        return f"it holds {', '.join(sorted(parts))[:100] or 'nothing'} and must hold {', '.join(PARTS)}"
    for name, part in parts.items():
        if part.dim() != PARTS[name] or part.dtype != torch.int32:
            return f"{name} has {part.dim()} dimensions of {part.dtype} and must have {PARTS[name]} of {torch.int32}"
    always, starts, tokens = (parts[name] for name in ("always", "starts", "tokens"))
    if len(starts) != source + 1 or starts[0] != 0 or starts[-1] != len(tokens) or bool((starts.diff() < 0).any()):
        return f"its lists are not those of {source:,} source tokens"
    named = torch.cat([always, tokens])
    if len(named) and not 0 <= int(named.min()) <= int(named.max()) < target:
        return f"it names tokens that are not among {target:,}"
    if not {*ends} <= {*always.tolist()}:
        return f"no text could end: {', '.join(map(str, ends))} must always be there"
    if bool(parts["copies"]) and source > target:
        return f"{source:,} source tokens cannot be copied into {target:,}"
    return None
