"""From files of text to token ids on disk: look at the corpus, learn the tokenizers, write the index.

survey      count the pairs and keep a sample of them            one pass
encode      clean, tokenize, drop what is unfit, write the ids    one pass, a chunk at a time
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from dragoman.config import Settings
from dragoman.errors import DataError, SaveError, UsageError
from dragoman.runs.files import check_folder, save_failed, write_file, write_folder
from dragoman.text.check import odd_bytes
from dragoman.text.corpus import (
    AN_EMPTY_SIDE,
    Corpus,
    Dropped,
    Pair,
    check_alignment,
    keep,
    part_of,
    refuse_empty,
    share_for,
)
from dragoman.text.index import PairIndex, write_index
from dragoman.text.reading import is_utf8, old_line_ends
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers, learn_tokenizers, open_tokenizers

SAMPLE = 100_000  # pairs at least that the tokenizers are learned from, where there are so many; twice that at most
CHUNK = 10_000  # pairs encoded at a time
EARLY = 1_000_000  # pairs after which a corpus that is nearly all empty is not read on
HOPELESS = 0.99  # share of pairs with an empty side
SUSPICIOUS = 0.5  # share of pairs with equal sides, above which that is told
Notice = Callable[[str], None]


class DataConfig(Settings):
    longest: int = Field(
        256,
        gt=0,
        description="pairs with more tokens on a side are dropped; of a labelled text so many are learned from",
    )
    valid_pairs: int = Field(
        1000, gt=0, description="about how many pairs or texts are split off where no --valid is given"
    )
    max_empty: float = Field(0.05, ge=0, le=1, description="share of pairs with an empty side that is put up with")


class Survey(NamedTuple):
    """What is known of a corpus before it is tokenized."""

    pairs: int  # with both sides
    sample: list[Pair]  # cleaned, spread evenly over the corpus
    valid_share: float  # of the training corpus, set apart for validation; 0 where it has files of its own


class Prepared(NamedTuple):
    tokenizers: Tokenizers
    train: PairIndex
    valid: PairIndex
    valid_texts: list[Pair]


def survey(corpus: Corpus, has_valid: bool, config: DataConfig) -> Survey:
    """Read everything once, keep every 2ⁿ-th pair: enough to plan by, never too much to hold."""
    check_alignment(corpus, "Nothing was trained. ")
    dropped, sample, stride, line, looked = Dropped(), list[Pair](), 1, 0, 0
    for line, raw in enumerate(corpus.pairs(), start=1):
        if line % stride:
            continue
        looked += 1
        if pair := keep(raw, line, dropped):
            sample.append(pair)
        if looked % EARLY == 0 and dropped.counts.get(AN_EMPTY_SIDE, 0) > HOPELESS * looked:
            refuse_empty(dropped, looked, config.max_empty)
        if len(sample) == 2 * SAMPLE:
            sample, stride = sample[::2], 2 * stride
    refuse_empty(dropped, looked, config.max_empty)
    pairs = line - round(line * sum(dropped.counts.values()) / max(1, looked))
    if pairs < 2:
        raise too_few(corpus, pairs)
    share = min(0.1, config.valid_pairs / pairs)
    return Survey(pairs, sample, 0.0 if has_valid else share_for([pair.source for pair in sample], share))


def too_few(corpus: Corpus, pairs: int) -> DataError:
    names = ", ".join(str(path) for path in corpus.paths)
    why = " ".join(filter(None, map(old_line_ends, corpus.text_files)))
    return DataError(
        "E-DATA-10",
        f"{names}: {pairs} pair{'' if pairs == 1 else 's'} with text on both sides, and two are the least to learn "
        f"from. {why or 'Give longer files, one sentence a line.'}",
    )


def prepare(
    run: Path,
    corpus: Corpus,
    valid: Corpus | None,
    surveyed: Survey,
    tokenizer: TokenizerConfig | Tokenizers,
    config: DataConfig,
    notice: Notice,
) -> Prepared:
    """Learn the tokenizers, unless they are given, and write both indexes; the validation part first."""
    tokenizers = tokenizer if isinstance(tokenizer, Tokenizers) else learn_tokenizers(tokenizer, surveyed.sample)
    write_folder(run / "tokenizer", tokenizers.save)
    share = surveyed.valid_share
    chosen = numbered(valid) if valid else ((n, p) for n, p in numbered(corpus) if part_of(p.source) < share)
    dropped = Dropped()
    texts = encode_valid(run / "data", chosen, tokenizers, config, dropped)
    if not texts:
        raise nothing_left("E-DATA-11", "to validate with", valid or corpus, dropped, config)
    for sentence in dropped.sentences():
        notice(
            f"of the {'validation data' if valid else 'part split off for validation'}, {sentence}; dropped as pairs"
        )
    dropped = Dropped()
    rest = numbered(corpus, dropped)
    rest = rest if valid else ((n, p) for n, p in rest if part_of(p.source) >= share)
    sources = {pair.source for pair in texts}
    index = encode_corpus(run / "data" / "train", rest, tokenizers, config, dropped, sources)
    if len(index) == 0:
        raise nothing_left("E-DATA-10", "to learn from", corpus, dropped, config)
    tell(index.about, notice)
    return open_prepared(run)


def nothing_left(id: str, use: str, corpus: Corpus, dropped: Dropped, config: DataConfig) -> DataError:
    """Why not, and what can be done about it."""
    names = ", ".join(str(path) for path in corpus.paths)
    too_long = any(reason == over(config) for reason in dropped.counts)
    way = f"raise the limit, as by --set data.longest={4 * config.longest}" if too_long else "give more pairs"
    why = "; ".join(dropped.sentences()) or "there is none, or all have the same source, and equal ones stay together"
    return DataError(id, f"{names}: no pair is left {use}: {why}; {way}{', or give --valid files' * (id[-1] == '1')}")


def over(config: DataConfig) -> str:
    return f"more than {config.longest:,} tokens on a side"


def numbered(corpus: Corpus, dropped: Dropped | None = None) -> Iterator[tuple[int, Pair]]:
    return enumerate(corpus.pairs(dropped), start=1)


def open_prepared(run: Path) -> Prepared:
    check_folder(run / "tokenizer")
    train, valid = PairIndex(run / "data" / "train"), PairIndex(run / "data" / "valid")
    try:
        texts = [Pair(*pair) for pair in json.loads((run / "data" / "valid.json").read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        raise DataError("E-DATA-08", f"{run / 'data' / 'valid.json'} is damaged; begin anew with --fresh") from None
    return Prepared(open_tokenizers(run / "tokenizer"), train, valid, texts)


def encode_valid(
    folder: Path, pairs: Iterator[tuple[int, Pair]], tokenizers: Tokenizers, config: DataConfig, dropped: Dropped
) -> list[Pair]:
    """The validation part as ids, and as the texts that outputs are compared with."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise SaveError("E-SAVE-01", save_failed(folder, problem)) from problem
    kept = [(line, pair) for line, raw in pairs if (pair := keep(raw, line, dropped))]
    texts = [pair for _, pair in kept]
    write_file(folder / "valid.json", json.dumps(texts, ensure_ascii=False))
    index = encode_corpus(folder / "valid", iter(kept), tokenizers, config, dropped, set())
    return texts if len(index) else []


