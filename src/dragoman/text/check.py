"""The data doctor: what is wrong with a corpus, where, and what to do about it.

One pass keeps 41 bytes of each pair (hashes, lengths, marks, signs) and never its text; every finding is then a
question to those columns. Hashes have 64 bits: the chance that any two of ten million different sentences are taken for
equal is one in four hundred thousand.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from dragoman.errors import DataError
from dragoman.text.corpus import Corpus, Dropped, Pair, Part, count_lines, misaligned
from dragoman.text.drift import Trace, find_drift, marks_of
from dragoman.text.reading import clean, count_returns, end_in_lf, is_utf8, read_blocks

Severity = Literal["error", "warning", "notice"]
SHOWN = 5  # line numbers given with a finding
EMPTY_LIMIT = 0.05  # share of pairs with an empty side that can still be an accident
LONG = 1000  # characters; a sentence has about a hundred
LOOK_THERE = "Look there for a line that is missing, added or split on one side."
SUBWORDS, ESCAPED, SPACED = 1, 2, 4  # signs, as bits


# What is wrong with the pairs of a finding, and what to do about it or why it may be left.
SENTENCES = {
    "empty-side": ("have an empty side", "They are dropped as pairs, so the rest stays aligned."),
    "too-empty": ("have an empty side", f"That is over {EMPTY_LIMIT:.0%}: are these the right files?"),
    "duplicate": ("are repetitions", "They only weigh more in training; drop them if that is not meant."),
    "several-targets": ("have further, different targets", "Usual for short sentences; a model learns the commonest."),
    "identical-sides": ("have equal sides", "Names may be equal; sentences are untranslated: drop them."),
    "odd-length": ("have odd lengths for this corpus", "One side may say more than the other; look at them."),
    "long": (f"are over {LONG:,} characters long", "Training leaves the longest out; split them into sentences."),
    "subwords": ("hold sub-word marks (“@@ ” or “▁”)", "Give raw text; dragoman splits words itself."),
    "escaped": ("hold HTML escapes (&quot; or the like)", "Undo them, or a model will learn to write them."),
    "tokenised": ("have spaces before full stops or commas", "They look tokenised; give raw text if you have it."),
}
SINGULAR = {"have": "has", "are": "is", "hold": "holds"}
AS_SPACES = "Here they are spaces; other tools may end a line there."
AS_THEY_ARE = "They are learned as they stand."
ODD_BYTES = (  # what becomes of them in a sentence, and in a text that keeps its white space
    (b"\0", "NUL characters", "They are left out.", AS_THEY_ARE),
    (b"\r\n", "lines that end in CR LF", "The CR is left out.", "The CR is left out."),
    (b"\r", "CR without LF", "Here they are spaces.", AS_THEY_ARE),
    (b"\xef\xbb\xbf", "byte order marks", "They are left out.", "One at the beginning is left out."),
    (b"\xe2\x80\xa8", "line separators (U+2028)", AS_SPACES, AS_THEY_ARE),
    (b"\xc2\x85", "next-line characters (U+0085)", AS_SPACES, AS_THEY_ARE),
)


@dataclass(frozen=True)
class Finding:
    kind: str
    severity: Severity
    count: int
    lines: tuple[int, ...]  # the first few, counted from 1 through all corpora
    sentence: str
    elsewhere: tuple[int, ...] = ()  # the same sentences' lines in the other corpus


class Report(NamedTuple):
    pairs: int
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        return 3 if any(finding.severity == "error" for finding in self.findings) else 0


class Columns:
    """What is kept of every pair, as arrays that grow."""

    def __init__(self) -> None:
        self.sources, self.targets = array("q"), array("q")  # hashes of the cleaned text
        self.source_lengths, self.target_lengths = array("I"), array("I")  # in characters
        self.source_marks, self.target_marks = array("Q"), array("Q")
        self.signs = array("B")

    def add(self, pair: Pair) -> None:
        source, target = clean(pair.source), clean(pair.target)
        self.sources.append(hash(source))
        self.targets.append(hash(target))
        self.source_lengths.append(len(source))
        self.target_lengths.append(len(target))
        self.source_marks.append(marks_of(source))
        self.target_marks.append(marks_of(target))
        self.signs.append(signs_of(source) | signs_of(target))


def signs_of(text: str) -> int:
    """Signs that somebody else's tokenizer has been here."""
    signs = 0
    if "@@ " in text or "▁" in text:
        signs |= SUBWORDS
    if "&" in text and ("&quot;" in text or "&apos;" in text or "&amp;" in text or "&#" in text):
        signs |= ESCAPED
    if text.endswith(" .") or " , " in text:  # French writes " !" and " ?", but nobody writes " ."
        signs |= SPACED
    return signs


