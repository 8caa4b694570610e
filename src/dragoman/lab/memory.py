"""Results that are kept with what they depend on: asked for again with the same, they are read instead of made."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from dragoman.runs.files import MANIFEST, sha256, write_file

Result = TypeVar("Result")


def recall(path: Path, depends: Mapping[str, Any], kind: type[Result]) -> Result | None:
    """What was kept there, if it was made of the very same; a file of another version is as good as none."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return TypeAdapter(kind).validate_python(kept["result"]) if kept["depends"] == depends else None
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return None


def keep(path: Path, depends: Mapping[str, Any], result: object) -> None:
    plain = TypeAdapter(type(result)).dump_python(result, mode="json")
    write_file(path, json.dumps({"depends": depends, "result": plain}, ensure_ascii=False))


def hash_of_model(run: Path) -> str:
    """Of the manifest, which holds the hashes of weights, settings and tokenizer; "" where there is no model."""
    path = run / "model" / MANIFEST
    return sha256(path) if path.is_file() else ""
