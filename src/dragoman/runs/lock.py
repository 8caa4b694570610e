"""One writer for each folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import MachineError


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder; another process that wants it is refused at once. A kill lets go of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("a+")
    except OSError as problem:
        raise MachineError(
            "E-ENV-03", f"{folder} cannot be written ({problem.strerror}); choose another --out"
        ) from None
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise MachineError(
                "E-RUN-03", f"{folder} is being written by process {holder}; wait for it, or choose another --out"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
