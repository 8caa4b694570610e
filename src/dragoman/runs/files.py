"""Files that are either whole or not there: write under another name, force to disk, rename, read back.

A folder is saved in this order, and a kill between any two of them costs nothing:

    fill NAME.new        the files, each forced to disk
    manifest.json        sha256 of each, last; forced to disk with the folder
    NAME → NAME.old      only where one stands there already
    NAME.new → NAME      the instant at which it is saved; the parent is forced to disk
    check                every file is read back and hashed
    remove NAME.old      only now: what was saved before goes when the new one is known to be whole
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError

from dragoman.errors import DataError, SaveError

MANIFEST = "manifest.json"
LARGEST_JSON = 1 << 26  # bytes; a tokenizer of a million words has about as many
ROOM = 1 << 20  # bytes beside the files themselves: folders, journals, the log


def write_file(path: Path, content: bytes | str) -> None:
    """Replace a file in one instant: whoever opens it sees all of the old or all of the new."""
    ready = path.with_name(path.name + ".new")
    try:
        ready.write_bytes(content.encode() if isinstance(content, str) else content)
        force_to_disk(ready)
        ready.replace(path)
        force_to_disk(path.parent)
    except OSError as problem:
        with suppress(OSError):
            ready.unlink(missing_ok=True)
        raise SaveError("E-SAVE-01", save_failed(path, problem)) from problem


def write_folder(path: Path, fill: Callable[[Path], None], size: int = 0) -> None:
    """Make a folder of files at once, of about `size` bytes; one that stands there already is replaced."""
    ready, old = path.with_name(path.name + ".new"), path.with_name(path.name + ".old")
    refuse_full_disk(path, size)
    try:
        shutil.rmtree(ready, ignore_errors=True)
        ready.mkdir(parents=True)
        fill(ready)
        seal(ready)
        shutil.rmtree(old, ignore_errors=True)
        if path.exists():
            path.rename(old)
        ready.rename(path)
        force_to_disk(path.parent)
        check_folder(path)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError, DataError) as problem:  # safetensors wraps the system's error in its own
        bring_back(path, broken=isinstance(problem, DataError))
        raise SaveError("E-SAVE-01", save_failed(path, problem)) from problem


def seal(folder: Path, files: Sequence[Path] | None = None) -> None:
    """Force the files to disk, all in the folder or these of it, then a list of their hashes, then their folders."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()] if files is None else files
    for file in files:
        force_to_disk(file)
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({str(file.relative_to(folder)): sha256(file) for file in files}, indent=1))
    for path in [manifest, *sorted({file.parent for file in files} - {folder}), folder]:
        force_to_disk(path)


def bring_back(path: Path, *, broken: bool) -> None:
    """After a save that failed: what was there before is there again, and nothing else, as far as the disk allows."""
    with suppress(OSError):
        if broken:  # it is in place, and does not read back as it was written
            shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(path.with_name(path.name + ".new"), ignore_errors=True)
        recover_folder(path)


def recover_folder(path: Path) -> None:
    """Bring back a folder that a kill between the two renames left as `.old`; only for who holds the lock."""
    old = path.with_name(path.name + ".old")
    if old.exists() and not path.exists():
        old.rename(path)


def refuse_full_disk(path: Path, size: int) -> None:
    """Before anything is written: a save that cannot fit is not begun."""
    there = next(folder for folder in path.absolute().parents if folder.exists())
    free = shutil.disk_usage(there).free
    if free < size + ROOM:
        raise SaveError(
            "E-SAVE-02",
            f"{path} needs {(size + ROOM) / 1e6:,.2f} MB and {free / 1e6:,.2f} MB are free on that disk; what was "
            "saved before is intact: free space and run the same command",
        )


def check_folder(path: Path) -> None:
    """Refuse a folder whose files are not those that its manifest lists."""
    try:
        manifest = read_json(path / MANIFEST)
    except DataError:
        manifest = {}
    if not manifest:  # a folder of nothing is never saved
        raise DataError("E-RUN-01", f"{path} has no manifest that can be read; it was not saved completely")
    for name, expected in manifest.items():
        found = sha256_inside(path, name)
        if not found:
            raise DataError("E-RUN-02", f"{path} is damaged: {name:.200} is missing")
        if found != expected:
            raise DataError("E-RUN-02", f"{path} is damaged: the checksum of {name} differs from its manifest")


def sha256_inside(folder: Path, name: str) -> str:
    """Of a file in this folder; nothing where there is none, or the name that a manifest gives leads out of it."""
    if name.startswith("/") or ".." in PurePosixPath(name).parts:
        return ""
    try:
        return sha256(folder / name) if (folder / name).is_file() else ""
    except (OSError, ValueError):  # a name that no file can have
        return ""


def read_json(path: Path) -> dict[str, Any]:
    """An object from a file that may be damaged or made by anyone."""
    try:
        refuse_irregular(path)
        if path.stat().st_size > LARGEST_JSON:
            raise ValueError(f"it has more than {LARGEST_JSON:,} bytes")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no object")
    except (OSError, ValueError, RecursionError) as problem:
        raise DataError("E-RUN-02", f"{path} cannot be read as JSON ({problem})") from None
    return found


def no_model(path: Path | str) -> DataError:
    return DataError("E-RUN-04", f"there is no model at {path}; give the folder of a run, such as runs/<name>")


def refuse_irregular(path: Path) -> None:
    """A pipe would be waited for without end, and a device be read without end."""
    if path.exists() and not path.is_file():
        raise DataError("E-RUN-02", f"{path} is a folder, a pipe or a device, and must be a file")


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
    reason = str(getattr(problem, "strerror", None) or problem)  # safetensors has the system's words in its own
    is_full = any(words in reason for words in ("No space", "quota", "too large"))
    way_out = "free space" if is_full else "look at the disk and who owns it"
    return (
        f"{path} could not be saved ({reason}); what was saved before is intact: {way_out}, then run the same command"
    )
