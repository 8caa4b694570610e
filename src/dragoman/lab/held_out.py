"""The sentences that all models are measured on: read once, cut by length, and looked for in the training data."""

import hashlib
import json
from typing import NamedTuple

from dragoman.errors import DataError
from dragoman.evaluation.scores import BOUNDS, ENOUGH, length_bounds
from dragoman.lab.asked import Asked
from dragoman.lab.memory import keep, recall
from dragoman.lab.results import HeldOut, Shown
from dragoman.text.check import leaks, read_table
from dragoman.text.corpus import Pair, check_alignment, fingerprint

SHOWN = (0.1, 0.5, 0.9)  # of the sentences by length: a short one, a middle one, a long one


class Sentences(NamedTuple):
    pairs: list[Pair]
    sha256: str
    bounds: tuple[int, ...]  # of the length buckets, in source words
    shown: list[int]  # which of them are shown with their attention


def read_test(asked: Asked) -> Sentences:
    corpus = asked.find(asked.test)
    check_alignment(corpus)
    pairs = list(corpus.pairs())
    if not any(pair.source.strip() and pair.target.strip() for pair in pairs):
        raise DataError("E-CMP-06", f"{' '.join(asked.test)} holds no sentence pair; give --test what to measure on")
    written = json.dumps(pairs, ensure_ascii=False).encode("utf-8", "surrogatepass")
    bounds = length_bounds([pair.source for pair in pairs])
    return Sentences(pairs, hashlib.sha256(written).hexdigest(), bounds, choose_shown(pairs))


def choose_shown(pairs: list[Pair]) -> list[int]:
    full = [i for i, pair in enumerate(pairs) if pair.source.strip()]
    by_length = sorted(full, key=lambda i: len(pairs[i].source.split()))
    return list(dict.fromkeys(by_length[int(share * len(by_length))] for share in SHOWN))


def describe_test(asked: Asked, test: Sentences) -> HeldOut:
    """What the report says about the test set; the training data is read for it once."""
    path = asked.folder / "test.json"
    files = asked.find(asked.corpora).paths
    depends = {"named": asked.test, "test": test.sha256, "files": [fingerprint(file) for file in files]}
    known = recall(path, depends, HeldOut)
    if known:
        return known
    train, _ = read_table(asked.find(asked.corpora), None)
    other, _ = read_table(asked.find(asked.test), None)
    found = leaks(train, other)
    made = HeldOut(
        files=asked.test,
        sentences=len(test.pairs),
        sha256=test.sha256,
        in_training=sum(finding.count for finding in found),
        leak=" ".join(finding.sentence for finding in found),
        bounds=list(test.bounds),
        how=describe_bounds(test.bounds),
        shown=[Shown(*test.pairs[i]) for i in test.shown],
    )
    keep(path, depends, made)
    return made


def describe_bounds(bounds: tuple[int, ...]) -> str:
    if bounds == BOUNDS:
        return "the usual bounds; every bucket holds enough sentences"
    return (
        f"quarters of the test set by source length, since the usual bounds ({', '.join(map(str, BOUNDS))} words) "
        f"would leave a bucket with fewer than {ENOUGH} sentences"
    )
