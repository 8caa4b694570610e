"""Many sentences through one writer: as many at a time as it is quick with, and no place left empty.

waiting      those of like length are next to one another; a worker takes the next few when it has room for them
under way    a sentence that is over leaves at once, and the next ones take its place (continuous batching); where they
             cannot be joined to those under way, the next few begin when all are over
threads      each is a worker with sentences of its own; or all of them compute the steps of all sentences together,
             each with a part of every matrix, where the writer finds that faster; a lone sentence may have all of them
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import perf_counter
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
        self.busy = [0] * workers  # sentences that each had when it was here last, and those that it took
        self.lock = Lock()

    def take(self, most: int, worker: int = 0, busy: int = 0) -> list[Waiting]:
        """The next few for this worker, which is busy with so many: no more than make its share a fair one, so that
        none is left with all of them near the end; and none before one of its own is over, for steps that were done
        ahead are lost when others join."""
        with self.lock:
            self.busy[worker] = busy
            left = len(self.waiting)
            fair = -(-(left + sum(self.busy)) // len(self.busy)) - busy
            count = min(most, left, max(fair, 0 if busy else 1))
            self.busy[worker] += count
            taken = self.waiting[left - count :]
            del self.waiting[left - count :]
            return taken[::-1]


Found = Iterator[tuple[int, list[Hypothesis]]]
PORTION, TRIAL = 64, 2  # times the places there are: so many sentences go one way before the choice is made anew


def search_all(
    writer: Any, waiting: Sequence[Waiting], special: SpecialIds, config: SearchConfig, *, rows: int, threads: int = 1
) -> dict[int, list[Hypothesis]]:
    """The best hypotheses of every sentence, by its number; `rows` beginnings at a time for each thread."""
    width = max(config.beam, config.nbest)
    places = max(1, rows // width)

    def search(writer: Any, some: Sequence[Waiting], workers: int, places: int) -> dict[int, list[Hypothesis]]:
        queue = Queue(some, workers)
        flows = [search_flow(writer, queue, worker, special, config, places) for worker in range(workers)]
        if workers == 1:
            return dict(flows[0])
        with ThreadPoolExecutor(workers) as pool:
            several = [pool.submit(dict[int, list[Hypothesis]], flow) for flow in flows]
            return {number: found for one in several for number, found in one.result().items()}

    if threads == 1 or not hasattr(writer, "ways"):
        return search(writer, waiting, threads, places)
    if len(waiting) == 1:
        return search(writer.with_threads(threads), waiting, 1, places)
    found: dict[int, list[Hypothesis]] = {}
    left, ways = Queue(waiting, 1), writer.ways[threads, places, width]
    while left.waiting:
        together, is_trial = ways.choose()
        some, start = left.take(threads * places * (TRIAL if is_trial else PORTION)), perf_counter()
        if together:
            found |= search(writer.with_threads(threads, settled=True), some, 1, threads * places)
        else:
            found |= search(writer.with_threads(1), some, threads, places)
        ways.note(together, (perf_counter() - start) / tokens_of(some, found))
    return found


def tokens_of(some: Sequence[Waiting], found: dict[int, list[Hypothesis]]) -> int:
    """Read and written, and one for the end of each."""
    return sum(1 + len(one.source) + sum(len(best.tokens) for best in found[one.number][:1]) for one in some)


@torch.inference_mode()
def search_flow(
    writer: Any, queue: Queue, worker: int, special: SpecialIds, config: SearchConfig, places: int
) -> Found:
    search = Search(writer, special, config)
    while True:
        busy = len(search)
        if not busy or (search.may_join and places - busy >= max(1, places // REFILL)):
            taken = queue.take(places - busy, worker, busy)
            if taken:
                state = writer.encode(*make_source([one.source for one in taken], special))
                search.admit(state, [one.number for one in taken], [one.longest for one in taken])
        if not len(search):
            return
        yield from search.step()
