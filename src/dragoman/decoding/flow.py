"""Many sentences through one writer: as many at a time as it is quick with, and no place left empty.

waiting      those of like length are next to one another; a worker takes the next few when it has room for them
under way    a sentence that is over leaves at once, and the next ones take its place (continuous batching); where they
             cannot be joined to those under way, the next few begin when all are over
threads      each is a worker with sentences of its own; a lone sentence may have all of them, each with a part of every
             matrix
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple

import torch

from dragoman.decoding.beam import Hypothesis, Search, SearchConfig
from dragoman.text.batches import make_source
from dragoman.text.special import SpecialIds

REFILL = 4  # a worker takes more when a quarter of its places are free: a few sources are encoded together


class Waiting(NamedTuple):
    number: int  # which of all it is
    source: list[int]
    longest: int  # tokens its output may have


class Queue:
    """What nobody has taken yet. The longest come first: what is left at the end is short."""

    def __init__(self, waiting: Sequence[Waiting], workers: int) -> None:
        self.waiting = sorted(waiting, key=lambda one: len(one.source))  # taken from the end
        self.workers, self.lock = workers, Lock()

    def take(self, most: int) -> list[Waiting]:
        """The next few; near the end no more than a fair share, so that no worker is left with all of them."""
        with self.lock:
            fair = -(-len(self.waiting) // self.workers)
            count = min(most, max(1, fair)) if self.waiting else 0
            taken = self.waiting[len(self.waiting) - count :]
            del self.waiting[len(self.waiting) - count :]
            return taken[::-1]


Found = Iterator[tuple[int, list[Hypothesis]]]


def search_all(
    writer: Any, waiting: Sequence[Waiting], special: SpecialIds, config: SearchConfig, *, rows: int, threads: int = 1
) -> dict[int, list[Hypothesis]]:
    """The best hypotheses of every sentence, by its number; `rows` beginnings at a time for each thread."""
    width = max(config.beam, config.nbest)
    workers, team = (threads, 1) if len(waiting) > 1 else (1, threads)
    queue, places = Queue(waiting, workers), max(1, rows // width)
    writer = writer.with_threads(team) if hasattr(writer, "with_threads") else writer

    def work() -> dict[int, list[Hypothesis]]:
        return dict(search_flow(writer, queue.take, special, config, places))

    if workers == 1:
        return work()
    with ThreadPoolExecutor(workers) as pool:
        several = [pool.submit(work) for _ in range(workers)]
        return {number: found for one in several for number, found in one.result().items()}


@torch.inference_mode()
def search_flow(
    writer: Any, take: Callable[[int], list[Waiting]], special: SpecialIds, config: SearchConfig, places: int
) -> Found:
    search = Search(writer, special, config)
    while True:
        free = places - len(search)
        if not len(search) or (search.may_join and free >= max(1, places // REFILL)):
            taken = take(free)
            if taken:
                state = writer.encode(*make_source([one.source for one in taken], special))
                search.admit(state, [one.number for one in taken], [one.longest for one in taken])
        if not len(search):
            return
        yield from search.step()
