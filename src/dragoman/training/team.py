"""Threads that each compute something of their own, instead of all of them a part of every operation.

A framework's threads meet after every operation: a few hundred times in a step, and each time they wait for the
slowest, or for one that has gone to sleep. Here a thread learns from its own micro-batch from end to end, and they meet
once. On two quiet cores a step of a small model is a tenth shorter, beside another busy program up to a half.

What a thread computes does not hang on the others, and the caller adds up in the order of the items: up to four
threads, their number does not change the bits.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Found = TypeVar("Found")
WORTH_WAKING = 4_000_000  # numbers: some milliseconds for one thread
MOST = 4  # that go their own ways: more would wait for Python's lock, and have little left to do each


def team_size() -> int:
    """As many as torch has threads now, up to four."""
    return min(MOST, torch.get_num_threads())


class Team:
    def __init__(self, size: int) -> None:
        """As many threads, the one that asks among them; where torch has more, each computes with its share of them."""
        self.size = size
        self.each_has = max(1, torch.get_num_threads() // size)
        self.others = (
            ThreadPoolExecutor(self.size - 1, "team", torch.set_num_threads, (self.each_has,))
            if self.size > 1
            else None
        )

    def each(self, work: Callable[[Item], Found], items: Iterable[Item]) -> list[Found]:
        """[work(item), …], each done by one thread; the first item by the one that asks, who waits for the others."""
        own, *rest = items
        if self.others is None:
            return [work(own), *map(work, rest)]
        asked = list[Future[Found]]()
        with computing_with(self.each_has):
            try:
                asked += (self.others.submit(work, item) for item in rest)
                return [work(own), *(one.result() for one in asked)]
            finally:
                wait(asked)  # whatever happened, nobody goes on computing behind our back
                asked.clear()  # an exception would keep what it failed over, and itself


def threads_for(numbers: int) -> int:
    """How many are to go through so many numbers once. Few of them are over before a second thread has woken up."""
    return 1 if numbers < WORTH_WAKING else torch.get_num_threads()


@contextmanager
def computing_with(count: int) -> Iterator[None]:
    """Inside this block an operation of torch uses so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
