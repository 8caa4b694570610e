"""Question: how do time and memory grow with the work, in translating and in training?

    python benchmarks/speed_growth.py [--parts translating steps memory] [--lines 2000] [--rounds 3]

translating   `dragoman translate` of 1, N and 10 N lines, each a command in a process of its own, in turn; the 10 N are
              the N ten times. Time of one line is start-up, and taken away. A small model that has hardly learned.
steps         seconds a target token in steps of 1,024 to 8,192 of them, sentences of 16, preset small, AdamW
memory        the most that a process holds which trains `base` with 4,096 target tokens a step, AdamW
"""

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from peers import Ask, Peer, race, tell
from runs import DRAGOMAN, lines
from speed_training import DROPOUT, SMOOTHING, timed

PARTS = ("translating", "steps", "memory")
STEPS = 30  # that the small model learns
LONGER = 10  # times the lines
MOST_TIMES, MOST_GROWTH = 10.5, 10.0  # times the time, and MB more, that so many lines may take
LENGTH = 16  # tokens on each side of a training pair, <end> counted
SIZES = (1024, 2048, 4096, 8192)  # target tokens a step
MOST_A_TOKEN = 1.1  # of the largest steps' seconds a token over the smallest ones'
BASE_TOKENS, MOST_GIB = 4096, 3.0
VOCABULARY = {"small": 8000, "base": 16_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="target tokens a step")
    options = parser.parse_args()
    if "translating" in options.parts:
        measure_translating(options.lines, options.rounds)
    if "steps" in options.parts:
        measure_steps(options.sizes, options.rounds)
    if "memory" in options.parts:
        measure_memory()


# ── translating ───────────────────────────────────────────────────────────────────────────


class Spent(NamedTuple):
    """What one command took."""

    seconds: float
    cpu: float  # seconds, over all threads
    megabytes: float  # at most


def measure_translating(count: int, rounds: int) -> None:
    with TemporaryDirectory() as scratch:
        run, files = write_inputs(Path(scratch), (1, count, LONGER * count))
        output = Path(scratch) / "output.txt"
        spent: dict[int, list[Spent]] = {number: [] for number in files}
        for _ in range(rounds):
            for number, file in files.items():
                spent[number].append(watch([*DRAGOMAN, "translate", run, "--input", file, "--output", output]))
    for number, found in spent.items():
        seconds, megabytes = median(one.seconds for one in found), median(one.megabytes for one in found)
        told = {"lines": number, "seconds": round(seconds, 2), "peak MB": round(megabytes, 1)}
        tell(benchmark="growth", **told)
    report_growth(*spent.values())


def report_growth(one: list[Spent], few: list[Spent], many: list[Spent]) -> None:
    def times(what: Callable[[Spent], float]) -> float:
        start = median(map(what, one))
        return (median(map(what, many)) - start) / (median(map(what, few)) - start)

    tell_limit("time of ten times the lines over that of the lines", times(lambda spent: spent.seconds), MOST_TIMES)
    tell_limit("the processor's, which neighbours hardly touch", times(lambda spent: spent.cpu), MOST_TIMES)
    more = median(spent.megabytes for spent in many) - median(spent.megabytes for spent in few)
    tell_limit("MB more for ten times the lines", more, MOST_GROWTH)


def tell_limit(case: str, found: float, most: float) -> None:
    tell(benchmark="growth", case=case, found=round(found, 2), **{"at most": most})


