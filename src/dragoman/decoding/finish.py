"""Two ways to finish a beam: when an output may end, what it is then worth, and when no better one can come.

    wu      Wu et al. 2016: log p / lp(Y); any beginning may end where <end> is among its own likeliest tokens, and the
            search goes on until nothing alive can overtake what is finished. An output that is too long must end.
    mean    `generate` of Hugging Face: log p / |Y|^α; a beginning may end where that is among the likeliest of all
            beginnings, and by default the search stops when as many as there are beams have ended and the best alive
            is worth no more now. An output that is too long is cut, or ends at no cost.

The length |Y| counts <end>. A beam of one ends with its first <end> in either way: that is greedy search.
"""

from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@runtime_checkable
class Finish(Protocol):
    @property
    def cuts(self) -> bool:
        """Whether an output without <end> counts when there is no room for more."""
        ...

    def steps(self, longest: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """At which step outputs of at most so many tokens are over."""
        ...

    def may_end(
        self, options: Float[Tensor, "B W V"], before: Float[Tensor, "B W"], end: int, last: Bool[Tensor, " B"]
    ) -> Float[Tensor, "B W"]:
        """Log-probabilities of ending here; −∞ where a beginning may not. `before` are those without it."""
        ...

    def score(self, log_probs: Float[Tensor, "B W"], length: int) -> Float[Tensor, "B W"]: ...

    def is_settled(
        self,
        alive: Float[Tensor, "B W"],
        done: Float[Tensor, "B W"],
        length: int,
        longest: Int[Tensor, " B"],
        wanted: int,
    ) -> Bool[Tensor, " B"]:
        """Where no beginning alive need be followed: `alive` are log-probabilities and `done` scores, best first."""
        ...


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = (5 + |Y|)^α / (5 + 1)^α   (Wu et al. 2016, eq. 14), <end> counted."""
    return ((5 + length) / 6) ** alpha


class Wu(NamedTuple):
    alpha: float
    cuts: bool = False

    def steps(self, longest: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        return longest + 1  # and <end>

    def may_end(
        self,
        options: Float[Tensor, "B W V"],
        before: Float[Tensor, "B W"],  # noqa: ARG002
        end: int,
        last: Bool[Tensor, " B"],
    ) -> Float[Tensor, "B W"]:
        """Not where W other tokens are likelier, unless there is no room for one more.

        So a beam of one ends where greedy search does, and a beam of the whole vocabulary may end anywhere.
        """
        ended = options[..., end].clone()
        likelier = (options > ended[..., None]).sum(dim=-1)
        return ended.masked_fill((likelier >= options.shape[1]) & ~last[:, None], -torch.inf)

    def score(self, log_probs: Float[Tensor, "B W"], length: int) -> Float[Tensor, "B W"]:
        return log_probs / length_penalty(length, self.alpha)

    def is_settled(
        self,
        alive: Float[Tensor, "B W"],
        done: Float[Tensor, "B W"],
        length: int,  # noqa: ARG002
        longest: Int[Tensor, " B"],
        wanted: int,
    ) -> Bool[Tensor, " B"]:
        """A longer text is never likelier, so a beginning is worth at most its own log-probability under the last
        penalty."""
        penalties = torch.tensor([length_penalty(most + 1, self.alpha) for most in longest.tolist()])
        return alive[:, 0] / penalties <= done[:, wanted - 1]


class Mean(NamedTuple):
    power: float  # to which the length is taken: 1 is the mean, 0 the sum
    early: bool | Literal["never"] = False
    free_end: bool = False

    @property
    def cuts(self) -> bool:
        return not self.free_end

    def steps(self, longest: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        return longest  # with <end>

    def may_end(
        self, options: Float[Tensor, "B W V"], before: Float[Tensor, "B W"], end: int, last: Bool[Tensor, " B"]
    ) -> Float[Tensor, "B W"]:
        """Where it is among the W likeliest options of all beginnings together."""
        ended = options[..., end].clone()
        least = options.flatten(1).topk(options.shape[1]).values[:, -1:]
        ended = ended.masked_fill(ended < least, -torch.inf)
        return torch.where(last[:, None], before, ended) if self.free_end else ended

    def score(self, log_probs: Float[Tensor, "B W"], length: int) -> Float[Tensor, "B W"]:
        return log_probs / length**self.power

    def is_settled(
        self,
        alive: Float[Tensor, "B W"],
        done: Float[Tensor, "B W"],
        length: int,
        longest: Int[Tensor, " B"],
        wanted: int,  # noqa: ARG002  all beams are filled, however many are asked for
    ) -> Bool[Tensor, " B"]:
        full = done[:, -1].isfinite()
        if self.early is True:
            return full
        patient = self.early == "never" and self.power > 0
        lengths = longest.to(alive.dtype) if patient else torch.full_like(alive[:, 0], length)
        return full & (alive[:, 0] / lengths**self.power <= done[:, -1])
