"""A text as it is written, token by token: what else was likely, where the model looked, which gates were open."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.watch import Watched
from dragoman.modules.recurrent import Turn
from dragoman.seeing.looked import Candidate, Gate, Step
from dragoman.text.tokenizer import Tokenizer

TOP = 8  # candidates that are shown
SHUT, WIDE = 0.1, 0.9  # below and above which a gate counts as closed and as open


def show_steps(
    watched: Watched,
    written: Sequence[int],
    tokenizer: Tokenizer,
    looked: Float[Tensor, "T K"] | None,
    *,
    back_only: bool = False,
) -> list[Step]:
    """One for each written token, <end> included; `looked` has a row for each, of which the future is left out where
    a text looks `back_only`."""
    best = watched.log_probs.topk(min(TOP, watched.log_probs.shape[-1]))
    steps = []
    for t, token in enumerate(written):
        ids = best.indices[t].tolist()
        chances = best.values[t].exp().tolist()
        turns = [layer[t] for layer in watched.turns]
        steps.append(
            Step(
                id=token,
                token=tokenizer.pieces([token])[0],
                log_prob=round(float(watched.log_probs[t, token]), 4),
                top=[
                    Candidate(id=i, token=piece, probability=round(chance, 4))
                    for i, piece, chance in zip(ids, tokenizer.pieces(ids), chances, strict=True)
                ],
                looked=None if looked is None else show_row(looked[t, : t + 1] if back_only else looked[t]),
                gates=[gate for layer, turn in enumerate(turns, start=1) for gate in show_gates(layer, turn)],
                norm=round(float(torch.linalg.vector_norm(turns[-1].state[0])), 3) if turns else None,
            )
        )
    return steps


def show_row(weights: Float[Tensor, " K"]) -> list[float]:
    return [round(weight, 4) for weight in weights.tolist()]


def show_gates(layer: int, turn: Turn) -> list[Gate]:
    return [
        Gate(
            layer=layer,
            name=name,
            mean=round(float(gate[0].mean()), 3),
            closed=round(float((gate[0] < SHUT).float().mean()), 3),
            open=round(float((gate[0] > WIDE).float().mean()), 3),
        )
        for name, gate in turn.gates.items()
    ]
