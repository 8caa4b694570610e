"""Every setting is a field of a frozen pydantic model and carries the sentence that explains it.

The command line, TOML files and Python read the same fields. An unknown key is refused, with the nearest right one.
"""

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.errors import UsageError

Own = TypeVar("Own", bound="Settings")  # typing.Self, which beartype does not take in single methods


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    @classmethod
    def read(cls: type[Own], values: Mapping[str, Any], *, section: str) -> Own:
        """Settings from loose values, such as those of a TOML file; a wrong one is named as `section.key`."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as problem:
            raise UsageError("E-SET-01", explain(problem, cls, section)) from None

    def changed(self: Own, values: Mapping[str, Any], *, section: str) -> Own:
        """The same settings with some values replaced, checked again."""
        return type(self).read({**self.model_dump(), **values}, section=section)


def explain(problem: ValidationError, settings: type[BaseModel], section: str) -> str:
    """The first thing wrong, as one sentence."""
    error = problem.errors()[0]
    key = ".".join([section, *(str(part) for part in error["loc"])])
    if error["type"] == "extra_forbidden":
        return f"there is no setting {key}; {nearest(str(error['loc'][-1]), list(settings.model_fields), section)}"
    if error["type"] == "missing":
        return f"the setting {key} is missing; give it a value"
    reason = str(error["msg"]).removeprefix("Value error, ")
    return f"{key} = {error['input']!r} cannot be: {reason}" if error["loc"] else f"{section}: {reason}"


def nearest(word: str, known: list[str], section: str = "") -> str:
    """'did you mean …?', or the whole list where nothing is near."""
    prefix = f"{section}." if section else ""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {prefix}{close[0]}?"
    return f"known: {', '.join(prefix + name for name in sorted(known))}"
