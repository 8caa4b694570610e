"""Parallel text of any format as pairs of sentences, one after another, the files never held in memory.

    kind     what one is                                              what a line gives
    plain    two files, line n beside line n                          the two lines
    tsv      source<TAB>target, further columns ignored               the first two cells
    jsonl    {"translation": {"de": …, "en": …}}, or {"src", "tgt"}   the two texts
    tmx      a translation memory                                     the two languages of a unit

`find_corpus` tells the kind from the files' endings, `Corpus.pairs` reads it as often as asked. The text comes raw and
a pair with an empty side is a pair, so that line numbers stay true; `keep` cleans and drops.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dragoman.errors import DataError, UsageError
from dragoman.text.drift import LARGEST_REACH, Drift, find_drift, trace
from dragoman.text.reading import (
    clean,
    is_compressed,
    old_line_ends,
    read_blocks,
    read_lines,
    refuse_encoding,
    refuse_missing,
)
from dragoman.text.tmx import read_tmx, tmx_languages

Kind = Literal["plain", "tsv", "jsonl", "tmx"]
KINDS: dict[str, Kind] = {".tsv": "tsv", ".jsonl": "jsonl", ".tmx": "tmx"}
FOREIGN = {".csv", ".json", ".parquet", ".xlsx", ".ods", ".docx", ".pdf", ".zip", ".xliff", ".xlf", ".po"}
FLAT_KEYS = (("src", "tgt"), ("source", "target"))
EXPECTED = "Expected: SOURCE TARGET (two line-aligned files), several such pairs, or any number of .tsv, .jsonl or .tmx"
FEW = 1000  # sources among which nearly surely some are set apart
AN_EMPTY_SIDE = "an empty side"
ONE_LANGUAGE = "only one of the two languages"
ISO_639_1 = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en "
    "eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv "
    "ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne "
    "ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st "
    "su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
LANGUAGES = frozenset(ISO_639_1.split())


class Pair(NamedTuple):
    source: str
    target: str


@dataclass
class Dropped:
    """Why pairs, or other things, were left out: how many for each reason, and where the first one stood."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    thing: str = "pair"

    def add(self, reason: str, line: int) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self.first.setdefault(reason, line)

    def sentences(self) -> list[str]:
        return [
            f"{count:,} {self.thing}{' has' if count == 1 else 's have'} {reason} (first: line {self.first[reason]:,})"
            for reason, count in self.counts.items()
        ]


class Part(NamedTuple):
    """One corpus of the kinds above: two files if it is plain, else one."""

    kind: Kind
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Corpus:
    parts: tuple[Part, ...]
    source_language: str | None = None
    target_language: str | None = None
    encoding: str = "utf-8"

    def pairs(self, dropped: Dropped | None = None) -> Iterator[Pair]:
        """All pairs of all parts, raw, from the beginning; units of a TMX without both languages go to `dropped`."""
        dropped = Dropped() if dropped is None else dropped
        for part in self.parts:
            yield from self.read(part, dropped)

    def read(self, part: Part, dropped: Dropped) -> Iterator[Pair]:
        source, target = self.wanted(part)
        match part.kind:
            case "plain":
                return read_plain(part.paths[0], part.paths[1], self.encoding)
            case "tsv":
                return read_tsv(part.paths[0], self.encoding)
            case "jsonl":
                return read_jsonl(part.paths[0], self.encoding, source, target)
            case "tmx":
                return read_memory(part.paths[0], source, target, dropped)

    def wanted(self, part: Part) -> tuple[str | None, str | None]:
        """The languages to look for in a file of several: those given, else those of the first part, where the order
        of the keys may be another."""
        if part is self.parts[0] or part.kind in ("plain", "tsv"):
            return self.source_language, self.target_language
        return self.languages[0] or None, self.languages[1] or None

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(path for part in self.parts for path in part.paths)

    @property
    def text_files(self) -> tuple[Path, ...]:
        """Those that are read line by line; a translation memory is not."""
        return tuple(path for part in self.parts if part.kind != "tmx" for path in part.paths)

    @property
    def name(self) -> str:
        """A short name for a run's folder: train.de.gz and train.en.gz are `train-de-en`."""
        first = re.sub(r"\W+", "-", name_of(self.parts[0])).strip("-") or "corpus"
        return first if len(self.parts) == 1 else f"{first}-and-{len(self.parts) - 1}-more"

    @cached_property
    def languages(self) -> tuple[str, str]:
        """Source and target language as given, else as names or contents of the first part show; "" where unclear."""
        source, target = self.guess_languages(self.parts[0])
        return self.source_language or source, self.target_language or target

    @cached_property
    def sides(self) -> tuple[str, str]:
        """What the two sides are called where people read it: by language, else by file, column or key."""
        part = self.parts[0]
        match part.kind:
            case "plain":
                names = (part.paths[0].name, part.paths[1].name)
            case "tsv":
                names = ("first column", "second column")
            case "jsonl":
                names = jsonl_keys(part.paths[0], self.encoding, self.source_language, self.target_language)
            case "tmx":
                names = ("source", "target")
        return self.languages[0] or names[0], self.languages[1] or names[1]

    def guess_languages(self, part: Part) -> tuple[str, str]:
        match part.kind:
            case "plain":
                return language_of(part.paths[0]), language_of(part.paths[1])
            case "tsv":
                return languages_in(plain_name(part.paths[0]))
            case "jsonl":
                keys = jsonl_keys(part.paths[0], self.encoding, self.source_language, self.target_language)
                return ("", "") if keys in FLAT_KEYS else keys
            case "tmx":
                return tmx_languages(part.paths[0], self.source_language, self.target_language)


