"""A faster `Writer`: the same `encode` and `decode`, computed by the C++ part of this package from packed weights.

Keys and values lie in one preallocated cache, [slot][block][place][keys, values]. A row writes each token into its own
slot and remembers, place by place, in which slot its past was written: so to reorder the beams of a sentence is to copy
a few numbers, and a source is remembered once for all its beams. Rows may be of any length, so waiting sentences can
join while others are half done.

States share their cache. Going on with a state uses up those it was made from, except where they have no past yet:
to begin twice from one `encode` is safe, to branch in the middle of a text is not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import count, islice, pairwise
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from dragoman import native
from dragoman.decoding.pace import Pace, Ways
from dragoman.decoding.packing import Packed, Precision, can_pack, pointer
from dragoman.models.state import Decoded
from dragoman.text.shortlist import Shortlist

PLACES = 32  # of the cache at first; doubled when a text is longer
AHEAD = 8  # steps at most that are done in one call


class Proposed(NamedTuple):
    """For each row the likeliest tokens, best first, and how likely it is to end."""

    tokens: Int[np.ndarray, "R K"]
    log_probs: Float[np.ndarray, "R K"]  # −∞ where fewer may be written
    ended: Float[np.ndarray, " R"]


class Asked(NamedTuple):
    """What search wants to know after each step."""

    most: int
    end: int
    never: tuple[int, ...]
    renormalise: bool


class Foreseen(NamedTuple):
    """A step that was done before it was asked for, on the guess that greedy search takes the best token."""

    tokens: Int[np.ndarray, "R 1"]
    asked: Asked
    found: Proposed


class Cache:
    """Keys and values of all rows, in memory that grows by doubling."""

    def __init__(self, blocks: int, inner: int) -> None:
        self.blocks, self.inner, self.places = blocks, inner, PLACES
        self.values = torch.empty(0, blocks, PLACES, 2 * inner)

    def reach(self, slots: int, places: int) -> None:
        have = len(self.values)
        if slots <= have and places <= self.places:
            return
        while self.places < places:
            self.places *= 2
        grown = torch.empty(max(slots, have, 2 * have if slots > have else 0), self.blocks, self.places, 2 * self.inner)
        grown[:have, :, : self.values.shape[2]] = self.values
        self.values = grown


SOURCE = np.dtype(
    [("memory", np.uint64), ("block_stride", np.int64), ("listed", np.uint64), ("length", np.int32)], align=True
)  # `Source` of engine.cpp
Remembered = tuple[Tensor, ...]  # of one sentence: what the decoder reads, and the tokens that may come up in it


@dataclass(frozen=True)
class EngineState:
    cache: Cache
    memories: tuple[Remembered, ...]  # of each sentence, those it was encoded with among them: `sources` points there
    sources: Shaped[np.ndarray, " S"]  # of each sentence
    sentences: Int[np.ndarray, " R"]  # which sentence a row reads; or just which text it is
    slots: Int[np.ndarray, " R"]  # where it writes
    where: Int[np.ndarray, "R P"]  # and where each place of its past was written
    lengths: Int[np.ndarray, " R"]
    foreseen: "tuple[Foreseen, ...]" = ()  # steps that are done already, in the order in which they will be asked for

    def select(self, rows: Int[np.ndarray, " N"]) -> "EngineState":
        """Keep, repeat or reorder rows. The beams of a sentence share its slots: the j-th writes into the j-th."""
        sentences = self.sentences[rows]
        same = len(rows) == len(self.sentences) and bool((sentences == self.sentences).all())
        slots = self.slots if same else self.deal(sentences)
        where, lengths = self.where[rows], self.lengths[rows]
        return EngineState(self.cache, self.memories, self.sources, sentences, slots, where, lengths)

    def deal(self, sentences: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
        """A slot for each row: those that its sentence has, and new ones where it has more rows than before.

        A slot never goes from one sentence to another while both are there: the past of the first may lie in it.
        """
        owned: dict[int, list[int]] = {}
        for sentence, slot in zip(self.sentences.tolist(), self.slots.tolist(), strict=True):
            owned.setdefault(sentence, []).append(slot)
        free = not_among({slot for sentence in set(sentences.tolist()) for slot in owned[sentence]})
        hands = {
            sentence: iter([*owned[sentence], *islice(free, max(0, rows - len(owned[sentence])))])
            for sentence, rows in Counter(sentences.tolist()).items()
        }
        return np.array([next(hands[sentence]) for sentence in sentences.tolist()], dtype=np.int32)

    def join(self, newer: "EngineState") -> "EngineState":
        """These rows, and others that have no past yet. What no row reads any more is let go."""
        read, sentences = np.unique(self.sentences, return_inverse=True)
        slots = np.array(list(islice(not_among(set(self.slots.tolist())), len(newer.slots))), dtype=np.int32)
        return EngineState(
            self.cache,
            (*(self.memories[i] for i in read.tolist() if self.memories), *newer.memories),
            np.concatenate([self.sources[read] if len(self.sources) else self.sources, newer.sources]),
            np.concatenate([sentences.astype(np.int32), newer.sentences + np.int32(len(read))]),
            np.concatenate([self.slots, slots]),
            np.concatenate([self.where, np.zeros((len(slots), self.where.shape[1]), dtype=np.int32)]),
            np.concatenate([self.lengths, newer.lengths]),
        )


def not_among(used: set[int]) -> Iterator[int]:
    return (slot for slot in count() if slot not in used)


class Engine:
    """A trained model, ready to write. Threads may share one; each state belongs to one of them at a time."""

    def __init__(self, model: nn.Module, precision: Precision = "float32") -> None:
        self.packed = Packed(model, precision)
        self.precision, self.threads = precision, 1  # that may compute one call together
        self.settled = False  # whether they always do
        self.forget_pace()
        self.struck: dict[tuple[int, ...], Bool[np.ndarray, " V"]] = {}
        self.shortlist: Shortlist | None = None

    def with_shortlist(self, shortlist: Shortlist) -> "Engine":
        """The same weights, but a search chooses only among tokens that the source makes likely."""
        other = copy(self)
        other.shortlist = shortlist
        other.forget_pace()
        return other

    def forget_pace(self) -> None:
        """Nothing was timed yet, neither by this engine nor by copies of it."""
        self.paces: defaultdict[tuple[int, int], Pace] = defaultdict(Pace)  # by threads, and rows of a step
        self.ways: defaultdict[tuple[int, int, int], Ways] = defaultdict(Ways)  # by threads, sentences for each, beams

    def with_threads(self, threads: int, *, settled: bool = False) -> "Engine":
        """The same weights, with so many threads that compute each step together: where that is faster, or always."""
        other = copy(self)
        other.threads, other.settled = threads, settled
        return other

    # ── as every writer ───────────────────────────────────────────────────────────────────

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> EngineState:
        packed, side = self.packed, self.packed.source
        if side is None:
            raise TypeError("this model reads no source; `begin` with it")
        lengths = source_mask.sum(dim=1, dtype=torch.int32)
        ids = source[source_mask]  # the sentences one after another, without padding
        side.refuse_unknown(ids)
        packed.reach(side, int(lengths.max()))
        states = torch.empty(len(ids), side.stack.width)
        packed.library.encode(
            pointer(side.stack), pointer(side.embedding), ids.data_ptr(), lengths.data_ptr(), len(lengths),
            self.threads, states.data_ptr(),
        )  # fmt: skip
        reader = packed.target.blocks[0].source_attention
        memory = torch.empty(packed.target.stack.blocks, len(ids), 2 * reader.heads * reader.head_width)
        packed.library.remember(
            pointer(packed.target.stack), states.data_ptr(), len(ids), self.threads, memory.data_ptr()
        )
        sources = np.zeros(len(lengths), dtype=SOURCE)
        before = np.cumsum(lengths.numpy(), dtype=np.int64) - lengths.numpy()
        sources["memory"] = memory.data_ptr() + 4 * memory.shape[2] * before
        sources["block_stride"], sources["length"] = memory[0].numel(), lengths.numpy()
        remembered: list[Remembered] = [(memory,)] * len(lengths)
        if self.shortlist is not None:
            lists = [self.list_for(one.numpy()) for one in ids.split(lengths.tolist())]
            sources["listed"] = [one.data_ptr() for one in lists]
            remembered = [(memory, one) for one in lists]
        return self.new_state(tuple(remembered), sources, len(lengths))

    def list_for(self, source: Int[np.ndarray, " S"]) -> Tensor:
        """Weights of the tokens that may come up in the translation of this sentence, as engine.cpp reads them."""
        assert self.shortlist is not None
        tokens, packed = self.shortlist.of(source.tolist()), self.packed
        scores, library = pointer(packed.scores), packed.library
        made = torch.empty(library.list_size(scores, len(tokens)), dtype=torch.uint8)
        library.make_list(scores, packed.table.data_ptr(), tokens.ctypes.data, len(tokens), made.data_ptr())
        return made

    def begin(self, rows: int) -> EngineState:
        return self.new_state((), np.zeros(0, dtype=SOURCE), rows)

    def new_state(self, memories: tuple[Remembered, ...], sources: Shaped[np.ndarray, " S"], rows: int) -> EngineState:
        cache = Cache(self.packed.target.stack.blocks, self.packed.inner)
        numbers, nothing = np.arange(rows, dtype=np.int32), np.zeros((rows, PLACES), dtype=np.int32)
        return EngineState(cache, memories, sources, numbers, numbers, nothing, np.zeros(rows, dtype=np.int32))

    def decode(self, tokens: Int[Tensor, "B T"], state: EngineState) -> Decoded:
        logits = torch.empty(*tokens.shape, self.packed.vocabulary)
        return Decoded(logits, self.step(tokens.numpy(), state, native.Step(ahead=1, logits=logits.data_ptr()))[1])

    # ── and for search ────────────────────────────────────────────────────────────────────

    def propose(
        self,
        tokens: Int[np.ndarray, "R T"],
        state: EngineState,
        most: int,
        end: int,
        never: Sequence[int],
        *,
        renormalise: bool = False,
        ahead: int = 1,
    ) -> tuple[Proposed, EngineState]:
        """The `most` likeliest tokens after these, `end` and those in `never` left out: all that search asks of the
        logits, without making them. With `renormalise` those in `never` have no share of the probability either.

        With `ahead` more steps may be done at once, each row going on with its best token until one would rather end:
        the next question is then answered at once, if that is what it asks."""
        asked = Asked(min(most, self.packed.vocabulary), end, tuple(never), renormalise)
        if state.foreseen:
            (before, as_asked, found), *rest = state.foreseen
            if asked == as_asked and np.array_equal(tokens, before):
                return found, replace(state, lengths=state.lengths + np.int32(1), foreseen=tuple(rest))
        rows, steps = len(tokens), min(ahead, AHEAD) if asked.most == 1 else 1
        found = Proposed(
            np.empty((steps, rows, asked.most), dtype=np.int64),
            np.empty((steps, rows, asked.most), dtype=np.float32),
            np.empty((steps, rows), dtype=np.float32),
        )
        ids, best, ended = (part.ctypes.data for part in found)
        struck = self.struck_out(asked.never).ctypes.data
        done, state = self.step(
            tokens, state,
            native.Step(
                count=asked.most, ahead=steps, end=end, never=struck, renormalise=renormalise, best=best, best_ids=ids,
                ended=ended,
            ),
        )  # fmt: skip
        first, *later = (Proposed(*(part[i] for part in found)) for i in range(done))
        foreseen = (Foreseen(before.tokens, asked, after) for before, after in pairwise([first, *later]))
        return first, replace(state, foreseen=tuple(foreseen))

    def struck_out(self, never: tuple[int, ...]) -> Bool[np.ndarray, " V"]:
        if never not in self.struck:
            struck = np.zeros(self.packed.vocabulary, dtype=bool)
            struck[list(never)] = True
            self.struck[never] = struck
        return self.struck[never]

    def step(self, tokens: Int[np.ndarray, "R T"], state: EngineState, asked: native.Step) -> tuple[int, EngineState]:
        """How many steps were done, and the state after the first of them."""
        packed, side, cache = self.packed, self.packed.target, state.cache
        tokens = np.ascontiguousarray(tokens, dtype=np.int64)
        side.refuse_unknown(tokens)
        asked.rows, asked.tokens = tokens.shape
        pace = self.paces[self.threads, asked.rows]
        asked.threads = self.threads if self.settled else pace.choose(self.threads)
        longest = int(state.lengths.max()) + asked.tokens + asked.ahead - 1
        packed.reach(side, longest)
        cache.reach(int(state.slots.max()) + 1, longest)
        where = state.where
        if where.shape[1] < cache.places:
            where = np.pad(where, ((0, 0), (0, cache.places - where.shape[1])))
        asked.ids, asked.lengths, asked.slots = tokens.ctypes.data, state.lengths.ctypes.data, state.slots.ctypes.data
        asked.where, asked.places, asked.cache = where.ctypes.data, cache.places, cache.values.data_ptr()
        asked.sources = state.sources.ctypes.data if len(state.sources) else None
        asked.source_of = state.sentences.ctypes.data
        start = perf_counter()
        done = packed.library.step(
            pointer(side.stack), pointer(side.embedding), pointer(packed.scores), packed.output_scale, pointer(asked)
        )
        pace.note(asked.threads, (perf_counter() - start) / done)
        return done, replace(state, where=where, lengths=state.lengths + np.int32(asked.tokens), foreseen=())


def make_engine(model: nn.Module, precision: Precision = "float32") -> Engine | None:
    """The engine for this model; None where it cannot take it, or was not built."""
    return Engine(model, precision) if can_pack(model) else None
