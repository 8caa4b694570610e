"""What a run learns from, as it lies in data/: sealed by a list of hashes once it is whole, and looked at whenever the
run goes on. A flipped bit there would change what is learned, and nobody would know."""

from pathlib import Path

from dragoman.errors import DataError, SaveError
from dragoman.runs.files import MANIFEST, check_folder, save_failed, seal

PARTS = ("train", "valid", "pairs", "valid.json")  # what is ours in data/
CHEAP = 1 << 32  # bytes: read at every beginning; of more than that the indexes see their sizes alone


def seal_data(run: Path) -> None:
    data = run / "data"
    try:
        seal(data, files_of(data))
    except OSError as problem:
        raise SaveError("E-SAVE-01", save_failed(data, problem)) from problem


def refuse_damaged_data(run: Path) -> None:
    """Runs that were begun before data were sealed have no list, and go on without one."""
    data = run / "data"
    if not (data / MANIFEST).exists() or sum(path.stat().st_size for path in files_of(data)) > CHEAP:
        return
    try:
        check_folder(data)
    except DataError as problem:
        model = f", or train on from its model: --from {run} --out NEW" if (run / "model").is_dir() else ""
        raise DataError("E-DATA-08", f"{problem.sentence}; begin anew with --fresh{model}") from None


def files_of(data: Path) -> list[Path]:
    below = [path for part in PARTS for path in [data / part, *sorted((data / part).rglob("*"))]]
    return [path for path in below if path.is_file()]