def find_corpus(
    arguments: Sequence[str | Path],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    encoding: str = "utf-8",
) -> Corpus:
    """The corpora that a user's list of files means; files of no known meaning, or that do not exist, are refused."""
    paths = [Path(argument) for argument in arguments]
    refuse_encoding(encoding)
    for path in paths:
        refuse_missing(path)
    return Corpus(find_parts(paths), source_language, target_language, encoding)


def is_lone_text(arguments: Sequence[str | Path]) -> bool:
    """One plain file: there is no other side to it."""
    return len(arguments) == 1 and ending_of(Path(arguments[0])) not in {*KINDS, *FOREIGN}


def find_parts(paths: Sequence[Path]) -> tuple[Part, ...]:
    kinds = [KINDS.get(ending_of(path), "plain") for path in paths]
    foreign = next((path for path in paths if ending_of(path) in FOREIGN), None)
    if foreign is not None:
        raise UsageError("E-USE-01", f"{foreign} is of a kind that is not read here; save it as .tsv. {EXPECTED}.")
    if not paths:
        raise UsageError("E-USE-01", f"no files were given. {EXPECTED}.")
    if "plain" not in kinds:
        return tuple(Part(kind, (path,)) for kind, path in zip(kinds, paths, strict=True))
    names = " ".join(path.name for path in paths)
    if len(set(kinds)) > 1:
        raise UsageError("E-USE-01", f"plain files and corpora cannot be mixed ({names}). {EXPECTED}.")
    if len(paths) % 2:
        number = "one plain file has" if len(paths) == 1 else f"{len(paths)} plain files have"
        raise UsageError("E-USE-01", f"{number} no partner ({names}). {EXPECTED}.")
    return tuple(Part("plain", pair) for pair in zip(paths[::2], paths[1::2], strict=True))


# ---- names


def plain_name(path: Path) -> str:
    """The file's name without the endings that say how it is packed or written."""
    name = path.stem if is_compressed(path) else path.name
    return re.sub(r"\.(tsv|jsonl|tmx|txt)$", "", name, flags=re.IGNORECASE)


def ending_of(path: Path) -> str:
    return Path(path.stem if is_compressed(path) else path.name).suffix.lower()


def name_of(part: Part) -> str:
    names = [plain_name(path) for path in part.paths]
    if len(names) == 1:
        return names[0]
    source, target = Path(names[0]), Path(names[1])
    return f"{source}-{target.suffix or target}" if source.stem == target.stem else f"{source}-{target}"


def language_of(path: Path) -> str:
    """`de` for corpus.de.gz; a region may follow, as in `pt-br`."""
    ending = plain_name(path).rpartition(".")[2].lower().replace("_", "-")
    return ending if is_language(ending) else ""


def is_language(name: str) -> bool:
    code = name.lower().replace("_", "-")
    return code.split("-")[0] in LANGUAGES and code.count("-") < 2


def languages_in(name: str) -> tuple[str, str]:
    """(de, en) for train.de-en; ("", "") where the name does not end so."""
    found = re.search(r"(?:^|[^a-z])([a-z]{2})[-_]([a-z]{2})$", name.lower())
    return (found[1], found[2]) if found and {found[1], found[2]} <= LANGUAGES else ("", "")


