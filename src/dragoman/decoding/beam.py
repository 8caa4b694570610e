"""Beam search: keep the `beam` likeliest beginnings, extend each by one token, repeat.

Search knows two things of a model: `decode` continues the beginnings, `select_rows` reorders what it keeps of them.
A beam of one is greedy search.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from dragoman.config import Settings
from dragoman.models.state import State, Writer, select_rows
from dragoman.text.special import SpecialIds


class SearchConfig(Settings):
    beam: int = Field(5, gt=0, description="beginnings kept at each step; 1 is greedy search")
    nbest: int = Field(1, gt=0, description="translations returned for each sentence; at most as many as beams")
    length_penalty: float = Field(1.0, ge=0, description="α of Wu et al. 2016, eq. 14; 0 prefers short outputs")
    longest_ratio: float = Field(2.0, gt=0, description="an output has at most this many tokens for each source token")
    longest_extra: int = Field(20, ge=0, description="… and this many more")
    longest_output: int = Field(2000, gt=0, description="… and never more than this")

    def longest(self, source_tokens: int) -> int:
        return min(int(self.longest_ratio * source_tokens) + self.longest_extra, self.longest_output)


class Hypothesis(NamedTuple):
    tokens: list[int]  # without <start> and <end>
    log_prob: float
    score: float  # log_prob after the length penalty; what hypotheses are ranked by


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = (5 + |Y|)^α / (5 + 1)^α   (Wu et al. 2016, eq. 14), <end> counted."""
    return ((5 + length) / 6) ** alpha


class Beams(NamedTuple):
    """What is known of each sentence still searched: beginnings alive, and the best finished ones, best first."""

    tokens: Int[Tensor, "B W L"]
    log_probs: Float[Tensor, "B W"]
    done: Int[Tensor, "B W L"]
    done_log_probs: Float[Tensor, "B W"]
    done_scores: Float[Tensor, "B W"]
    done_lengths: Int[Tensor, "B W"]


@torch.inference_mode()
def beam_search(
    writer: Writer,
    state: State,
    longest: Sequence[int],  # for each sentence of `state`, how many tokens its output may have
    special: SpecialIds,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,  # tokens that each output must begin with
) -> list[list[Hypothesis]]:
    """For each sentence in `state`, its best finished hypotheses, best first. Rows are sentence-major: b · W + i."""
    width, sentences = max(config.beam, config.nbest), len(longest)
    state = select_rows(state, torch.arange(sentences).repeat_interleave(width))
    beams = no_beams(sentences, width)
    newest = torch.full((sentences * width, 1), special.start)
    limits = torch.tensor(longest)
    places = torch.arange(sentences)  # which sentence each row of `beams` belongs to
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]

    for length in range(1, int(limits.max()) + 2):  # up to `longest` tokens, and <end>
        logits, state = writer.decode(newest, state)
        options = beams.log_probs[..., None] + allowed(logits[:, -1], special).unflatten(0, (len(places), width))
        if prefixes is not None:
            force(options, [prefixes[place] for place in places.tolist()], length)
        ended = may_end(options, special.end, forced=length > limits)
        beams = finish(beams, ended, length, config)
        options[..., special.end] = -torch.inf
        beams, parents = extend(beams, options)

        over = can_stop(beams, limits, length, config)
        for row in over.nonzero().flatten().tolist():
            found[int(places[row])] = hypotheses(beams, row, config.nbest)
        if over.all():
            break
        going = (~over).nonzero().flatten()
        rows = (parents + torch.arange(len(places))[:, None] * width)[going].flatten()
        state = select_rows(state, rows)
        beams, places, limits = Beams(*(part[going] for part in beams)), places[going], limits[going]
        newest = beams.tokens[:, :, -1].reshape(-1, 1)
    return found


def no_beams(sentences: int, width: int) -> Beams:
    log_probs = torch.full((sentences, width), -torch.inf)
    log_probs[:, 0] = 0.0  # the beams start equal; let only the first one speak
    nothing = torch.zeros(sentences, width, 0, dtype=torch.long)
    never = torch.full((sentences, width), -torch.inf)
    return Beams(nothing, log_probs, nothing, never, never, torch.zeros(sentences, width, dtype=torch.long))


