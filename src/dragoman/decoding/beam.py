"""Beam search: keep the `beam` likeliest beginnings, extend each by one token, repeat.

Of a writer it knows that it goes on with beginnings and how likely it finds each token after them (candidates.py), and
that `select_rows` repeats and reorders what it keeps of them. How a beam is finished is a part that is passed in
(finish.py). A beam of one is greedy search. Every sentence is at a step of its own, so others may join where the writer
allows it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from pydantic import Field, model_validator

from dragoman.config import Settings
from dragoman.decoding.candidates import Candidates, Proposing, consider, proposed
from dragoman.decoding.finish import Finish, Mean, Wu
from dragoman.decoding.rules import Rules
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
    repetition: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="scores of tokens that stand in an output are divided by this; 1: not",
    )
    shortest: int = Field(0, ge=0, description="no output ends before it has this many tokens")
    first: int | None = Field(None, ge=0, description="the id that every output begins with; else any")
    renormalise: bool = Field(
        False, description="probabilities are shares of what may be written, not of the whole vocabulary"
    )
    never: tuple[tuple[int, ...], ...] | None = Field(
        None, description="ids, or runs of them, that no output may hold; else those with a meaning of their own"
    )

    @model_validator(mode="after")
    def parts_fit_together(self) -> "SearchConfig":
        if self.length_penalty < 0 and self.finish == "wu":
            raise ValueError(f"length_penalty = {self.length_penalty} is below 0, which needs finish = 'mean'")
        if self.shortest > self.longest_output:
            raise ValueError(
                f"shortest = {self.shortest} is more than longest_output = {self.longest_output}; lower one, or raise "
                "the other"
            )
        return self

    def longest(self, source_tokens: int) -> int:
        """There is room for the shortest output that may be, however short the source."""
        usual = int(self.longest_ratio * source_tokens) + self.longest_extra
        return min(max(usual, self.shortest), self.longest_output)

    def rules(self, special: SpecialIds) -> Rules:
        never = [(token,) for token in special.never_written()] if self.never is None else list(self.never)
        return Rules(never, self.no_repeat, self.repetition, self.shortest, self.first, self.renormalise)

    def by_scores_alone(self, special: SpecialIds) -> bool:
        """Whether the best next tokens follow from their scores alone, and one of them ends an output."""
        return not special.also_end and self.rules(special).by_scores_alone()

    def way(self) -> Finish:
        if self.finish == "wu":
            return Wu(self.length_penalty)
        return Mean(self.length_penalty, self.early_stopping, self.force_end)


CUT = -1  # in the place of the token that ended an output


class Hypothesis(NamedTuple):
    tokens: list[int]  # without <start> and <end>; with any other token that ended it
    log_prob: float
    score: float  # log_prob after the length penalty; what hypotheses are ranked by


class Beams(NamedTuple):
    """What is known of each sentence still searched: beginnings alive, and the best finished ones, best first."""

    places: Int[np.ndarray, " B"]  # which sentence it is
    limits: Int[np.ndarray, " B"]  # tokens its output may have
    written: Int[np.ndarray, " B"]  # tokens of its beginnings so far
    tokens: Int[np.ndarray, "B W L"]  # as many as are written count
    log_probs: Float[np.ndarray, "B W"]
    done: Int[np.ndarray, "B W L"]
    done_log_probs: Float[np.ndarray, "B W"]
    done_scores: Float[np.ndarray, "B W"]
    done_lengths: Int[np.ndarray, "B W"]
    done_ends: Int[np.ndarray, "B W"]  # the token that ended it, CUT where none did

    def take(self, rows: Int[np.ndarray, " N"] | Bool[np.ndarray, " B"]) -> "Beams":
        return Beams(*(part[rows] for part in self))


class Considered(NamedTuple):
    """One step of a search, as whoever asked is told of it."""

    places: Int[np.ndarray, " B"]  # which sentences they are
    candidates: Candidates
    ended: Float[np.ndarray, "B W E"]  # log-probability of each beginning with each end; −∞ where it may not end here
    scores: Float[np.ndarray, "B W E"]  # what those are worth
    parents: Int[np.ndarray, "B W"]  # which beginning each of the kept ones continues
    tokens: Int[np.ndarray, "B W"]  # … with which token
    log_probs: Float[np.ndarray, "B W"]


def beam_search(
    writer: Writer,
    state: State,
    longest: Sequence[int],  # for each sentence of `state`, how many tokens its output may have
    special: SpecialIds,
    config: SearchConfig,
    prefixes: Sequence[Sequence[int]] | None = None,  # tokens that each output must begin with
    tell: Callable[[Considered], None] | None = None,  # is told of every step
) -> list[list[Hypothesis]]:
    """For each sentence in `state`, its best finished hypotheses, best first."""
    search = Search(writer, special, config, prefixes, tell)
    search.admit(state, range(len(longest)), longest)
    found: list[list[Hypothesis]] = [[] for _ in longest]
    while len(search):
        for place, hypotheses in search.step():
            found[place] = hypotheses
    return found


class Search:
    """Sentences that are searched together, each at its own step. Rows are sentence-major, see `rows`."""

    def __init__(
        self,
        writer: Writer,
        special: SpecialIds,
        config: SearchConfig,
        prefixes: Sequence[Sequence[int]] | None = None,
        tell: Callable[[Considered], None] | None = None,
    ) -> None:
        self.writer, self.special, self.config, self.prefixes, self.tell = writer, special, config, prefixes, tell
        self.width, self.way = max(config.beam, config.nbest), config.way()
        self.rules = config.rules(special)
        self.struck = [run[0] for run in self.rules.never]
        # then the writer itself may find the best; and sentences may join
        self.may_join = isinstance(writer, Proposing) and prefixes is None and config.by_scores_alone(special)
        self.state: State = None
        self.beams = no_beams(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), self.width)

    def __len__(self) -> int:
        return len(self.beams.places)

    def admit(self, state: State, places: Sequence[int], longest: Sequence[int]) -> None:
        """Begin with these sentences, beside those that are under way; then all must be such that they `may_join`."""
        newer = no_beams(np.array(places), np.array(longest), self.width)
        self.state = self.state.join(state) if len(self) else state
        self.beams = together(self.beams, newer) if len(self) else newer

    def step(self) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Extend every beginning by one token; the sentences that are over by it, with what was found."""
        way, before = self.way, self.beams
        length, rows = before.written + 1, self.rows()
        candidates = self.candidates(rows)
        last = way.steps(before.limits) == length
        ended = way.may_end(candidates, before.log_probs, last)
        sentences = len(ended)
        sentence = np.arange(sentences)
        scores = way.score(ended.reshape(sentences, -1), length[:, None]).reshape(ended.shape)
        beams, parents = extend(finish(before, ended, scores, self.special.ends), candidates)
        if self.tell is not None:
            newest = beams.tokens[sentence, :, before.written]
            self.tell(Considered(beams.places, candidates, ended, scores, parents, newest, beams.log_probs))
        if way.cuts and last.any():
            cut = np.where(last[:, None], beams.log_probs, -np.inf)
            beams = finish(beams, cut[..., None], way.score(cut, length[:, None])[..., None], (CUT,))
        settled = way.is_settled(beams.log_probs, beams.done_scores, length, beams.limits, self.config.nbest)
        over = last | settled
        if self.width == 1:
            over |= beams.done_scores[:, 0] > -np.inf
        self.go_on(beams, rows[sentence[:, None], parents], over)
        for row in np.flatnonzero(over).tolist():
            yield int(beams.places[row]), hypotheses(beams, row, self.config.nbest, self.special.also_end)

    def rows(self) -> Int[np.ndarray, "B W"]:
        """The row of the state that each beginning goes on from. Before its first token a sentence has one for all of
        them: they are the same until then."""
        own = (self.beams.written > 0)[:, None] | (np.arange(self.width) == 0)
        return own.cumsum().reshape(own.shape) - 1

    def candidates(self, rows: Int[np.ndarray, "B W"]) -> Candidates:
        beams, most = self.beams, self.width if self.tell is None else 2 * self.width
        newest = newest_tokens(beams, rows, self.special.start)
        if self.may_join:
            writer, end = cast("Proposing", self.writer), self.special.end
            shares, ahead = self.rules.renormalise, max(1, int((beams.limits - beams.written).min()))
            found, self.state = writer.propose(
                newest, self.state, most, end, self.struck, renormalise=shares, ahead=ahead
            )
            return proposed(found, rows, beams.log_probs)
        logits, self.state = self.writer.decode(torch.from_numpy(newest), self.state)
        last = logits[:, -1] if len(newest) == rows.size else logits[rows.flatten(), -1]
        prefixes = None if self.prefixes is None else [self.prefixes[place] for place in beams.places.tolist()]
        tokens = beams.tokens[:, :, : beams.written[0]]  # none has joined later: all are as long
        return consider(last, tokens, beams.log_probs, most, self.special, self.rules, prefixes)

    def go_on(self, beams: Beams, rows: Int[np.ndarray, "B W"], over: Bool[np.ndarray, " B"]) -> None:
        """With those that are not over; `rows` are the rows that their beginnings continue."""
        going = np.flatnonzero(~over)
        in_place = self.width == 1 and len(going) == len(over)  # each row goes on where it is
        if len(going) and not in_place:
            self.state = select_rows(self.state, torch.from_numpy(rows[going].flatten()))
        self.beams = beams if len(going) == len(over) else beams.take(going)