class Table:
    """The columns as numpy arrays, and where each of their rows stands in the files."""

    def __init__(self, columns: Columns, parts: tuple[Part, ...], starts: list[int]) -> None:
        self.sources = np.array(columns.sources, np.int64)
        self.targets = np.array(columns.targets, np.int64)
        self.source = Trace(np.array(columns.source_lengths, np.uint32), np.array(columns.source_marks, np.uint64))
        self.target = Trace(np.array(columns.target_lengths, np.uint32), np.array(columns.target_marks, np.uint64))
        self.signs = np.array(columns.signs, np.uint8)
        self.parts, self.starts = parts, starts
        self.full = (self.source.lengths > 0) & (self.target.lengths > 0)

    def __len__(self) -> int:
        return len(self.sources)

    def place(self, row: int) -> str:
        """`line 812`, and of which file where there are several corpora."""
        part = int(np.searchsorted(self.starts, row, side="right")) - 1
        word = "pair" if self.parts[part].kind == "tmx" else "line"
        line = f"{word} {row - self.starts[part] + 1:,}"
        return line if len(self.parts) == 1 else f"{line} of {self.parts[part].paths[0]}"

    def find(self, kind: str, severity: Severity, rows: Bool[np.ndarray, " N"]) -> list[Finding]:
        """One finding about the marked rows, none where no row is marked."""
        marked = np.flatnonzero(rows)
        if not len(marked):
            return []
        what, advice = SENTENCES[kind]
        verb, _, rest = what.partition(" ")
        says = f"pair {SINGULAR[verb]}" if len(marked) == 1 else f"pairs {verb}"
        sentence = f"{len(marked):,} {says} {rest} (first: {self.place(int(marked[0]))}). {advice}"
        return [Finding(kind, severity, len(marked), first_lines(marked), sentence)]


def first_lines(rows: Int64[np.ndarray, " n"]) -> tuple[int, ...]:
    return tuple(int(row) + 1 for row in rows[:SHOWN])


def check(corpus: Corpus, *, against: Corpus | None = None, limit: int | None = None) -> Report:
    """All findings, the gravest first. `against` is a corpus that should have no sentence in common with this one."""
    table, findings = read_table(corpus, limit)
    for question in (empty_sides, duplicates, ambiguous_sources, identical_sides, odd_lengths, long_lines, tokenised):
        findings += question(table)
    findings += drifts(table, {finding.kind for finding in findings})
    for path in dict.fromkeys(corpus.text_files):
        findings += odd_bytes(path, is_utf8(corpus.encoding))
    if against is not None:
        other, problems = read_table(against, None)
        findings += problems + leaks(table, other)
    order: list[Severity] = ["error", "warning", "notice"]
    return Report(len(table), tuple(sorted(findings, key=lambda finding: order.index(finding.severity))))