def allowed(logits: Float[Tensor, "N V"], special: SpecialIds) -> Float[Tensor, "N V"]:
    """Log-probabilities, those of tokens that are never written at −∞."""
    log_probs = logits.log_softmax(dim=-1)
    log_probs[:, special.never_written()] = -torch.inf
    return log_probs


def force(options: Float[Tensor, "B W V"], prefixes: Sequence[Sequence[int]], length: int) -> None:
    """Where a sentence's prefix has a token at this place, leave only that option."""
    for row, prefix in enumerate(prefixes):
        if length <= len(prefix):
            kept = options[row, :, prefix[length - 1]].clone()
            options[row] = -torch.inf
            options[row, :, prefix[length - 1]] = kept


def may_end(options: Float[Tensor, "B W V"], end: int, forced: Bool[Tensor, " B"]) -> Float[Tensor, "B W"]:
    """Log-probabilities of ending here; −∞ where W other tokens are likelier, unless there is no room for one more.

    So a beam of one ends where greedy search does, and a beam of the whole vocabulary may end anywhere.
    """
    ended = options[..., end].clone()
    likelier = (options > ended[..., None]).sum(dim=-1)
    return ended.masked_fill((likelier >= options.shape[1]) & ~forced[:, None], -torch.inf)


def finish(beams: Beams, ended: Float[Tensor, "B W"], length: int, config: SearchConfig) -> Beams:
    """Keep the best of those that end here and of those that ended before."""
    width = ended.shape[1]
    scores = torch.cat([beams.done_scores, ended / length_penalty(length, config.length_penalty)], dim=1)
    best = scores.topk(width).indices
    tokens = torch.cat([beams.done, beams.tokens], dim=1)  # (B 2W L)
    lengths = torch.cat([beams.done_lengths, torch.full_like(beams.done_lengths, length - 1)], dim=1)
    return beams._replace(
        done=tokens.gather(1, best[..., None].expand(-1, -1, tokens.shape[2])),
        done_log_probs=torch.cat([beams.done_log_probs, ended], dim=1).gather(1, best),
        done_scores=scores.gather(1, best),
        done_lengths=lengths.gather(1, best),
    )


def extend(beams: Beams, options: Float[Tensor, "B W V"]) -> tuple[Beams, Int[Tensor, "B W"]]:
    """The likeliest beginnings that are one token longer, and which beginning each of them continues."""
    vocabulary = options.shape[-1]
    log_probs, flat = options.flatten(1).topk(options.shape[1])
    parents, newest = flat // vocabulary, flat % vocabulary
    before = beams.tokens.gather(1, parents[..., None].expand(-1, -1, beams.tokens.shape[2]))
    tokens = torch.cat([before, newest[..., None]], dim=2)
    done = torch.nn.functional.pad(beams.done, (0, 1))  # as long as the others, so that they can be gathered together
    return beams._replace(tokens=tokens, log_probs=log_probs, done=done), parents


def can_stop(beams: Beams, limits: Int[Tensor, " B"], length: int, config: SearchConfig) -> Bool[Tensor, " B"]:
    """True where the length is used up, or no beginning still alive can overtake what is finished.

    A longer text is never likelier, so a beginning is worth at most its own log-probability under the last penalty.
    A beam of one ends with the first <end>: that is greedy search.
    """
    width = beams.log_probs.shape[1]
    penalties = torch.tensor([length_penalty(limit + 1, config.length_penalty) for limit in limits.tolist()])
    best_possible = beams.log_probs[:, 0] / penalties
    least = beams.done_scores[:, config.nbest - 1]
    return (length > limits) | (best_possible <= least) | ((width == 1) & least.isfinite())


def hypotheses(beams: Beams, row: int, count: int) -> list[Hypothesis]:
    """The finished hypotheses of one sentence, best first."""
    parts = (beams.done[row], beams.done_lengths[row], beams.done_log_probs[row], beams.done_scores[row])
    return [
        Hypothesis(tokens[:length], log_prob, score)
        for tokens, length, log_prob, score in zip(*(part[:count].tolist() for part in parts), strict=True)
        if score > -torch.inf
    ]