def encode_corpus(
    folder: Path,
    pairs: Iterator[tuple[int, Pair]],
    tokenizers: Tokenizers,
    config: DataConfig,
    dropped: Dropped,
    sources: set[str],
) -> PairIndex:
    """Write the ids of all fit pairs. `sources` are the validation's: those met again here are counted."""
    about, counts = dict[str, Any](), Counter[str]()

    def chunks() -> Iterator[list[tuple[list[int], list[int]]]]:
        while chunk := list(islice(pairs, CHUNK)):
            clean_pairs = [(line, pair) for line, raw in chunk if (pair := keep(raw, line, dropped))]
            counts["read"] += len(chunk)
            counts["leaked"] += sum(pair.source in sources for _, pair in clean_pairs)
            counts["equal"] += sum(pair.source == pair.target for _, pair in clean_pairs)
            yield list(encode_chunk(clean_pairs, tokenizers, config, dropped, counts))
        about.update(counts, dropped=dropped.sentences())  # known only now; written after the last chunk

    size = max(len(tokenizers.source), len(tokenizers.target))
    return write_index(folder, chunks(), size, about)


def encode_chunk(
    pairs: list[tuple[int, Pair]], tokenizers: Tokenizers, config: DataConfig, dropped: Dropped, counts: Counter[str]
) -> Iterator[tuple[list[int], list[int]]]:
    sources = tokenizers.source.encode([pair.source for _, pair in pairs])
    targets = tokenizers.target.encode([pair.target for _, pair in pairs])
    special = tokenizers.special
    for (line, _), source, target in zip(pairs, sources, targets, strict=True):
        short, long = sorted((len(source), len(target)))
        if long > config.longest:
            dropped.add(over(config), line)
        elif short == 0:
            dropped.add("a side without a token", line)
        else:
            counts["source_tokens"] += len(source)
            counts["target_tokens"] += len(target)
            counts["unknown"] += source.count(special.unknown) + target.count(special.unknown)
            yield source, target


def check_vocabulary(asked: Mapping[str, Any], tokenizers: Tokenizers, notice: Notice) -> None:
    """Tell where the number of subwords that was asked for cannot be had; fewer than there are letters is refused."""
    if "vocabulary" not in asked:
        return
    wanted = int(asked["vocabulary"])
    for tokenizer in dict.fromkeys((tokenizers.source, tokenizers.target)):
        if tokenizer.kind in ("words", "characters"):
            notice(f"tokenizer.vocabulary = {wanted:,} is about subwords, and these tokens are {tokenizer.kind}")
        elif len(tokenizer) > wanted:
            raise UsageError(
                "E-TOK-04",
                f"tokenizer.vocabulary = {wanted:,} is too small for the letters of this text, which need "
                f"{len(tokenizer):,}; give as many or more, or leave it out",
            )
        elif len(tokenizer) < wanted:
            notice(f"{wanted:,} subwords were asked for, and the text gives {len(tokenizer):,}")


def tell_odd_bytes(paths: Iterable[Path], encoding: str, notice: Notice, *, keep_spaces: bool = False) -> None:
    """What stands in files of text and is not text. To count bytes takes little time beside reading them as text."""
    for path in dict.fromkeys(paths):
        for finding in odd_bytes(path, is_utf8(encoding), keep_spaces=keep_spaces):
            notice(finding.sentence.removesuffix("."))


def tell(about: dict[str, Any], notice: Notice) -> None:
    """Say what was dropped, and what looks wrong with what was kept."""
    for sentence in about["dropped"]:
        notice(f"{sentence}; dropped as pairs")
    if about.get("leaked"):
        notice(f"{about['leaked']:,} training pairs have a source that also stands in the validation data")
    if about.get("equal", 0) > SUSPICIOUS * about["read"]:
        share = about["equal"] / about["read"]
        notice(f"{share:.0%} of the pairs have equal sides; was a file given twice, or is the text untranslated?")
    unknown, tokens = about.get("unknown", 0), about.get("source_tokens", 0) + about.get("target_tokens", 0)
    if unknown > 0.01 * tokens:
        notice(f"{unknown / tokens:.1%} of the tokens are unknown to the tokenizer; was the text split by another one?")
