"""dragoman doctor: does this machine have what is needed? One line a check, and never a traceback.

torch is imported in a process of its own: a library that is broken, or made for another processor, ends that one.
"""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from dragoman.cli.options import Whole
from dragoman.errors import MachineError

HERE = "127.0.0.1"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LIBRARIES = (  # as they are imported; torch has a line of its own
    "numpy", "sentencepiece", "tokenizers", "safetensors", "sacrebleu", "pydantic", "rich", "jaxtyping", "lxml", "PIL",
)  # fmt: skip
NEEDED = ("disk", "libraries", "torch", "speed")
EXTRAS = {"matplotlib": "plot", "transformers": "hf"}
LEAST_DISK = 100_000_000  # bytes; even a tiny run with its checkpoints needs some
PATIENCE = 180  # seconds for torch to be imported, on a busy machine with a slow disk
MEASURE = "from dragoman.cli.doctor import tell_torch; tell_torch()"


class Check(NamedTuple):
    check: str
    ok: bool
    said: str
    id: str = ""  # of the error, where nothing works without it


def doctor(
    *,
    port: Whole = 8765,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="print one JSON object a line")] = False,
) -> int:
    """See whether this machine has what is needed, and how fast it multiplies. Exit 4 if something needed is missing.

    Parameters
    ----------
    port
        The port on 127.0.0.1 that the page is to use.
    """
    wrong = []
    for check in checks(port):
        values = {**check._asdict(), "needed": check.check in NEEDED}
        word = "ok" if check.ok else "missing" if check.id else "note"
        line = json.dumps(values, ensure_ascii=False) if as_json else f"{word:<9}{check.check:<14}{check.said}"
        print(line, flush=True)
        wrong += [check] if check.id and not check.ok else []
    if wrong:
        raise MachineError(wrong[0].id, "; ".join(check.said for check in wrong))
    return 0


def checks(port: int) -> Iterator[Check]:
    """Quick ones first; what needs torch last."""
    yield attempt("python", look_at_python)
    yield attempt("memory", look_at_memory)
    yield attempt("disk", look_at_disk)
    yield attempt("libraries", look_at_libraries)
    for name, extra in EXTRAS.items():
        yield attempt(name, partial(look_at_extra, name, extra))
    yield attempt("browser", look_at_browser)
    yield attempt("port", partial(look_at_port, port))
    yield from look_at_torch()


def attempt(name: str, look: Callable[[], Check]) -> Check:
    """A machine can be odd in more ways than can be foreseen: then the line says so."""
    try:
        return look()
    except Exception as problem:
        return Check(name, False, f"cannot be told ({type(problem).__name__}: {' '.join(str(problem).split())})")


def look_at_python() -> Check:
    return Check("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def look_at_memory() -> Check:
    free, total = memory()
    if total is None:
        return Check("memory", True, "how much there is cannot be told on this system")
    known = "" if free is None else f"{free / 2**30:.1f} GiB free of "
    return Check("memory", free is None or free > 2**30, f"{known}{total / 2**30:.1f} GiB")


def memory() -> tuple[int | None, int | None]:
    """Bytes that can be had now, and all there are; a container's limit counts."""
    try:
        lines = [line.split() for line in Path("/proc/meminfo").read_text().splitlines()]
        kilobytes = {words[0].rstrip(":"): int(words[1]) for words in lines}
        free, total = 1024 * kilobytes["MemAvailable"], 1024 * kilobytes["MemTotal"]
    except (OSError, ValueError, KeyError, IndexError):
        try:
            return None, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (OSError, ValueError, AttributeError):
            return None, None
    limit, used = limit_and_use()
    return min(free, limit - used), min(total, limit)


def limit_and_use(folder: Path = Path("/sys/fs/cgroup")) -> tuple[int, int]:
    try:
        limit, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return int(limit), int(used)
    except (OSError, ValueError):  # no container, or none with a limit, which is called max
        return 2**62, 0


def look_at_disk() -> Check:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    if free < LEAST_DISK:
        return Check(
            "disk", False,
            f"the disk is full: {free / 1e6:,.0f} MB are free in {here} and a run needs {LEAST_DISK / 1e6:,.0f} MB or "
            "more; free some space, or work in another folder", "E-ENV-02",
        )  # fmt: skip
    writable = os.access(here, os.W_OK)
    other = "" if writable else f"; {here} cannot be written, so give --out"
    return Check("disk", writable, f"{free / 1e9:,.1f} GB free here{other}")


def look_at_libraries() -> Check:
    absent = [name for name in LIBRARIES if find_spec(name) is None]
    if absent:
        return Check("libraries", False, f"{', '.join(absent)} cannot be found; pip install dragoman again", "E-ENV-05")
    return Check("libraries", True, f"all {len(LIBRARIES)} that are needed")


def look_at_extra(name: str, extra: str) -> Check:
    if find_spec(name) is None:
        return Check(name, False, f"not installed: pip install 'dragoman[{extra}]' brings it")
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, True, "there, of an unknown version")


def look_at_browser() -> Check:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return Check("browser", bool(found), found or "no chromium found; pages open in any other browser too")


def look_at_port(port: int) -> Check:
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the page does
        try:
            door.bind((HERE, port))
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or problem
            return Check("port", False, f"{port} on {HERE} cannot be used ({reason}); choose another --port")
    return Check("port", True, f"{port} on {HERE} is free")


# ── torch, in a process of its own ────────────────────────────────────────────────────────


def look_at_torch() -> Iterator[Check]:
    told, failure = ask_torch()
    if "torch" not in told:
        yield Check(
            "torch", False, f"torch cannot be imported ({failure}); pip install it again, made for this machine",
            "E-ENV-05",
        )  # fmt: skip
        return
    yield Check("torch", True, f"{told['torch']}, for processors with {told['capability']}")
    yield attempt("threads", partial(look_at_threads, told["threads"]))
    if "speed" in told:
        yield Check("speed", True, f"{told['speed'] / 1e9:,.0f} GFLOP/s in matrix products")
    else:
        yield Check("speed", False, f"dragoman cannot be imported ({failure}); pip install it again", "E-ENV-05")


def look_at_threads(threads: int) -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS")
    why = f", as OMP_NUM_THREADS={asked} says" if asked else ""
    few = "" if threads <= cores else "; more threads than cores stand in each other's way: give --threads"
    return Check("threads", threads <= cores, f"{threads} on {cores} cores{why}{few}")


def ask_torch(command: str = MEASURE) -> tuple[dict[str, Any], str]:
    """All that was told before the other process ended; and why it failed, if it did."""
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return {}, f"it took more than {PATIENCE} seconds"
    except OSError as problem:
        return {}, f"no process could be started: {problem.strerror}"
    told = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    return {name: value for line in told for name, value in json.loads(line).items()}, reason_of(ended)


def reason_of(ended: subprocess.CompletedProcess[str]) -> str:
    if ended.returncode < 0:
        return f"it was ended by {signal.Signals(-ended.returncode).name}"
    said = ended.stderr.strip().splitlines()
    return said[-1].strip() if said and ended.returncode else f"exit code {ended.returncode}"


def tell_torch() -> None:
    """What the other process runs. Each line stands for itself, for the next may be its end."""
    import torch

    about = {"torch": torch.__version__, "capability": torch.backends.cpu.get_cpu_capability()}
    print(json.dumps({**about, "threads": torch.get_num_threads()}), flush=True)

    from dragoman.jobs.plan import products_per_second

    print(json.dumps({"speed": products_per_second(8, 0.1)}), flush=True)
