"""What a search may not write: some tokens never, some runs of tokens never, no run of n tokens twice."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor


def forbid(options: Float[Tensor, "B W V"], tokens: Int[Tensor, "B W L"], runs: Sequence[Sequence[int]]) -> None:
    """−∞ for a token that would end one of these runs; one of a single token ends always."""
    options[..., [run[0] for run in runs if len(run) == 1]] = -torch.inf
    for *first, last in (run for run in runs if 1 < len(run) <= tokens.shape[2] + 1):
        begun = (tokens[..., -len(first) :] == torch.tensor(first)).all(dim=-1)  # (B W)
        options[..., last].masked_fill_(begun, -torch.inf)


def forbid_repeats(options: Float[Tensor, "B W V"], text: Int[Tensor, "B W L"], n: int) -> None:
    """−∞ for a token that would make n tokens in a row that stand in the text already (Paulus et al. 2018)."""
    length = text.shape[2]
    if length < n:
        return
    runs = text.unfold(2, n, 1)  # (B W M n)
    newest = text[:, :, None, length - n + 1 :]  # what the next token would go on from
    again = (runs[..., :-1] == newest).all(dim=-1)  # (B W M)
    repeats = torch.zeros_like(options).scatter_add_(2, runs[..., -1], again.to(options.dtype))
    options.masked_fill_(repeats > 0, -torch.inf)
