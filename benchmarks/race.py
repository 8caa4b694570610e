"""What the benchmarks of training speed share: the same batches for all, and rounds that alternate."""

import json
import time
from collections.abc import Iterator, Mapping

import torch

from dragoman.text.batches import Batch, make_batch
from dragoman.text.special import SpecialIds

STEPS, ROUNDS = 6, 4


def batches(count: int, vocabulary: int) -> list[Batch]:
    """2,048 tokens each, of sentences of 8 to 23."""
    lengths = torch.randint(8, 24, (count,), generator=torch.Generator().manual_seed(0)).tolist()
    made = []
    for length in lengths:
        ids = torch.randint(4, vocabulary, (2048 // length, 2, length)).tolist()
        made.append(make_batch([(source, target) for source, target in ids], SpecialIds()))
    return made


def race(benchmark: str, cases: Mapping[str, Iterator[int]], against: str, steps: int = STEPS) -> None:
    """A case yields the tokens of each step it has made. The best round of each counts."""
    best = dict.fromkeys(cases, 0.0)
    for number in range(ROUNDS + 1):
        for name, case in cases.items():
            start = time.perf_counter()
            tokens = sum(next(case) for _ in range(steps))
            if number:  # the first round warms up
                best[name] = max(best[name], tokens / (time.perf_counter() - start))
    for name, speed in best.items():
        found = {"benchmark": benchmark, "case": name, "tokens/s": round(speed)}
        print(json.dumps(found | {"ratio": round(speed / best[against], 2)}), flush=True)