# ---- one reader for each kind


def read_plain(source: Path, target: Path, encoding: str) -> Iterator[Pair]:
    for ours, theirs in zip_longest(read_lines(source, encoding), read_lines(target, encoding)):
        if ours is None or theirs is None:
            raise misaligned(source, target, encoding)
        yield Pair(ours, theirs)


def read_tsv(path: Path, encoding: str) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path, encoding), start=1):
        cells = line.split("\t", 2)
        if len(cells) > 1:
            yield Pair(cells[0], cells[1])
        elif line:
            raise malformed(path, number, "has one column and no tab; each line is source<TAB>target")
        else:
            yield Pair("", "")  # a blank line, often the last one, is an empty pair and not worth an end


def read_jsonl(path: Path, encoding: str, source: str | None, target: str | None) -> Iterator[Pair]:
    keys: tuple[str, str] | None = None
    for number, line in enumerate(read_lines(path, encoding), start=1):
        if not line.strip():
            yield Pair("", "")
            continue
        texts = parse_row(path, number, line)
        keys = keys or choose_keys(path, texts, source, target)
        found: list[Any] = [texts.get(key) for key in keys]
        if not all(isinstance(text, str) for text in found):
            missing = next(key for key, text in zip(keys, found, strict=True) if not isinstance(text, str))
            keys_there = ", ".join(texts) or "none"
            raise malformed(
                path, number, f"has no text under {missing!r} (its keys: {keys_there}; see --src and --tgt)"
            )
        yield Pair(found[0], found[1])


def parse_row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise malformed(path, number, f"is not JSON ({problem})") from None
    texts = row.get("translation", row) if isinstance(row, dict) else None
    if not isinstance(texts, dict):
        raise malformed(path, number, 'is not {"translation": {…}} nor {"src": …, "tgt": …}')
    return texts


def choose_keys(path: Path, texts: dict[str, Any], source: str | None, target: str | None) -> tuple[str, str]:
    """The languages asked for, else flat keys, else the two that are language codes, else the two that hold text."""
    if source in texts and target in texts:
        return str(source), str(target)
    flat = next((keys for keys in FLAT_KEYS if keys[0] in texts and keys[1] in texts), None)
    if flat is not None:
        return flat
    written = [key for key, text in texts.items() if isinstance(text, str)]
    open_sides = (source, target).count(None)
    likely = likely_keys(texts, [key for key in written if key not in (source, target)], open_sides)
    if len(likely) > open_sides > 0:
        raise DataError(
            "E-DATA-05", f"{path} has text under {', '.join(written)}; choose two of them with --src and --tgt."
        )
    rest = iter(likely)
    return source or next(rest, "src"), target or next(rest, "tgt")


def likely_keys(texts: dict[str, Any], keys: list[str], wanted: int) -> list[str]:
    """Those that are language codes, if there are enough of them. `id` is Indonesian, but not over a lone word."""
    codes = [key for key in keys if is_language(key)]
    sure = [key for key in codes if key != "id" or " " in texts[key].strip()]
    return next((found for found in (sure, codes) if len(found) >= wanted), keys)


def jsonl_keys(path: Path, encoding: str, source: str | None, target: str | None) -> tuple[str, str]:
    """Those of the first line that has any."""
    for number, line in enumerate(read_lines(path, encoding), start=1):
        if line.strip():
            return choose_keys(path, parse_row(path, number, line), source, target)
    return "", ""


def read_memory(path: Path, source: str | None, target: str | None, dropped: Dropped) -> Iterator[Pair]:
    for number, texts in enumerate(read_tmx(path, source, target), start=1):
        if texts is None:
            dropped.add(ONE_LANGUAGE, number)
        else:
            yield Pair(*texts)


def malformed(path: Path, line: int, what: str) -> DataError:
    return DataError("E-DATA-05", f"{path}: line {line:,} {what}. Mend or remove that line.")


# ---- do the two sides pair up?


LOOKED_AT = 200_000  # lines in which a drift is looked for before training: a second or two


def count_lines(path: Path) -> int:
    """As many as `read_lines` gives: a last line without a line feed is a line."""
    lines, block = 0, b"\n"
    for block in read_blocks(path):
        lines += block.count(b"\n")
    return lines + (not block.endswith(b"\n"))


