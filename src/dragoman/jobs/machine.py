"""What a job needs of the machine: threads, memory that is kept, room on the disk."""

import ctypes
import gc
import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import MachineError, UsageError

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of mallopt(3)
THREADS_PER_CORE = 16  # at most


def keep_memory() -> None:
    """Ask glibc to keep large blocks instead of giving them back to the system after every operation.

    A fresh block costs page faults; a training step asks for the same few hundred blocks again and again.
    Elsewhere than on glibc this does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    except (OSError, AttributeError):
        return


@contextmanager
def collecting_anew() -> Iterator[None]:
    """Inside this block Python looks for garbage only among what is made in it: to look through half a million objects
    of torch's again and again takes a fiftieth of a small model's time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def use_large_pages() -> None:
    """Have torch ask for pages of 2 MiB where it allocates more than that: for reading the memory of attention again
    and again. To be called before torch is imported, since it looks once, at its first allocation."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def refuse_odd_threads(threads: int | None) -> None:
    """None, or so many that they would take the whole machine away from everyone."""
    if threads is None:
        return
    if threads < 1:
        raise UsageError("E-USE-07", f"--threads {threads} cannot be; give 1 or more")
    cores = os.cpu_count() or 1
    if threads > THREADS_PER_CORE * cores:
        raise UsageError(
            "E-USE-07",
            f"--threads {threads} cannot be: this machine has {cores} cores, and more than "
            f"{THREADS_PER_CORE * cores} threads only hinder one another; give {cores} or fewer",
        )


def use_threads(threads: int | None) -> int:
    """Let torch use this many threads, or as many as it finds cores; how many it uses now."""
    refuse_odd_threads(threads)

    import torch  # not before the mistake is said

    if threads is not None:
        torch.set_num_threads(threads)
    return torch.get_num_threads()


def peak_memory() -> int:
    """Bytes this process has held at most."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if sys.platform == "darwin" else kilobytes * 1024


def processor() -> str:
    """The class of this CPU: the same sums on another may end in other digits."""
    import torch

    lines = Path("/proc/cpuinfo").read_text(errors="replace").split("\n") if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"


def refuse_full_disk(folder: Path, needed: int) -> None:
    there = next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise MachineError(
            "E-ENV-02",
            f"this run needs {needed / 1e6:,.2f} MB in {folder} and {free / 1e6:,.2f} MB are free; "
            "free some space, or choose another --out",
        )