def no_beams(places: Int[np.ndarray, " B"], longest: Int[np.ndarray, " B"], width: int) -> Beams:
    sentences = len(places)
    log_probs = np.full((sentences, width), -np.inf, dtype=np.float32)
    log_probs[:, 0] = 0.0  # the beams start equal; let only the first one speak
    nothing = np.zeros((sentences, width, 16), dtype=np.int64)
    never = np.full((sentences, width), -np.inf, dtype=np.float32)
    counts = np.zeros((sentences, width), dtype=np.int64)
    written = np.zeros(sentences, dtype=np.int64)
    return Beams(places, longest, written, nothing, log_probs, nothing, never, never, counts, counts)


def together(some: Beams, others: Beams) -> Beams:
    room = max(some.tokens.shape[2], others.tokens.shape[2])
    some, others = with_room(some, room), with_room(others, room)
    return Beams(*(np.concatenate([a, b]) for a, b in zip(some, others, strict=True)))


def with_room(beams: Beams, tokens: int) -> Beams:
    """Room for so many tokens."""
    more = tokens - beams.tokens.shape[2]
    if more <= 0:
        return beams
    wider = ((0, 0), (0, 0), (0, more))
    return beams._replace(tokens=np.pad(beams.tokens, wider), done=np.pad(beams.done, wider))