def write_inputs(folder: Path, counts: tuple[int, ...]) -> tuple[Path, dict[int, Path]]:
    """A small model, and files of so many lines; the longer ones repeat what the test part has."""
    corpus, run = folder / "corpus", folder / "run"
    few = counts[1]
    lines([*DRAGOMAN, "data", "make", "numbers", corpus, "--count", 5000, "--test", few, "--json"])
    train = [corpus / f"train.{side}" for side in ("source", "target")]
    sets = ["--set", "training.tokens_per_step=512", "--set", f"training.validate_every={STEPS}"]
    lines([*DRAGOMAN, "train", *train, "--preset", "small", "--steps", STEPS, *sets, "--out", run, "--json"])
    texts = (corpus / "test.source").read_text(encoding="utf-8").splitlines()
    files = {}
    for count in counts:
        files[count] = folder / f"{count}.txt"
        chosen = [texts[place % len(texts)] for place in range(count)]
        files[count].write_text("\n".join(chosen) + "\n", encoding="utf-8")
    return run, files


def watch(command: list[Any]) -> Spent:
    began = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command])
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)  # or Popen would wait for it once more
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return Spent(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


# ── training ──────────────────────────────────────────────────────────────────────────────


def measure_steps(sizes: list[int], rounds: int) -> None:
    peers = {str(tokens): Peer(step_peer, tokens, max(sizes)) for tokens in sizes}
    times = race(peers, rounds)
    for peer in peers.values():
        peer.stop()
    a_token = {int(tokens): median(several) for tokens, several in times.items()}
    for tokens, seconds in a_token.items():
        found = {"seconds a step": round(seconds * tokens, 3), "microseconds a token": round(1e6 * seconds, 1)}
        tell(benchmark="growth", **{"tokens a step": tokens}, **found)
    times_as_long = a_token[max(sizes)] / a_token[min(sizes)]
    tell_limit("time of a token in the largest steps over that in the smallest", times_as_long, MOST_A_TOKEN)


def measure_memory() -> None:
    peer = Peer(memory_peer, BASE_TOKENS)
    tell_limit(f"peak GiB of training base, {BASE_TOKENS:,} tokens a step", peer.ask(steps=3), MOST_GIB)
    peer.stop()


def step_peer(tokens: int, at_once: int) -> Ask:
    """Seconds a target token; every peer is asked for as many tokens."""
    step = trainer("small")
    ask = timed(step, [batch_of(tokens, "small", seed) for seed in range(4)])
    return lambda: ask(steps=max(1, at_once // tokens))


def memory_peer(tokens: int) -> Ask:
    step = trainer("base")

    def ask(steps: int) -> float:
        for seed in range(steps):
            step(batch_of(tokens, "base", seed))
        return peak_gib()

    return ask


def trainer(preset: str) -> Callable[[Any], None]:
    """What learns from a batch, as a run does."""
    from dragoman.jobs.machine import keep_memory

    keep_memory()
    from dragoman.models.transformer import PRESETS, Transformer, TransformerConfig
    from dragoman.training.loop import train
    from dragoman.training.micro_batches import cut
    from dragoman.training.objectives import TranslationLoss
    from dragoman.training.optimizers import make_optimizer
    from dragoman.training.team import team_size

    sizes = dict.fromkeys(("source_vocabulary", "target_vocabulary"), VOCABULARY[preset])
    model = Transformer(TransformerConfig.read({**PRESETS[preset], **sizes, "dropout": DROPOUT}, section="model"))
    optimizer, waiting = make_optimizer("adamw", model, 1e-4), list[Any]()
    steps = train(model, iter(waiting.pop, None), TranslationLoss(SMOOTHING), optimizer, rate=lambda _: 1e-4)

    def step(batch: Any) -> None:
        waiting.append(cut(batch, team_size()))
        next(steps)

    return step


def batch_of(tokens: int, preset: str, seed: int) -> Any:
    """Pairs of random tokens, all of one length."""
    import torch

    from dragoman.text.batches import make_batch
    from dragoman.text.special import SpecialIds

    generator = torch.Generator().manual_seed(seed)
    shape = (tokens // LENGTH, 2, LENGTH - 1)
    ids = torch.randint(4, VOCABULARY[preset], shape, generator=generator).tolist()
    return make_batch([(source, target) for source, target in ids], SpecialIds())


def peak_gib() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20


if __name__ == "__main__":
    main()
