"""Small runs that are killed and gone on with: many of them in little time, since a fork knows torch already.

A run is begun once; every trial starts from a copy of its folder, in a child of its own, and is judged by the hashes of
what it leaves behind. Start this under LD_PRELOAD (`preload`) to kill a child at its n-th write, fsync or rename.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

import dragoman
from dragoman.errors import DragomanError
from dragoman.jobs.request import Request
from dragoman.jobs.start import start
from dragoman.text.generated import write_corpus

SIZES: dict[str, dict[str, Any]] = {
    "transformer": {"width": 32, "heads": 2, "layers": 1, "hidden": 48, "dropout": 0.2},
    "rnn": {"width": 24, "embedding": 16, "layers": 1, "dropout": 0.2},
}
STEPS = 16
TRAINING = {"tokens_per_step": 256, "validate_every": 8, "save_every": 4, "report_every": 2, "warmup": 4}


def corpus_in(folder: Path) -> Path:
    if not folder.exists():
        write_corpus("reverse", folder, count=600, valid=8, test=4, seed=1)
    return folder


def request_for(corpus: Path, run: Path, family: str, steps: int = STEPS, **training: Any) -> Request:
    fields = {
        "corpora": [str(corpus / "train.source"), str(corpus / "train.target")],
        "valid": [str(corpus / "valid.source"), str(corpus / "valid.target")],
        "family": family,
        "out": str(run),
        "settings": {"model": SIZES[family], "training": {**TRAINING, "steps": steps, **training}},
    }
    return Request.read(fields, section="train")


def follow(request: Request, watch: Callable[[Any], None] = lambda _: None) -> int:
    """Train to the end; the exit code that the command would have."""
    try:
        for event in start(request, threads=1):
            watch(event)
    except DragomanError as problem:
        print(f"dragoman: {problem.sentence} [{problem.id}]", file=sys.stderr)
        return problem.exit_code
    return 0


def child(work: Callable[[], int], seconds: float | None = None) -> int:
    """Do it in a fork, quietly; kill -9 after so many seconds, if it still runs. Its exit code, or −9."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = work()
        os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def begin(corpus: Path, run: Path, family: str) -> None:
    """A run that was stopped before its first step: what every trial is a copy of. The first one is made here, not in a
    child, so that whatever is imported on the way is there for all children."""

    def work() -> int:
        warm = follow(request_for(corpus, run.with_name(f"{run.name}-warm"), family, steps=1))
        for event in start(request_for(corpus, run, family), threads=1):
            if (run / "run.toml").exists() and type(event).__name__ != "Planned":
                return warm
        return 1

    assert work() == 0
    (run / "log.jsonl").unlink(missing_ok=True)


def copy(run: Path, name: str) -> Path:
    made = run.with_name(name)
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(run, made)
    return made


def outcome(run: Path) -> dict[str, str]:
    """Hashes of the weights and the optimizer at the end, and of the model that came out."""
    newest = max((run / "checkpoints").glob("step-????????"))
    files = [newest / "weights.safetensors", newest / "optimizer.safetensors", run / "model" / "weights.safetensors"]
    return {str(file.relative_to(run)): sha256(file.read_bytes()).hexdigest() for file in files}


# ── calls that change the disk ────────────────────────────────────────────────────────────


def preload() -> None:
    """Begin this script anew with `faults.c` between it and the system, unless that is so already."""
    if "faults" in os.environ.get("LD_PRELOAD", ""):
        return
    here = Path(__file__).parent
    library = Path(os.environ.get("TMPDIR", "/tmp")) / f"dragoman-faults-{os.getpid()}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, here / "faults.c", "-ldl"], check=True)
    os.environ.update(LD_PRELOAD=str(library), OMP_NUM_THREADS="1")
    os.environ["PYTHONPATH"] = str(Path(dragoman.__file__).parents[1])
    os.execv(sys.executable, [sys.executable, *sys.argv])


def faults() -> Any:
    return ctypes.CDLL(None)


torch.set_num_threads(1)
