"""Two ways to finish a beam: when an output may end, what it is then worth, and when no better one can come.

    wu      Wu et al. 2016: log p / lp(Y); any beginning may end where <end> is among its own likeliest tokens, and the
            search goes on until nothing alive can overtake what is finished. An output that is too long must end.
    mean    `generate` of Hugging Face: log p / |Y|^α; a beginning may end where that is among the likeliest of all
            beginnings, and by default the search stops when as many as there are beams have ended and the best alive
            is worth no more now. An output that is too long is cut, or ends at no cost.

The length |Y| counts <end>. A beam of one ends with its first <end> in either way: that is greedy search. Where a
model has several ends, the same beginning with each of them is an output of its own.
"""

from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from dragoman.decoding.candidates import Candidates


@runtime_checkable
class Finish(Protocol):
    @property
    def cuts(self) -> bool:
        """Whether an output without <end> counts when there is no room for more."""
        ...

    def steps(self, longest: Int[np.ndarray, " B"]) -> Int[np.ndarray, " B"]:
        """At which step outputs of at most so many tokens are over."""
        ...

    def may_end(
        self, candidates: Candidates, before: Float[np.ndarray, "B W"], last: Bool[np.ndarray, " B"]
    ) -> Float[np.ndarray, "B W E"]:
        """Log-probabilities of ending here; −∞ where a beginning may not. `before` are those without it."""
        ...

    def score(self, log_probs: Float[np.ndarray, "B N"], length: Int[np.ndarray, "B 1"]) -> Float[np.ndarray, "B N"]:
        """What outputs of this log-probability and length are worth, <end> counted."""
        ...

    def is_settled(
        self,
        alive: Float[np.ndarray, "B W"],
        done: Float[np.ndarray, "B W"],
        length: Int[np.ndarray, " B"],
        longest: Int[np.ndarray, " B"],
        wanted: int,
    ) -> Bool[np.ndarray, " B"]:
        """Where no beginning alive need be followed: `alive` are log-probabilities and `done` scores, best first."""
        ...


def length_penalty(length: int | Int[np.ndarray, "*any"], alpha: float) -> Any:
    """lp(Y) = (5 + |Y|)^α / (5 + 1)^α   (Wu et al. 2016, eq. 14), <end> counted."""
    return ((5 + length) / 6) ** alpha


def worth(way: Finish, log_prob: float, length: int) -> float:
    """The score of one output."""
    return float(way.score(np.array([[log_prob]]), np.array([[length]]))[0, 0])


class Wu(NamedTuple):
    alpha: float
    cuts: bool = False

    def steps(self, longest: Int[np.ndarray, " B"]) -> Int[np.ndarray, " B"]:
        return longest + 1  # and <end>

    def may_end(
        self,
        candidates: Candidates,
        before: Float[np.ndarray, "B W"],
        last: Bool[np.ndarray, " B"],
    ) -> Float[np.ndarray, "B W E"]:
        """Not where W other tokens are likelier, unless there is no room for one more.

        So a beam of one ends where greedy search does, and a beam of the whole vocabulary may end anywhere.
        """
        width, most = before.shape[1], candidates.log_probs.shape[2]
        if most < width:
            return candidates.ended
        outdone = candidates.log_probs[..., width - 1, None] > candidates.ended
        return np.where(outdone & ~last[:, None, None], -np.inf, candidates.ended)

    def score(self, log_probs: Float[np.ndarray, "B N"], length: Int[np.ndarray, "B 1"]) -> Float[np.ndarray, "B N"]:
        return log_probs / length_penalty(length, self.alpha)

    def is_settled(
        self,
        alive: Float[np.ndarray, "B W"],
        done: Float[np.ndarray, "B W"],
        length: Int[np.ndarray, " B"],  # noqa: ARG002
        longest: Int[np.ndarray, " B"],
        wanted: int,
    ) -> Bool[np.ndarray, " B"]:
        """A longer text is never likelier, so a beginning is worth at most its own log-probability under the last
        penalty."""
        return alive[:, 0] / length_penalty(longest + 1, self.alpha) <= done[:, wanted - 1]


class Mean(NamedTuple):
    power: float  # to which the length is taken: 1 is the mean, 0 the sum
    early: bool | Literal["never"] = False
    free_end: bool = False

    @property
    def cuts(self) -> bool:
        return not self.free_end

    def steps(self, longest: Int[np.ndarray, " B"]) -> Int[np.ndarray, " B"]:
        return longest  # with <end>

    def may_end(
        self, candidates: Candidates, before: Float[np.ndarray, "B W"], last: Bool[np.ndarray, " B"]
    ) -> Float[np.ndarray, "B W E"]:
        """Where it is among the W likeliest options of all beginnings together. What is forced is <end>, the first."""
        sentences, width = before.shape
        options = np.concatenate(
            [part.reshape(sentences, -1) for part in (candidates.log_probs, candidates.ended)], axis=1
        )
        least = np.partition(options, -width, axis=1)[:, -width, None, None]
        ended = np.where(candidates.ended < least, -np.inf, candidates.ended)
        if self.free_end and last.any():
            ended[last] = -np.inf
            ended[last, :, 0] = before[last]
        return ended

    def score(self, log_probs: Float[np.ndarray, "B N"], length: Int[np.ndarray, "B 1"]) -> Float[np.ndarray, "B N"]:
        return log_probs / length.astype(np.float64) ** self.power

    def is_settled(
        self,
        alive: Float[np.ndarray, "B W"],
        done: Float[np.ndarray, "B W"],
        length: Int[np.ndarray, " B"],
        longest: Int[np.ndarray, " B"],
        wanted: int,  # noqa: ARG002  all beams are filled, however many are asked for
    ) -> Bool[np.ndarray, " B"]:
        full = done[:, -1] > -np.inf
        if self.early is True:
            return full
        patient = self.early == "never" and self.power > 0
        lengths = longest if patient else length
        return full & (alive[:, 0] / lengths.astype(np.float64) ** self.power <= done[:, -1])
