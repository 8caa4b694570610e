"""What a run writes down about itself: run.toml, its settings; log.jsonl, how it went."""

import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import DataError, SaveError, UsageError
from dragoman.runs.files import save_failed, write_file

LARGEST_TOML = 1 << 24  # bytes; the labels of a classifier are among the settings


def write_toml(path: Path, sections: Mapping[str, Mapping[str, Any]]) -> None:
    write_file(path, to_toml(sections))


def to_toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of plain values; a value that is a mapping becomes a section of its own; None is left out."""
    lines: list[str] = []
    for section, values in sections.items():
        lines += [f"[{section}]", *(f"{key} = {toml_value(v)}" for key, v in values.items() if is_plain(v)), ""]
        nested = {f"{section}.{key}": v for key, v in values.items() if isinstance(v, Mapping)}
        lines += [to_toml(nested)] if nested else []
    return "\n".join(lines)


def is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, Mapping)


def toml_value(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    same = json.dumps(value, ensure_ascii=False)  # strings, whole numbers, booleans and lists are the same in both
    return same.replace("\x7f", "\\u007f")  # but for one letter


def read_toml(path: Path) -> dict[str, dict[str, Any]]:
    if path.exists() and (not path.is_file() or path.stat().st_size > LARGEST_TOML):
        raise DataError(
            "E-SET-04", f"{path} is not TOML that can be read: it must be a file of at most {LARGEST_TOML:,} bytes"
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError("E-SET-03", f"there is no settings file {path} ({problem.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise DataError("E-SET-04", f"{path} is not TOML that can be read: {problem}") from None


def read_log(path: Path) -> list[dict[str, Any]]:
    """Its whole lines, each of some step; the last one may have been cut off by a crash, within a letter too, or be in
    the middle of being written."""
    try:
        return read_whole_log(path)
    except OSError:
        return []


def read_whole_log(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in map(as_object, text.split("\n")) if is_step(line.get("step"))]
    return [{key: math.nan if value is None else value for key, value in line.items()} for line in lines]


def as_object(text: str) -> dict[str, Any]:
    """What a line or a file of JSON says, where it is an object."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def to_json(line: Mapping[str, Any]) -> str:
    """On one line. JSON has no word for what is no number: it is null there."""
    odd = [key for key, value in line.items() if isinstance(value, float) and not math.isfinite(value)]
    return json.dumps({**line, **dict.fromkeys(odd)}, ensure_ascii=False)


class Log:
    """One JSON object a line. After a crash, what was logged past the checkpoint is dropped: it will come again."""

    def __init__(self, path: Path, after_step: int = 0) -> None:
        self.path = path
        self.drop_after(after_step)

    def drop_after(self, step: int) -> None:
        try:
            kept = [line for line in read_whole_log(self.path) if line["step"] <= step]
        except OSError as problem:  # to write it anew would lose it
            raise SaveError(
                "E-SAVE-01", f"{self.path} cannot be read ({problem.strerror}), and is left as it is; look at the disk"
            ) from problem
        write_file(self.path, "".join(to_json(line) + "\n" for line in kept))

    def write(self, line: Mapping[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(to_json(line) + "\n")
        except OSError as problem:
            raise SaveError("E-SAVE-01", save_failed(self.path, problem)) from problem
