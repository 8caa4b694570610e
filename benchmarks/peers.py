"""What races against peers share: each peer in a process of its own, asked in turn, medians and ratios of one run."""

import json
import multiprocessing
import traceback
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

Ask = Callable[..., float]  # a case's settings in, seconds out
Make = Callable[..., Ask]  # what a peer's process does first: load, and say how to ask it


class Peer:
    """A process that loads once and then answers, one question at a time. It waits without computing."""

    def __init__(self, make: Make, *given: Any) -> None:
        context = multiprocessing.get_context("spawn")  # nothing that this process has imported is in it
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=answer, args=(theirs, make, given), daemon=True)
        self.process.start()

    def ask(self, **case: Any) -> Any:
        self.line.send(case)
        found, problem = self.line.recv()
        if problem:
            raise RuntimeError(problem)
        return found

    def stop(self) -> None:
        self.line.send(None)
        self.process.join()


def answer(line: Any, make: Make, given: tuple[Any, ...]) -> None:
    ask = None
    while (case := line.recv()) is not None:
        try:
            ask = ask or make(*given)
            line.send((ask(**case), ""))
        except Exception:
            line.send((None, traceback.format_exc()))


def race(peers: Mapping[str, Peer], rounds: int, *, warming: int = 1, **case: Any) -> dict[str, list[float]]:
    """What each peer answered in each round; they take turns, and the first rounds only warm up."""
    times: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(warming + rounds):
        for name, peer in peers.items():
            found = peer.ask(**case)
            if number >= warming:
                times[name].append(found)
    return times


def ratio(times: Mapping[str, list[float]], ours: str, theirs: str) -> tuple[float, float, float]:
    """How many times as fast `ours` was, round by round: the median, the least and the most."""
    found = [b / a for a, b in zip(times[ours], times[theirs], strict=True)]
    return median(found), min(found), max(found)


def tell(**found: Any) -> None:
    print(json.dumps(found), flush=True)
