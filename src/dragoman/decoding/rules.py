"""Rules that stand between a model and the choice of the next token: what may not be written, or is made less likely.

They are applied in the order of `generate` of Hugging Face, so that an imported model writes what it writes there:
repetition, runs that may not come twice, words that may not come, the shortest output, the first token; and last, where
it is asked for, what is left is made to sum to one again.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.text.special import SpecialIds


class Rules(NamedTuple):
    never: Sequence[Sequence[int]] = ()  # tokens, or runs of them
    no_repeat: int = 0  # so many tokens in a row come once at most
    repetition: float = 1.0
    shortest: int = 0  # tokens before the end
    first: int | None = None  # token of every output
    renormalise: bool = False

    def by_scores_alone(self) -> bool:
        """Whether the best tokens follow from the scores and from nothing that was written."""
        single = all(len(run) == 1 for run in self.never)
        return single and not self.no_repeat and self.repetition == 1 and not self.shortest and self.first is None

    def log_probs(
        self, logits: Float[Tensor, "N V"], written: Int[Tensor, "B W L"], special: SpecialIds
    ) -> Float[Tensor, "B W V"]:
        """Of the next token of each beginning; −∞ for one that may not come."""
        beginnings, width, length = written.shape
        text = torch.nn.functional.pad(written, (1, 0), value=special.start)
        scores = logits.unflatten(0, (beginnings, width))
        if width == 1:  # greedy search weighs logits, beams their log-probabilities: so does the reference
            scores = against_repetition(scores, text, self.repetition).log_softmax(dim=-1)
        else:
            scores = against_repetition(scores.log_softmax(dim=-1), text, self.repetition)
        if self.no_repeat:
            forbid_repeats(scores, text, self.no_repeat)
        forbid(scores, written, self.never)
        if length < self.shortest:
            scores[..., list(special.ends)] = -torch.inf
        if length == 0 and self.first is not None:
            scores[:] = -torch.inf
            scores[..., self.first] = 0.0
        return scores.log_softmax(dim=-1) if self.renormalise else scores


def against_repetition(
    scores: Float[Tensor, "*B V"], text: Int[Tensor, "*B L"], penalty: float
) -> Float[Tensor, "*B V"]:
    """Scores of tokens that stand in the text already, made smaller (Keskar et al. 2019)."""
    if penalty == 1.0:
        return scores
    found = scores.gather(-1, text)
    return scores.scatter(-1, text, torch.where(found > 0, found / penalty, found * penalty))


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
