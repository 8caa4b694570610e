"""Files that are either whole or not there: write under another name, force to disk, rename."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from dragoman.errors import DataError, SaveError

MANIFEST = "manifest.json"


def write_file(path: Path, content: bytes | str) -> None:
    """Replace a file in one instant: whoever opens it sees all of the old or all of the new."""
    ready = path.with_name(path.name + ".new")
    try:
        ready.write_bytes(content.encode() if isinstance(content, str) else content)
        force_to_disk(ready)
        ready.replace(path)
        force_to_disk(path.parent)
    except OSError as problem:
        ready.unlink(missing_ok=True)
        raise SaveError("E-SAVE-01", save_failed(path, problem)) from problem


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder of files at once: `fill` writes them elsewhere; their hashes are added; a rename puts it in place.

    A folder that stands there already is replaced; for an instant, between two renames, it is called `.old`.
    """
    ready, old = path.with_name(path.name + ".new"), path.with_name(path.name + ".old")
    try:
        shutil.rmtree(ready, ignore_errors=True)
        ready.mkdir(parents=True)
        fill(ready)
        manifest = {str(file.relative_to(ready)): sha256(file) for file in sorted(ready.rglob("*")) if file.is_file()}
        (ready / MANIFEST).write_text(json.dumps(manifest, indent=1))
        for file in [*ready.rglob("*"), ready]:
            force_to_disk(file)
        shutil.rmtree(old, ignore_errors=True)
        if path.exists():
            path.rename(old)
        ready.rename(path)
        force_to_disk(path.parent)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as problem:  # safetensors wraps the system's error in its own
        shutil.rmtree(ready, ignore_errors=True)
        raise SaveError("E-SAVE-01", save_failed(path, problem)) from problem


def recover_folder(path: Path) -> None:
    """Bring back a folder that a kill between the two renames left as `.old`; only for who holds the lock."""
    old = path.with_name(path.name + ".old")
    if old.exists() and not path.exists():
        old.rename(path)


def check_folder(path: Path) -> None:
    """Refuse a folder whose files are not those that its manifest lists."""
    try:
        manifest: dict[str, str] = json.loads((path / MANIFEST).read_text())
    except (OSError, ValueError):
        manifest = {}
    if not isinstance(manifest, dict) or not manifest:  # a folder of nothing is never saved
        raise DataError("E-RUN-01", f"{path} has no manifest that can be read; it was not saved completely")
    for name, expected in manifest.items():
        file = path / name
        if not file.is_file():
            raise DataError("E-RUN-02", f"{path} is damaged: {name} is missing")
        if sha256(file) != expected:
            raise DataError("E-RUN-02", f"{path} is damaged: the checksum of {name} differs from its manifest")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_failed(path: Path, problem: Exception) -> str:
    reason = getattr(problem, "strerror", None) or problem
    return f"{path} could not be saved ({reason}); what was saved before is intact: free space and run the same command"