def check_alignment(corpus: Corpus, consequence: str = "") -> None:
    """Raises E-DATA-01 where two plain files have different numbers of lines; asked before any work."""
    for part in corpus.parts:
        if part.kind == "plain" and len({count_lines(path) for path in part.paths}) > 1:
            raise misaligned(part.paths[0], part.paths[1], corpus.encoding, consequence)


def misaligned(source: Path, target: Path, encoding: str, consequence: str = "") -> DataError:
    ends = [why for why in map(old_line_ends, (source, target)) if why]
    counts = [count_lines(path) for path in (source, target)]
    most = min(counts) + LARGEST_REACH + 1  # of the longer one the rest has no partner, and may be without end
    beginnings = (islice(read_lines(path, encoding), most) for path in (source, target))
    drift = None if ends else find_drift(*map(trace, beginnings))
    return DataError(
        "E-DATA-01",
        f"{source} has {counts[0]:,} lines, {target} has {counts[1]:,}. "
        f"{' '.join(ends) or describe(drift)} {consequence}"
        f"See: dragoman data check {shlex.quote(str(source))} {shlex.quote(str(target))}",
    )


def drifting(corpus: Corpus) -> Iterator[str]:
    """A sentence about two plain files with equally many lines that drift apart all the same, as where each has lost a
    line somewhere else. Only the first of a large corpus are looked at: this is said before it is trained on."""
    for part in corpus.parts:
        if part.kind != "plain":
            continue
        source, target = part.paths[:2]
        beginnings = (islice(read_lines(path, corpus.encoding), LOOKED_AT) for path in (source, target))
        drift = find_drift(*map(trace, beginnings))
        if drift is not None:
            yield (
                f"{source} and {target} seem to drift apart near line {drift.line:,}, though they have equally many "
                f"lines; look there: dragoman data check {shlex.quote(str(source))} {shlex.quote(str(target))}"
            )


def describe(drift: Drift | None) -> str:
    if drift is None:
        return "No place is seen where pairs drift apart; look at the last lines first."
    differ = f"lengths differ by {drift.before:.0%} before it and by {drift.after:.0%} after it"
    return f"Pairs drift apart near line {drift.line:,} ({differ})."


# ---- what becomes of a pair


def keep(pair: Pair, line: int, dropped: Dropped) -> Pair | None:
    """The pair cleaned, or None with the reason noted. Both sides go together, so the rest stays aligned."""
    cleaned = Pair(clean(pair.source), clean(pair.target))
    if cleaned.source and cleaned.target:
        return cleaned
    dropped.add(AN_EMPTY_SIDE, line)
    return None


def refuse_empty(dropped: Dropped, pairs: int, limit: float = 0.05) -> None:
    """Raises E-DATA-02 where too many pairs have an empty side to be an accident."""
    count = dropped.counts.get(AN_EMPTY_SIDE, 0)
    if count > limit * pairs:
        raise DataError(
            "E-DATA-02",
            f"{count:,} of {pairs:,} pairs have an empty side (first: line {dropped.first[AN_EMPTY_SIDE]:,}), "
            f"more than {limit:.0%}. Are these the right files? If so, raise the limit: --set data.max_empty=1.",
        )


def fingerprint(path: Path) -> str:
    """sha256 of the file as it lies on the disk; of a folder, of the names and hashes of all that is in it."""
    if path.is_dir():
        listed = "".join(f"{file.relative_to(path)} {fingerprint(file)}\n" for file in files_in(path))
        return hashlib.sha256(listed.encode()).hexdigest()
    refuse_missing(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def share_for(sources: Sequence[str], share: float) -> float:
    """The share to set apart. A few sources may all fall on one side of it: then it is moved, so that the first of them
    by its hash is set apart, and the others are not."""
    if len({part_of(source) < share for source in islice(sources, FEW)}) > 1:
        return share
    places = sorted({part_of(source) for source in sources})
    if len(places) < 2 or places[0] < share <= places[-1]:
        return share
    return (places[0] + places[1]) / 2


def part_of(source: str, seed: int = 0) -> float:
    """A number in [0, 1) that depends on the source sentence alone: equal sources fall into the same part."""
    digest = hashlib.blake2b(clean(source).encode("utf-8"), digest_size=8, salt=seed.to_bytes(16, "big", signed=True))
    return (int.from_bytes(digest.digest()) >> 11) / (1 << 53)
