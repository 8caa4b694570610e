"""What may come next: the likeliest tokens after each beginning, and how likely each beginning is to end here.

Search never looks at a whole vocabulary. A writer that can find its best tokens itself is asked for them; of any other
the logits are taken, what may not be written is struck out, and the best are kept.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.decoding.rules import Rules
from dragoman.models.state import State
from dragoman.text.special import SpecialIds


class Candidates(NamedTuple):
    """For each beginning the best tokens after it, best first. Log-probabilities are of the whole."""

    tokens: Int[np.ndarray, "B W K"]
    log_probs: Float[np.ndarray, "B W K"]  # −∞ where fewer than K may be written
    ended: Float[np.ndarray, "B W E"]  # with each of the ends after it, which are not among the tokens


@runtime_checkable
class Proposing(Protocol):
    """A writer that finds the best tokens itself (engine.py)."""

    def propose(
        self,
        tokens: Any,
        state: State,
        most: int,
        end: int,
        never: Any,
        *,
        renormalise: bool,
        ahead: int,  # steps for which all beginnings have room
    ) -> tuple[Any, State]: ...


def proposed(found: Any, rows: Int[np.ndarray, "B W"], before: Float[np.ndarray, "B W"]) -> Candidates:
    """What the writer proposed for the rows that the beginnings go on from; `before` are their log-probabilities."""
    ended = before + found.ended[rows]
    return Candidates(found.tokens[rows], before[..., None] + found.log_probs[rows], ended[..., None])


@torch.inference_mode()
def consider(
    logits: Float[Tensor, "N V"],
    tokens: Int[np.ndarray, "B W L"],  # the beginnings
    before: Float[np.ndarray, "B W"],  # their log-probabilities
    most: int,
    special: SpecialIds,
    rules: Rules,
    prefixes: Sequence[Sequence[int]] | None,
) -> Candidates:
    """The same from logits, by rules that may hang on what was written."""
    written = torch.from_numpy(tokens)
    options = torch.from_numpy(before)[..., None] + rules.log_probs(logits, written, special)
    if prefixes is not None:
        force(options, prefixes, written.shape[2])
    ends = list(special.ends)
    ended = options[..., ends]
    options[..., ends] = -torch.inf
    best = options.topk(min(most, options.shape[-1]))
    return Candidates(best.indices.numpy(), best.values.numpy(), ended.numpy())


def force(options: Float[Tensor, "B W V"], prefixes: Sequence[Sequence[int]], written: int) -> None:
    """Where a sentence's prefix has a token at this place, leave only that option."""
    for row, prefix in enumerate(prefixes):
        if written < len(prefix):
            kept = options[row, :, prefix[written]].clone()
            options[row] = -torch.inf
            options[row, :, prefix[written]] = kept
