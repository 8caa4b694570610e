"""Beam search: keep the `beam` likeliest beginnings, extend each by one token, repeat.

Search knows two things of a model: `decode` continues the beginnings, `select_rows` reorders what it keeps of them.
How a beam is finished is a part that is passed in (finish.py). A beam of one is greedy search.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from dragoman.config import Settings
from dragoman.decoding.finish import Finish, Mean, Wu
from dragoman.decoding.forbidden import forbid, forbid_repeats
from dragoman.models.state import State, Writer, select_rows
from dragoman.text.special import SpecialIds


class SearchConfig(Settings):
    beam: int = Field(5, gt=0, description="beginnings kept at each step; 1 is greedy search")
    nbest: int = Field(1, gt=0, description="translations returned for each sentence; at most as many as beams")
    finish: Literal["wu", "mean"] = Field(
        "wu", description="how a beam is finished: by Wu et al., or as `generate` does"
    )
    length_penalty: float = Field(
        1.0,
        description="α of Wu et al. 2016, eq. 14; or the power of the length that log p is divided by; 0: short ones",
    )
    early_stopping: bool | Literal["never"] = Field(
        False, description="finish = mean: stop when the beam is full, or never before nothing better can come"
    )
    longest_ratio: float = Field(2.0, gt=0, description="an output has at most this many tokens for each source token")
    longest_extra: int = Field(20, ge=0, description="… and this many more")
    longest_output: int = Field(2000, gt=0, description="… and never more than this")
    force_end: bool = Field(False, description="finish = mean: an output that is too long ends, at no cost")
    no_repeat: int = Field(0, ge=0, description="no so many tokens in a row stand in an output twice; 0: any may")
    never: tuple[tuple[int, ...], ...] | None = Field(
        None, description="ids, or runs of them, that no output may hold; else those with a meaning of their own"
    )

    @model_validator(mode="after")
    def parts_fit_together(self) -> "SearchConfig":
        if self.length_penalty < 0 and self.finish == "wu":
            raise ValueError(f"length_penalty = {self.length_penalty} is below 0, which needs finish = 'mean'")
        return self

    def longest(self, source_tokens: int) -> int:
        return min(int(self.longest_ratio * source_tokens) + self.longest_extra, self.longest_output)

    def way(self) -> Finish:
        if self.finish == "wu":
            return Wu(self.length_penalty)
        return Mean(self.length_penalty, self.early_stopping, self.force_end)


class Hypothesis(NamedTuple):
    tokens: list[int]  # without <start> and <end>
    log_prob: float
    score: float  # log_prob after the length penalty; what hypotheses are ranked by


class Beams(NamedTuple):
    """What is known of each sentence still searched: beginnings alive, and the best finished ones, best first."""

    tokens: Int[Tensor, "B W L"]
    log_probs: Float[Tensor, "B W"]
    done: Int[Tensor, "B W L"]
    done_log_probs: Float[Tensor, "B W"]
    done_scores: Float[Tensor, "B W"]
    done_lengths: Int[Tensor, "B W"]


class Considered(NamedTuple):
    """One step of a search, as whoever asked is told of it."""

    sentences: Int[Tensor, " B"]  # which they are
    options: Float[Tensor, "B W V"]  # log-probabilities of each beginning with each token after it, <end> left out
    ended: Float[Tensor, "B W"]  # of each beginning with <end>; −∞ where it may not end here
    scores: Float[Tensor, "B W"]  # what those are worth
    parents: Int[Tensor, "B W"]  # which beginning each of the kept ones continues
    tokens: Int[Tensor, "B W"]  # … with which token
    log_probs: Float[Tensor, "B W"]


@torch.inference_mode()
def beam_search(
    writer: Writer,
    state: State,
    longest: Sequence[int],  # for each sentence of `state`, how many tokens its output may have
    special: SpecialIds,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,  # tokens that each output must begin with
    tell: Callable[[Considered], None] | None = None,  # is told of every step
) -> list[list[Hypothesis]]:
    """For each sentence in `state`, its best finished hypotheses, best first. Rows are sentence-major: b · W + i."""
    width, sentences, way = max(config.beam, config.nbest), len(longest), config.way()
    state = select_rows(state, torch.arange(sentences).repeat_interleave(width))
    beams = no_beams(sentences, width)
    newest = torch.full((sentences * width, 1), special.start)
    limits = torch.tensor(longest)
    places = torch.arange(sentences)  # which sentence each row of `beams` belongs to
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]

    for length in range(1, int(way.steps(limits).max()) + 1):
        logits, state = writer.decode(newest, state)
        options = weigh(logits[:, -1], beams, special, config)
        if prefixes is not None:
            force(options, [prefixes[place] for place in places.tolist()], length)
        last = way.steps(limits).eq(length)
        ended = way.may_end(options, beams.log_probs, special.end, last)
        scores = way.score(ended, length)
        beams = finish(beams, ended, scores)
        options[..., special.end] = -torch.inf
        beams, parents = extend(beams, options)
        if tell is not None:
            tell(Considered(places, options, ended, scores, parents, beams.tokens[:, :, -1], beams.log_probs))
        if way.cuts and last.any():
            cut = beams.log_probs.masked_fill(~last[:, None], -torch.inf)
            beams = finish(beams, cut, way.score(cut, length))

        settled = way.is_settled(beams.log_probs, beams.done_scores, length, limits, config.nbest)
        over = last | settled | ((width == 1) & beams.done_scores[:, 0].isfinite())
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


def weigh(
    logits: Float[Tensor, "N V"], beams: Beams, special: SpecialIds, config: SearchConfig
) -> Float[Tensor, "B W V"]:
    """Log-probabilities of each beginning with each token after it, those that may not be written at −∞."""
    sentences, width = beams.log_probs.shape
    options = beams.log_probs[..., None] + logits.log_softmax(dim=-1).unflatten(0, (sentences, width))
    never = [(token,) for token in special.never_written()] if config.never is None else config.never
    forbid(options, beams.tokens, never)
    if config.no_repeat:
        forbid_repeats(options, torch.nn.functional.pad(beams.tokens, (1, 0), value=special.start), config.no_repeat)
    return options


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


def finish(beams: Beams, log_probs: Float[Tensor, "B W"], scores: Float[Tensor, "B W"]) -> Beams:
    """Keep the best of the beginnings that end here, with this log-probability and score, and of those that ended
    before."""
    width, written = beams.tokens.shape[1:]
    scores = torch.cat([beams.done_scores, scores], dim=1)
    best = scores.topk(width).indices
    tokens = torch.cat([beams.done, beams.tokens], dim=1)  # (B 2W L)
    lengths = torch.cat([beams.done_lengths, torch.full_like(beams.done_lengths, written)], dim=1)
    return beams._replace(
        done=tokens.gather(1, best[..., None].expand(-1, -1, tokens.shape[2])),
        done_log_probs=torch.cat([beams.done_log_probs, log_probs], dim=1).gather(1, best),
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


def hypotheses(beams: Beams, row: int, count: int) -> list[Hypothesis]:
    """The finished hypotheses of one sentence, best first."""
    parts = (beams.done[row], beams.done_lengths[row], beams.done_log_probs[row], beams.done_scores[row])
    return [
        Hypothesis(tokens[:length], log_prob, score)
        for tokens, length, log_prob, score in zip(*(part[:count].tolist() for part in parts), strict=True)
        if score > -torch.inf
    ]
