"""Question: what does a shortlist save? In one run, whole vocabulary and lists in turn.

    python benchmarks/speed_shortlist.py [--rounds 9]

A base model with random weights, 32,000 tokens, int8, two threads together; sources of 20 tokens, 24 steps of greedy
search. Lists of 500, 1,000 and 2,000 tokens a sentence, and making them is part of the time.
"""

import argparse
import json
import statistics
import time

import numpy as np
import torch

from dragoman import models
from dragoman.decoding.engine import Engine
from dragoman.models.transformer import TransformerConfig
from dragoman.text.shortlist import Shortlist

VOCABULARY, SOURCE, STEPS = 32_000, 20, 24
START, END = 2, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    torch.manual_seed(0)
    config = TransformerConfig(source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
    whole = Engine(models.build(config).eval(), "int8")
    ways = {"all": whole} | {str(size): whole.with_shortlist(list_of(size)) for size in (500, 1000, 2000)}
    ways = {name: engine.with_threads(2, settled=True) for name, engine in ways.items()}
    for sentences in (1, 8, 32):
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(asked.rounds + 1):
            for name, engine in ways.items():
                took = seconds_of(engine, sentences)
                if turn:  # the first one wakes it up
                    seconds[name].append(took)
        for name, found in seconds.items():
            ratios = [a / b for a, b in zip(seconds["all"], found, strict=True)]
            about = {"benchmark": "shortlist", "sentences": sentences, "tokens": name}
            faster = {"ms": round(1000 * statistics.median(found), 1), "over all": round(statistics.median(ratios), 2)}
            print(json.dumps({**about, **faster, "spread": [round(min(ratios), 2), round(max(ratios), 2)]}), flush=True)


def list_of(size: int) -> Shortlist:
    """The same tokens for every sentence, far apart."""
    always = np.union1d(np.random.default_rng(size).choice(VOCABULARY, size - 1, replace=False), [END])
    return Shortlist(always, np.zeros(VOCABULARY + 1, np.int64), np.zeros(0, np.int64), copies=False)


def seconds_of(engine: Engine, sentences: int) -> float:
    sources = torch.randint(4, VOCABULARY, (sentences, SOURCE))
    start = time.perf_counter()
    state, tokens = engine.encode(sources, torch.ones_like(sources, dtype=torch.bool)), np.full((sentences, 1), START)
    for _ in range(STEPS):
        found, state = engine.propose(tokens, state, 1, END, (0, 1, START))
        tokens = found.tokens
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
