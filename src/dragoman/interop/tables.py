"""Foreign weights come in by a table that must fit exactly.

    GPT2 = {
        "wte.weight":                "embedding.table.weight",
        "h.*.mlp.c_fc.weight":       transposed("blocks.blocks.*.feedforward.0.weight"),
        "h.*.attn.c_attn.weight":    split("….to_query.weight", "….to_key.weight", "….to_value.weight"),
        "lm_head.weight":            SameAs("wte.weight"),
        "h.*.attn.bias":             Unused("a mask"),
    }

A `*` stands for one part of a name, and the same part on both sides. Every foreign tensor must be in the table, every
parameter must be filled, and every shape must be right; else all that does not fit is listed, by its foreign name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from dragoman.errors import DataError


class Moved(NamedTuple):
    """A tensor that is changed on its way, and becomes as many as there are names."""

    names: tuple[str, ...]
    change: Callable[[Tensor], Sequence[Tensor]]


class SameAs(NamedTuple):
    """A tensor that must be equal to another foreign one, or stand in for it: a tied table, stored twice or once."""

    name: str


class Unused(NamedTuple):
    """A tensor that is known and not needed."""

    why: str


Entry = str | Moved | SameAs | Unused
Table = Mapping[str, Entry]


def transposed(name: str) -> Moved:
    """Weights that are stored (inputs, outputs), as GPT-2's."""
    return Moved((name,), lambda tensor: [turned(tensor)])


def split(*names: str) -> Moved:
    """Weights of several layers side by side, stored (inputs, outputs); or their biases."""
    return Moved(names, lambda tensor: turned(tensor).tensor_split(len(names)))


def turned(tensor: Tensor) -> Tensor:
    return tensor.t() if tensor.ndim == 2 else tensor


def flat(name: str) -> Moved:
    """A row that is stored as a matrix of one row."""
    return Moved((name,), lambda tensor: [tensor.flatten()])


def prefixed(table: Table, prefix: str) -> Table:
    return {prefix + name: entry for name, entry in table.items()}


def move_in(weights: Mapping[str, Tensor], table: Table, model: nn.Module, source: str) -> list[str]:
    """Fill every parameter of `model`; why some tensors were not needed. `source` is what people call the weights."""
    wanted = {name: parameter.data for name, parameter in model.named_parameters()}
    ours: dict[str, tuple[str, Tensor]] = {}  # our name -> the foreign one, and the tensor
    problems, unused = [], dict[str, None]()
    weights = with_originals(weights, table)
    for foreign, tensor in sorted(weights.items()):
        pattern, entry = look_up(foreign, table)
        match entry:
            case None:
                problems.append(f"{foreign} {shape(tensor)} is left over")
            case Unused(why):
                unused[why] = None
            case SameAs(other):
                twin = rename(foreign, pattern, other)
                if not tensor.equal(weights[twin]):
                    problems.append(f"{foreign} is not equal to {twin}")
            case _:
                for name, part in moved(entry, tensor):
                    ours[rename(foreign, pattern, name)] = (foreign, part)
    problems += [f"{foreign_name(name, table)} is missing" for name in wanted.keys() - ours.keys()]
    for name, (foreign, tensor) in ours.items():
        if name not in wanted:
            problems.append(f"{foreign} {shape(tensor)} is left over")
        elif tensor.shape != wanted[name].shape:
            problems.append(f"{foreign} gives {shape(tensor)} and must give {shape(wanted[name])}")
    if problems:
        raise DataError("E-IMP-03", f"the weights in {source} do not fit its config.json: {listed(problems)}")
    for name, parameter in wanted.items():
        parameter.copy_(ours[name][1])
    return list(unused)


def with_originals(weights: Mapping[str, Tensor], table: Table) -> dict[str, Tensor]:
    """Where only a copy of a tied table is there, it also stands under the name that it is a copy of."""
    found = dict(weights)
    for name, tensor in sorted(weights.items()):
        pattern, entry = look_up(name, table)
        if isinstance(entry, SameAs):
            found.setdefault(rename(name, pattern, entry.name), tensor)
    return found


def moved(entry: str | Moved, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    if isinstance(entry, str):
        yield entry, tensor
        return
    try:
        parts = entry.change(tensor)
    except (RuntimeError, IndexError):  # of other dimensions than it must have; its shape is told as it is
        parts = [tensor] * len(entry.names)
    yield from zip(entry.names, parts, strict=True)


def look_up(name: str, table: Table) -> tuple[str, Entry | None]:
    """The first pattern that fits, and what it says."""
    return next(((pattern, entry) for pattern, entry in table.items() if parts_of(name, pattern)), ("", None))


def foreign_name(name: str, table: Table) -> str:
    """What the tensor is called, there, that this parameter should come from."""
    for pattern, entry in table.items():
        names = (entry,) if isinstance(entry, str) else entry.names if isinstance(entry, Moved) else ()
        for own in names:
            if parts_of(name, own):
                return rename(name, own, pattern)
    return name


def parts_of(name: str, pattern: str) -> re.Match[str] | None:
    return re.fullmatch(re.escape(pattern).replace(r"\*", r"([^.]+)"), name)


def rename(name: str, pattern: str, other: str) -> str:
    """The name that `other` gives, with what each `*` of `pattern` stands for."""
    found = parts_of(name, pattern)
    parts = iter(found.groups() if found else ())
    return re.sub(r"\*", lambda _: next(parts), other)


def shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def listed(problems: list[str], most: int = 6) -> str:
    """All of them, or the first few and how many more."""
    shown = sorted(problems)[:most]
    return "; ".join(shown) + (f"; and {len(problems) - most} more" if len(problems) > most else "")
