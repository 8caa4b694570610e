"""Corpora without a download: pairs drawn from grammars of our own, in which every source has one right answer.

    dates      the 15th of November 2026    →  2026-11-15
    numbers    dreiundfünfzig               →  53
    copy       k 3 b                        →  k 3 b
    reverse    k 3 b                        →  b 3 k

Several kinds in one corpus, `copy+reverse`, are told apart by their names before each source: `reverse: k 3 b`.

A kind is one function that draws a pair. Since a source has one answer, the answer says what the pair is about: all the
ways to write a date, in any language, share one target. So to hold out a date, a number or a sequence is to hold out
its target, and what is held out stands in the training part in no form whatever.
"""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from random import Random
from zlib import crc32

from dragoman.errors import UsageError
from dragoman.text.generated.dates import draw_date
from dragoman.text.generated.numbers import draw_number
from dragoman.text.generated.sequences import draw_copy, draw_reverse

Pair = tuple[str, str]  # source, target
Draw = Callable[[Random], Pair]

KINDS: dict[str, Draw] = {
    "dates": draw_date,
    "numbers": draw_number,
    "copy": draw_copy,
    "reverse": draw_reverse,
}

PATIENCE = 1000  # draws in a row that bring nothing new, before a kind counts as exhausted


def generate(kind: str, *, count: int, seed: int, held_out: int) -> tuple[list[Pair], list[Pair]]:
    """Draw `count` pairs with different sources to train on, and `held_out` pairs whose targets are not among theirs.

    The held-out targets all differ from one another. The same seed gives the same pairs, in any process.
    """
    rng = Random(f"{seed}/{kind}")  # a string seeds through SHA-512, not through Python's changing hash
    pairs = draw_forever(find_kind(kind), rng)
    apart = take_different(held_out, (pair for pair in pairs if may_be_held_out(pair[1], seed)), target_of, kind)
    hidden = {target for _, target in apart}
    train = take_different(count, (pair for pair in pairs if pair[1] not in hidden), source_of, kind)
    # the few short items run out first and would all stand at the beginning
    rng.shuffle(train)
    rng.shuffle(apart)
    return train, apart


def write_corpus(kind: str, out: Path, *, count: int, valid: int, test: int, seed: int) -> list[Path]:
    """Write `train`, `valid` and `test`, each as a `.source` and a `.target` whose lines pair up; of several kinds so
    many pairs each, and also a `test` of each kind.

    No two parts of a kind share a target, so none of what is tested was trained on in any form.
    """
    kinds = kind.split("+")
    for one in kinds:
        find_kind(one)
    refuse_numbers({"count": (count, 1), "valid": (valid, 0), "test": (test, 0)})
    several = [f"test-{one}" for one in kinds] if len(kinds) > 1 else []
    parts: dict[str, list[Pair]] = {part: [] for part in ("train", "valid", "test", *several)}
    paths = [out / f"{part}.{side}" for part in parts for side in ("source", "target")]
    refuse_to_overwrite(out, paths)
    for one in kinds:
        train, apart = generate(one, count=count, seed=seed, held_out=valid + test)
        if several:
            train, apart = with_prefix(one, train), with_prefix(one, apart)
            parts[f"test-{one}"] = apart[valid:]
        parts["train"] += train
        parts["valid"] += apart[:valid]
        parts["test"] += apart[valid:]
    sides = [[pair[side] for pair in pairs] for pairs in parts.values() for side in (0, 1)]
    out.mkdir(parents=True, exist_ok=True)
    for path, lines in zip(paths, sides, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return paths


def with_prefix(kind: str, pairs: list[Pair]) -> list[Pair]:
    return [(f"{kind}: {source}", target) for source, target in pairs]


def find_kind(kind: str) -> Draw:
    if kind not in KINDS:
        (nearest,) = get_close_matches(kind, KINDS, n=1, cutoff=0.0)
        raise UsageError(
            "E-USE-02",
            f"there is no kind of generated data called {kind!r}; did you mean {nearest!r}? "
            f"The kinds are {', '.join(KINDS)}",
        )
    return KINDS[kind]


def refuse_numbers(asked: dict[str, tuple[int, int]]) -> None:
    for name, (pairs, least) in asked.items():
        if pairs < least:
            raise UsageError("E-USE-04", f"{pairs} pairs were asked for ({name}); ask for {least} or more")


def refuse_to_overwrite(out: Path, paths: list[Path]) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError("E-USE-03", f"{out} is a file, and the corpus needs a folder; name another")
    there = [path.name for path in paths if path.exists()]
    if there:
        raise UsageError("E-USE-03", f"{out} already holds {', '.join(there)}; remove them or name another folder")


def may_be_held_out(target: str, seed: int) -> bool:
    """A fifth of all items, and none of the shortest.

    The names of numbers below a hundred are the words that all others are made of, and nobody can read a word never
    seen. A checksum picks the fifth, so that however much is held out, most of every length and year is left to learn.
    """
    return len(target) > 2 and crc32(f"{seed}/{target}".encode()) % 5 == 0


def draw_forever(draw: Draw, rng: Random) -> Iterator[Pair]:
    while True:
        yield draw(rng)


def take_different(wanted: int, pairs: Iterator[Pair], by: Callable[[Pair], str], kind: str) -> list[Pair]:
    """The first `wanted` pairs of which no two agree in what `by` names."""
    found: dict[str, Pair] = {}
    idle = 0
    while len(found) < wanted:
        pair = next(pairs)
        idle = idle + 1 if by(pair) in found else 0
        found.setdefault(by(pair), pair)
        if idle == PATIENCE:
            raise UsageError(
                "E-USE-04",
                f"{wanted:,} different pairs of {kind} were asked for, and after {len(found):,} no new one turned up; "
                f"ask for fewer",
            )
    return list(found.values())


def source_of(pair: Pair) -> str:
    return pair[0]


def target_of(pair: Pair) -> str:
    return pair[1]