def read_table(corpus: Corpus, limit: int | None) -> tuple[Table, list[Finding]]:
    """Every pair that can be read, and what kept the others from being read."""
    columns, dropped, starts = Columns(), Dropped(), []
    problems: dict[str, Finding] = {}
    for part in corpus.parts:
        starts.append(len(columns.sources))
        for problem in read_part(corpus, part, columns, dropped, limit):
            problems[problem.sentence] = explain(problem)
    findings = list(problems.values())
    for sentence, (reason, count) in zip(dropped.sentences(), dropped.counts.items(), strict=True):
        findings.append(
            Finding("one-language", "warning", count, (dropped.first[reason],), f"{sentence}. Such units are left out.")
        )
    table = Table(columns, corpus.parts, starts)
    if not len(table) and not findings:
        findings.append(Finding("nothing", "error", 0, (), f"{corpus.paths[0]} holds no pair. Is it the right file?"))
    return table, findings


def read_part(corpus: Corpus, part: Part, columns: Columns, dropped: Dropped, limit: int | None) -> Iterator[DataError]:
    """Fills the columns as far as the part can be read, and gives what is wrong with its files."""
    try:
        if part.kind == "plain":
            lines = [count_lines(path) for path in part.paths]
            limit = min(lines) if limit is None else min(*lines, limit)
            if lines[0] != lines[1]:
                yield misaligned(part.paths[0], part.paths[1], corpus.encoding)
    except DataError:
        pass  # reading the pairs meets it again
    try:
        for pair in islice(corpus.read(part, dropped), limit):
            columns.add(pair)
    except DataError as problem:
        yield problem


def explain(problem: DataError) -> Finding:
    if problem.id == "E-DATA-01":
        said = problem.sentence.partition(" See:")[0]
        return Finding("misaligned", "error", 1, (), f"{said} {LOOK_THERE}")
    return Finding(problem.id, "error", 1, (), f"{problem.sentence} What follows it was not checked.")


# ---- the questions


def empty_sides(table: Table) -> list[Finding]:
    if (~table.full).sum() > EMPTY_LIMIT * len(table):
        return table.find("too-empty", "error", ~table.full)
    return table.find("empty-side", "warning", ~table.full)


def repeated(table: Table) -> Bool[np.ndarray, " N"]:
    """Pairs that stood there before, both sides alike."""
    # without a factor, a pair and the same pair with its sides swapped would be one
    both = table.sources * np.int64(0x9E3779B97F4A7C1) ^ table.targets
    again = np.ones(len(table), bool)
    again[np.unique(both, return_index=True)[1]] = False
    return again & table.full


def duplicates(table: Table) -> list[Finding]:
    again = repeated(table)
    return table.find("duplicate", graver(again, 0.1), again)


def ambiguous_sources(table: Table) -> list[Finding]:
    distinct = np.flatnonzero(~repeated(table) & table.full)
    _, first, counts = np.unique(table.sources[distinct], return_index=True, return_counts=True)
    rows = np.zeros(len(table), bool)
    rows[distinct[first[counts > 1]]] = True
    return table.find("several-targets", "notice", rows)


def identical_sides(table: Table) -> list[Finding]:
    same = (table.sources == table.targets) & table.full
    return table.find("identical-sides", graver(same, 0.05), same)


def odd_lengths(table: Table) -> list[Finding]:
    """Pairs whose length ratio is far from the corpus's own median; ten characters are added to spare short lines."""
    if not table.full.any():
        return []
    ratio = np.log((table.target.lengths + 10.0) / (table.source.lengths + 10.0))
    usual = np.median(ratio[table.full])
    spread = 1.4826 * np.median(np.abs(ratio[table.full] - usual))  # as a standard deviation, but blind to outliers
    odd = (np.abs(ratio - usual) > max(np.log(2.5), 6 * spread)) & table.full
    return table.find("odd-length", graver(odd, 0.001), odd)


def long_lines(table: Table) -> list[Finding]:
    return table.find("long", "warning", np.maximum(table.source.lengths, table.target.lengths) > LONG)


def tokenised(table: Table) -> list[Finding]:
    subwords, escaped, spaced = (table.signs & sign > 0 for sign in (SUBWORDS, ESCAPED, SPACED))
    findings = table.find("subwords", "warning", subwords) + table.find("escaped", "warning", escaped)
    if spaced.sum() > 0.3 * len(table):  # a few are mere slips
        findings += table.find("tokenised", "warning", spaced)
    return findings


