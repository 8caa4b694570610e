"""One writer for each folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import MachineError, SaveError
from dragoman.runs.files import save_failed


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder; another process that wants it is refused at once. A kill lets go of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("ab+", buffering=0)  # nothing is left to be written at its end
    except OSError as problem:
        raise MachineError(
            "E-ENV-03", f"{folder} cannot be written ({problem.strerror}); choose another --out"
        ) from None
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read(20).decode(errors="replace").strip() or "unknown"
            raise MachineError(
                "E-RUN-03", f"{folder} is being written by process {holder}; wait for it, or choose another --out"
            ) from None
        try:
            lock.truncate(0)
            lock.write(str(os.getpid()).encode())
        except OSError as problem:
            raise SaveError("E-SAVE-01", save_failed(folder / ".lock", problem)) from problem
        yield
