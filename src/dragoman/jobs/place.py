"""The folder of a run: whose it is what stands there already.

A run keeps its things under plain names (`data`, `model`, …) that a person's own folders may have too. Ours are those
beside a run.toml that we wrote, or beside BEGUN, which stands there from the first file on until there is a run.toml.
Whatever else bears such a name is somebody's work: it is neither moved nor written into.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.errors import UsageError

RUN_FILES = ("run.toml", "log.jsonl", "checkpoints", "model", "model.old", "tokenizer", "data")
BEGUN = ".begun"
FIRST_LINE = b"[run]\n"  # of every run.toml


def is_begun(folder: Path) -> bool:
    """Whether there is a run to go on with. Where there are checkpoints it is one, whatever has become of its run.toml:
    what is wrong with that is said when it is read."""
    settings = folder / "run.toml"
    if not settings.is_file():
        return False
    with settings.open("rb") as file:
        return file.read(len(FIRST_LINE)) == FIRST_LINE or any((folder / "checkpoints").glob("step-*"))


def refuse_foreign(folder: Path) -> None:
    if is_begun(folder) or (folder / BEGUN).exists():
        return
    foreign = [path.name for path in run_files(folder)]
    if foreign:
        raise UsageError(
            "E-USE-03",
            f"{folder} already holds {', '.join(foreign)}, and no run.toml of dragoman's says that a run made this; "
            "choose another --out",
        )


def run_files(folder: Path) -> list[Path]:
    return [folder / name for name in RUN_FILES if (folder / name).exists() or (folder / name).is_symlink()]


@contextmanager
def beginning(folder: Path) -> Iterator[None]:
    """What is made inside this block is ours, even if a kill ends it; it ends with a run.toml."""
    (folder / BEGUN).touch()
    yield
    (folder / BEGUN).unlink()


def set_aside(folder: Path, needed: Iterable[Path]) -> str:
    """Move an old run out of the way; what it made is not lost. The sentence that says where it is now, if there was
    one. First run.toml, so that half of one is none. What is `needed` for the new run must stay where it is."""
    made = run_files(folder)
    if not made:
        return ""
    refuse_to_move(made, needed)
    whole = folder.resolve()  # "." has no name to put an ending to
    aside = next(path for n in range(1, 10_000) if not (path := whole.parent / f"{whole.name}.old-{n}").exists())
    if is_begun(folder):
        (folder / BEGUN).touch()  # a kill in the midst of this leaves things that are ours
    aside.mkdir()
    for path in made:
        shutil.move(path, aside / path.name)
    return f"what was in {folder} is now in {folder.with_name(aside.name) if folder.name == whole.name else aside}"


def refuse_to_move(made: Iterable[Path], needed: Iterable[Path]) -> None:
    for file in needed:
        for path in made:
            if overlap(file.resolve(), path.resolve()):
                raise UsageError(
                    "E-USE-03", f"{path} would be moved aside, and {file} is needed for this run; choose another --out"
                )


def overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