def graver(rows: Bool[np.ndarray, " N"], share: float) -> Severity:
    """A few such pairs are usual and worth a notice; more than this share of the corpus is a warning."""
    return "warning" if rows.sum() > share * len(rows) else "notice"


def drifts(table: Table, known: set[str]) -> list[Finding]:
    """Shifts within files of equal length: a line lost on one side and another one later on the other."""
    findings: list[Finding] = []
    for part, start, end in zip(table.parts, table.starts, [*table.starts[1:], len(table)], strict=True):
        if "misaligned" in known and part.kind == "plain":
            continue  # that finding says where
        source, target = (
            Trace(side.lengths[start:end], side.marks[start:end]) for side in (table.source, table.target)
        )
        drift = find_drift(source, target)
        if drift is not None:
            row = start + drift.line - 1
            sentence = f"From near {table.place(row)} on, {describe_shift(drift.shift)}. {LOOK_THERE}"
            findings.append(Finding("drift", "warning" if drift.shift is None else "error", 1, (row + 1,), sentence))
    return findings


def describe_shift(shift: int | None) -> str:
    if shift is None:
        return "sources and targets no longer fit"
    return f"targets stand {abs(shift)} {'line' if abs(shift) == 1 else 'lines'} too {'low' if shift > 0 else 'high'}"


def odd_bytes(path: Path, utf8: bool, *, keep_spaces: bool = False) -> list[Finding]:
    """What stands in the file and is not text: notices, but for line ends that end no line."""
    counts, first, lines = Counter[bytes](), dict[bytes, int](), 0
    try:
        for block in read_blocks(path):
            for odd, found in count_odd(block, utf8):
                first.setdefault(odd, lines + block.count(b"\n", 0, find_odd(block, odd)) + 1)
                counts[odd] += found
            lines += block.count(b"\n")
    except DataError:
        pass  # told already by the reading of pairs
    findings = []
    for odd, name, in_sentences, in_texts in ODD_BYTES:
        if counts[odd]:
            fate = in_texts if keep_spaces else in_sentences
            ends = odd == b"\r" and counts[odd] > lines
            advice = f"Only LF ends a line. {end_in_lf(path)}." if ends else fate
            sentence = f"{path} has {counts[odd]:,} {name} (first: line {first[odd]:,}). {advice}"
            severity: Severity = "error" if ends else "notice"
            findings.append(Finding("odd-bytes", severity, counts[odd], (first[odd],), sentence))
    return findings


def count_odd(block: bytes, utf8: bool) -> Iterator[tuple[bytes, int]]:
    for odd, *_ in ODD_BYTES:
        if utf8 or odd.isascii():
            found = count_returns(block) if odd == b"\r" else block.count(odd)
            if found:
                yield odd, found


def find_odd(block: bytes, odd: bytes) -> int:
    lone = re.search(rb"\r(?!\n)", block) if odd == b"\r" else None
    return lone.start() if lone else block.find(odd)


def leaks(table: Table, other: Table) -> list[Finding]:
    """Sources of the other corpus that stand in this one too."""
    shared = np.flatnonzero(np.isin(other.sources, table.sources) & other.full)
    if not len(shared):
        return []
    here = [int(np.flatnonzero(table.sources == other.sources[row])[0]) for row in shared[:SHOWN]]
    sentence = (
        f"{len(shared):,} of {len(other):,} sources of {other.parts[0].paths[0]} "
        f"also stand in {table.parts[0].paths[0]} "
        f"(first: {other.place(int(shared[0]))} there, {table.place(here[0])} here). "
        f"Take them out of one of the two, or scores will flatter."
    )
    lines = tuple(row + 1 for row in here)
    return [Finding("leak", "warning", len(shared), lines, sentence, elsewhere=first_lines(shared))]