def newest_tokens(beams: Beams, rows: Int[np.ndarray, "B W"], start: int) -> Int[np.ndarray, "R 1"]:
    """What each row's beginnings end with; `start` where they have not begun."""
    written = beams.written
    newest = beams.tokens[np.arange(len(written)), :, written - 1]  # the last place, where nothing is written
    newest[written == 0] = start
    of_rows = np.empty((int(rows[-1, -1]) + 1, 1), dtype=np.int64)
    of_rows[rows, 0] = newest
    return of_rows


def finish(
    beams: Beams, log_probs: Float[np.ndarray, "B W E"], scores: Float[np.ndarray, "B W E"], ends: Sequence[int]
) -> Beams:
    """Keep the best of the beginnings that end here, with one of these ends and this log-probability and score, and of
    those that ended before."""
    if not (scores > -np.inf).any():
        return beams
    sentences, width, kinds = scores.shape
    worth = np.concatenate([beams.done_scores, scores.reshape(sentences, -1)], axis=1)
    best, sentence = best_places(worth, width), np.arange(sentences)[:, None]
    tokens = beams.tokens if kinds == 1 else beams.tokens.repeat(kinds, axis=1)
    endings = (sentences, width * kinds)
    return beams._replace(
        done=np.concatenate([beams.done, tokens], axis=1)[sentence, best],
        done_log_probs=kept(best, beams.done_log_probs, log_probs.reshape(endings)),
        done_scores=worth[sentence, best],
        done_lengths=kept(best, beams.done_lengths, np.broadcast_to(beams.written[:, None], endings)),
        done_ends=kept(best, beams.done_ends, np.broadcast_to(np.tile(ends, width), endings)),
    )


def kept(
    best: Int[np.ndarray, "B W"], before: Shaped[np.ndarray, "B W"], now: Shaped[np.ndarray, "B N"]
) -> Shaped[np.ndarray, "B W"]:
    """What is known of the best of those that ended before and now."""
    return np.concatenate([before, now], axis=1)[np.arange(len(best))[:, None], best]


def extend(beams: Beams, candidates: Candidates) -> tuple[Beams, Int[np.ndarray, "B W"]]:
    """The likeliest beginnings that are one token longer, and which beginning each of them continues."""
    sentences, width, most = candidates.tokens.shape
    options = candidates.log_probs.reshape(sentences, width * most)
    best, sentence = best_places(options, width), np.arange(sentences)[:, None]
    parents, longest = best // most, int(beams.written.max())
    if longest == beams.tokens.shape[2]:
        beams = with_room(beams, 2 * longest)
    tokens = beams.tokens[sentence, parents]
    tokens[sentence[:, 0], :, beams.written] = candidates.tokens.reshape(sentences, width * most)[sentence, best]
    return beams._replace(tokens=tokens, log_probs=options[sentence, best], written=beams.written + 1), parents


def best_places(values: Float[np.ndarray, "B N"], count: int) -> Int[np.ndarray, "B count"]:
    """Where the largest of each row stand, the largest first; of equal ones the first."""
    if count == 1:
        return values.argmax(axis=1)[:, None]
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def hypotheses(beams: Beams, row: int, count: int, shown: Sequence[int]) -> list[Hypothesis]:
    """The finished hypotheses of one sentence, best first; ends that are `shown` are a part of them."""
    done = (beams.done, beams.done_lengths, beams.done_ends, beams.done_log_probs, beams.done_scores)
    return [
        Hypothesis(tokens[:length] + ([end] if end in shown else []), log_prob, score)
        for tokens, length, end, log_prob, score in zip(*(part[row, :count].tolist() for part in done), strict=True)
        if score > -np.inf
    ]
