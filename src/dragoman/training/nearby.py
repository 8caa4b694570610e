"""Sums over workers of one machine, through memory that all of them see, in half of the time that the loopback takes.

    room (W + 1, PIECE)     a row for each worker, and one for the sum

Each writes its row; each adds up its own share of all rows, in the order of the workers; each reads the whole sum.
Every number is added up once, by one of them, so all have the same bits. The memory belongs to no file: nothing is left
of it when its workers are gone, however they went.
"""

import mmap
import os
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

PIECE = 1 << 22  # numbers that are summed at a time: 16 MB a row
WORTH_IT = 1 << 16  # fewer are there sooner than two meetings are over


class Nearby:
    def __init__(self, workers: Any, room: Float[Tensor, "W+1 P"]) -> None:
        self.workers, self.room = workers, room

    def sum(self, numbers: Float[Tensor, " N"]) -> None:
        """In place."""
        rank, size = self.workers.rank, self.workers.size
        for piece in numbers.split(PIECE):
            rows = self.room[:, : len(piece)]
            rows[rank].copy_(piece)
            self.workers.wait()
            share = slice(len(piece) * rank // size, len(piece) * (rank + 1) // size)
            total = torch.add(rows[0, share], rows[1, share], out=rows[size, share])
            for row in rows[2:size]:
                total.add_(row[share])
            self.workers.wait()
            piece.copy_(rows[size])


def find_nearby(workers: Any) -> Nearby | None:
    """None where they are on several machines, or cannot see each other's memory."""
    if workers.size == 1 or os.environ.get("LOCAL_WORLD_SIZE") != os.environ.get("WORLD_SIZE"):
        return None
    size = 4 * (workers.size + 1) * PIECE
    file = make_memory(size) if workers.first else -1
    place = torch.tensor([os.getpid(), file])
    workers.hand_round(place, 0)
    owner, number = place.tolist()
    room = open_memory(owner, number, size)
    missing = workers.largest(int(room is None))  # all have opened it by now, or one could not
    if file >= 0:
        os.close(file)
    return None if missing or room is None else Nearby(workers, room.view(workers.size + 1, PIECE))


def make_memory(size: int) -> int:
    """A file that is nowhere but in memory; -1 where the system has no such thing."""
    try:
        file = os.memfd_create("sums of workers")
        os.ftruncate(file, size)
    except (AttributeError, OSError):
        return -1
    return file


def open_memory(process: int, file: int, size: int) -> Float[Tensor, " N"] | None:
    """That of another process of ours."""
    try:
        with open(f"/proc/{process}/fd/{file}", "r+b") as shared:
            return torch.frombuffer(mmap.mmap(shared.fileno(), size), dtype=torch.float32)
    except (OSError, ValueError):
        return None
