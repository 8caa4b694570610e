"""Strings in, strings out: a model, its tokenizers and a search, put together.

Whatever else is translated with it, a sentence's translation is the same: sentences are sorted by length and batched,
padding is never looked at, and the results come back in the order of the input.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple, get_args

import torch
from torch import nn

from dragoman.decoding.beam import Hypothesis, SearchConfig, beam_search
from dragoman.decoding.engine import Engine, make_engine
from dragoman.decoding.flow import Waiting, search_all
from dragoman.decoding.maps import AttentionMap, align_words, source_weights
from dragoman.decoding.packing import Precision, why_not
from dragoman.decoding.sample import sample
from dragoman.decoding.settings import SampleConfig, refuse_wide
from dragoman.decoding.split import split_text
from dragoman.decoding.watch import watch_translation
from dragoman.errors import DataError, UsageError
from dragoman.text.batches import like_lengths, make_batch, make_source
from dragoman.text.reading import as_strings, clean
from dragoman.text.shortlist import Shortlist
from dragoman.text.tokenizer import Tokenizer, Tokenizers

ROW_TOKENS = 8192  # source tokens searched at once by the model itself, counted once for each beam
ROWS = 96  # beginnings that the engine goes on with at once, for each thread
FAR = 1_000_000_007  # between the seeds of texts that are drawn for one sentence


@dataclass(frozen=True)
class Translation:
    text: str
    score: float  # what the search ranked it by: log-probability over the length penalty
    log_prob: float
    tokens: list[str]
    source_tokens: list[str]
    words: tuple[int, int] = (0, 0)  # in the source, and in this
    alignment: list[tuple[int, int]] | None = None  # (source word, target word), from 0
    alternatives: list["Translation"] = field(default_factory=list)  # the next best


class Part(NamedTuple):
    """A piece of one text that fits the model: the whole of it, nearly always."""

    line: int  # which text it belongs to
    number: int  # which of all parts it is
    source: list[int]
    prefix: list[int]


Notice = Callable[[str], None]
SILENCE: Notice = lambda _: None  # noqa: E731


class Translator:
    """What `dragoman.load` gives for a model that translates."""

    def __init__(
        self, model: nn.Module, tokenizers: Tokenizers, about: dict[str, Any], shortlist: Shortlist | None = None
    ) -> None:
        self.model: Any = model.eval()  # a module that is also `Translating`
        self.tokenizers, self.about, self.shortlist = tokenizers, about, shortlist
        self.search = SearchConfig.read(about.get("search", {}), section="search")
        self.engines: dict[Precision, Engine | None] = {}
        self.told: set[Precision] = set()  # of those without an engine, which somebody was told of
        self.listed: dict[Precision, Engine] = {}  # those that use the shortlist
        self.longest: int = about["longest"]  # tokens in the longest sentence trained on

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        nbest: int = 1,
        sampling: SampleConfig | None = None,
        prefixes: Sequence[str] | None = None,
        precision: Precision = "float32",
        shortlist: bool = False,
        alignments: bool = False,
        split: bool = True,
        first_line: int = 1,
        notice: Notice = SILENCE,
    ) -> list[Translation]:
        """One translation for each text of a list. `prefixes`, one for each, are what the outputs must begin with; the
        texts are lines that count from `first_line`, in notices and in sampling's luck. In int8 weights take a quarter
        of the memory and a product less time; with `shortlist` only those tokens are scored that the source makes
        likely; what either costs was measured when the model was saved."""
        refuse_wide(beam, nbest)
        texts = as_strings("texts", texts)
        prefixes = None if prefixes is None else as_strings("prefixes", prefixes)
        refuse_other_number(prefixes, texts)
        beams = self.search.beam if beam is None else beam
        search = self.search.changed({"beam": beams, "nbest": nbest}, section="search")
        parts = list(self.parts(texts, prefixes, first_line, split, notice))
        plain = sampling is None and not any(part.prefix for part in parts)
        listed = shortlist and self.has_lists(search, plain, notice)
        hypotheses = self.write(parts, search, sampling, self.writer(precision, notice, shortlist=listed))
        found = {part.number: list(self.read_out(part, hypotheses[part.number], alignments)) for part in parts}
        grouped = {text: [found[part.number] for part in group] for text, group in groupby(parts, lambda p: p.line)}
        return [join(grouped.get(first_line + i, [])) for i in range(len(texts))]

    def write_ids(self, sources: Sequence[list[int]], *, beam: int) -> list[list[int]]:
        """The best output for each source, where both are ids."""
        search = self.search.changed({"beam": beam}, section="search")
        parts = [Part(number, number, source, []) for number, source in enumerate(sources)]
        found = self.write(parts, search, None, self.writer("float32", SILENCE))
        return [found[number][0].tokens for number in range(len(parts))]

    def writer(self, precision: Precision, notice: Notice, *, shortlist: bool = False) -> Any:
        """The engine, made when it is first asked for; the model itself where the engine cannot take it."""
        if precision not in get_args(Precision):
            raise UsageError(
                "E-USE-19", f"there is no precision {precision!r}; choose {' or '.join(get_args(Precision))}"
            )
        if precision not in self.engines:
            self.engines[precision] = make_engine(self.model, precision)
        engine = self.engines[precision]
        if engine is None and notice is not SILENCE and precision not in self.told:
            self.told.add(precision)
            notice(why_not(self.model))
        if engine is None and shortlist:
            notice("a shortlist cannot be used here; all tokens are scored")
        if engine is None or self.shortlist is None or not shortlist:
            return engine or self.model
        return self.listed.setdefault(precision, engine.with_shortlist(self.shortlist))

    def has_lists(self, search: SearchConfig, plain: bool, notice: Notice) -> bool:
        """Whether the shortlist can be used, which was asked for."""
        if self.shortlist is None:
            raise UsageError(
                "E-USE-23",
                "this model has no shortlist: one is learned at the end of a training with 8,000 target tokens or "
                "more; leave out --shortlist, or train it again",
            )
        if not plain or not search.by_scores_alone(self.tokenizers.special):
            notice(
                "a shortlist cannot be used where words are drawn, begun with, or ruled out by those before them; all "
                "tokens are scored"
            )
            return False
        return True

    def lone_writer(self) -> Any:
        """The one that `translate` uses for a single text: all threads compute it together."""
        writer = self.writer("float32", SILENCE)
        return writer.with_threads(torch.get_num_threads()) if isinstance(writer, Engine) else writer

    def parts(
        self, texts: Sequence[str], prefixes: Sequence[str] | None, first_line: int, split: bool, notice: Notice
    ) -> Iterator[Part]:
        """Texts as ids; one that is too long is split, or refused in words."""
        cleaned = [clean(text) for text in texts]
        beginnings = self.beginnings(prefixes or [""] * len(texts))
        number = 0
        for i, (text, ids) in enumerate(zip(cleaned, self.tokenizers.source.encode(cleaned), strict=True)):
            pieces = [ids] if ids else []
            if len(ids) > self.longest:
                pieces = self.split(first_line + i, text, len(ids), split, notice)
            for place, piece in enumerate(pieces):
                yield Part(first_line + i, number, piece, beginnings[i] if place == 0 else [])
                number += 1

    def beginnings(self, prefixes: Sequence[str]) -> list[list[int]]:
        target = self.tokenizers.target
        found = target.encode([clean(prefix) for prefix in prefixes])
        special = target.special
        for prefix, ids in zip(prefixes, found, strict=True):
            if set(ids) & {*special.never_written(), *special.also_end}:
                raise UsageError(
                    "E-USE-09", f"the prefix {prefix!r} holds what this model cannot write; choose another"
                )
        return found

    def split(self, line: int, text: str, length: int, allowed: bool, notice: Notice) -> list[list[int]]:
        tokens = self.tokenizers.source
        too_long = f"line {line:,} has {length:,} tokens and this model was trained on up to {self.longest:,}"
        if not allowed:
            raise DataError("E-LONG-01", f"{too_long}; split it into sentences, or leave out --no-split")
        pieces = split_text(text, lambda part: len(tokens.encode([part])[0]) <= self.longest)
        notice(f"{too_long}; it was split into {len(pieces):,} parts")
        return tokens.encode(pieces)

    def write(
        self, parts: list[Part], search: SearchConfig, sampling: SampleConfig | None, writer: Any
    ) -> dict[int, list[Hypothesis]]:
        """The best hypotheses for each part, by its number."""
        if isinstance(writer, Engine) and sampling is None and not any(part.prefix for part in parts):
            waiting = [Waiting(part.number, part.source, search.longest(len(part.source))) for part in parts]
            threads = torch.get_num_threads()
            return search_all(writer, waiting, self.tokenizers.special, search, rows=ROWS, threads=threads)
        found: dict[int, list[Hypothesis]] = {}
        for batch in batches_of(parts, max(search.beam, search.nbest)):
            hypotheses = self.write_batch(batch, search, sampling, writer)
            found |= {part.number: best for part, best in zip(batch, hypotheses, strict=True)}
        return found

    @torch.inference_mode()
    def write_batch(
        self, parts: list[Part], search: SearchConfig, sampling: SampleConfig | None, writer: Any
    ) -> list[list[Hypothesis]]:
        special = self.tokenizers.special
        state = writer.encode(*make_source([part.source for part in parts], special))
        longest = [max(search.longest(len(part.source)), len(part.prefix) + 1) for part in parts]
        prefixes = [part.prefix for part in parts]
        if sampling:
            lines = [part.line for part in parts]
            drawn = [
                sample(writer, state, longest, special, luck, lines, prefixes) for luck in lucks(sampling, search.nbest)
            ]
            return [sorted(several, key=lambda h: -h.score) for several in zip(*drawn, strict=True)]
        return beam_search(writer, state, longest, special, search, prefixes if any(prefixes) else None)

    def read_out(self, part: Part, hypotheses: list[Hypothesis], alignments: bool) -> Iterator[Translation]:
        source, target = self.tokenizers.source, self.tokenizers.target
        pieces = source.pieces(part.source)
        for h in hypotheses:
            yield Translation(
                text=" ".join(target.decode(h.tokens).split("\n")),  # one line in, one line out
                score=h.score,
                log_prob=h.log_prob,
                tokens=target.pieces(h.tokens),
                source_tokens=pieces,
                words=(count_words(source, part.source), count_words(target, h.tokens)),
                alignment=self.align(part.source, h.tokens) if alignments else None,
            )

    def align(self, source: list[int], target: list[int]) -> list[tuple[int, int]]:
        batch = make_batch([(source, target)], self.tokenizers.special)
        weights = source_weights(self.model, batch)[0]
        return align_words(weights, self.tokenizers.source.words(source), self.tokenizers.target.words(target))

    def look(self, text: str, target: str | None = None) -> list[AttentionMap]:
        """The attention of every layer and head, as the model writes its translation of `text`, or `target`."""
        written = self.translate([text])[0].text if target is None else target
        [source], [ids] = self.tokenizers.source.encode([clean(text)]), self.tokenizers.target.encode([clean(written)])
        return watch_translation(self.model, self.tokenizers, source, ids).maps


def refuse_other_number(prefixes: Sequence[str] | None, texts: Sequence[str]) -> None:
    if prefixes is not None and len(prefixes) != len(texts):
        raise UsageError(
            "E-USE-09", f"there are {len(prefixes):,} prefixes for {len(texts):,} texts; give one for each, or none"
        )


def lucks(sampling: SampleConfig, count: int) -> list[SampleConfig]:
    """The same settings with so many seeds, far apart: the next seed is for another call."""
    seeds = [sampling.seed + number * FAR for number in range(count)]
    return [sampling.model_copy(update={"seed": seed}) for seed in seeds]


def batches_of(parts: list[Part], beam: int) -> Iterator[list[Part]]:
    return like_lengths(parts, lambda part: (len(part.source) + 1) * beam, ROW_TOKENS)


def join(parts: list[list[Translation]]) -> Translation:
    """One translation of a whole text from those of its parts; alternatives are joined rank by rank."""
    if not parts:
        return Translation("", 0.0, 0.0, [], [])
    ranked = [join_rank([part[min(rank, len(part) - 1)] for part in parts]) for rank in range(max(map(len, parts)))]
    best = ranked[0]
    return Translation(
        best.text, best.score, best.log_prob, best.tokens, best.source_tokens, best.words, best.alignment, ranked[1:]
    )


def join_rank(parts: list[Translation]) -> Translation:
    if len(parts) == 1:
        return parts[0]
    alignment: list[tuple[int, int]] = []
    source_words = target_words = 0
    for part in parts:
        alignment += [(source_words + s, target_words + t) for s, t in part.alignment or []]
        source_words += part.words[0]
        target_words += part.words[1]
    return Translation(
        text=" ".join(part.text for part in parts),
        score=sum(part.score for part in parts),
        log_prob=sum(part.log_prob for part in parts),
        tokens=[token for part in parts for token in part.tokens],
        source_tokens=[token for part in parts for token in part.source_tokens],
        words=(source_words, target_words),
        alignment=alignment if parts[0].alignment is not None else None,
    )


def count_words(tokenizer: Tokenizer, ids: Sequence[int]) -> int:
    return max(tokenizer.words(ids), default=-1) + 1
