"""A model by its name: a family, parts of it, settings of it.

rnn                     a recurrent encoder-decoder as its family makes it: without attention
rnn+additive+gru        … that looks at the source, with other cells
rnn+dot:width=256       … with a setting; further ones follow after further colons
transformer+small       a preset
bag+attention           a classifier, where the task is to classify
"""

import re
from itertools import combinations
from typing import Any, NamedTuple

from dragoman.config import Settings, nearest
from dragoman.errors import UsageError
from dragoman.models import find_family, settings_without_data

Parts = dict[str, tuple[str, Any]]  # part -> the setting that it stands for, and its value


def values(setting: str, *names: str) -> Parts:
    return {name: (setting, name) for name in names}


CELLS = values("cell", "rnn", "gru", "lstm")
NORMS: Parts = {"batch-norm": ("batch_norm", True), "no-batch-norm": ("batch_norm", False)}
PARTS: dict[str, dict[str, Parts]] = {  # task -> family -> its parts
    "translate": {
        "rnn": {
            **CELLS,
            **values("attention", "none", "additive", "dot", "bilinear", "low-rank", "scaled"),
            "one-way": ("two_way", False),
            "two-way": ("two_way", True),
            "input-feeding": ("input_feeding", True),
        },
    },
    "classify": {
        "bag": values("pooling", "mean", "attention"),
        "rnn": {**CELLS, **values("pooling", "last", "mean", "attention")},
        "bert": values("pooling", "first", "mean"),
        "cnn": NORMS,
    },
    "regress": {"cnn": NORMS},
    "segment": {"cnn": NORMS},
}


class Named(NamedTuple):
    name: str
    family: str
    preset: str
    settings: dict[str, Any]
    task: str = "translate"

    @property
    def folder(self) -> str:
        """The name without what a path should not hold."""
        return re.sub(r"[^\w.+=-]", "_", self.name)

    def config(self) -> Settings:
        """The model's settings as far as its name tells them; a wrong one is refused."""
        return settings_without_data(find_family(self.task, self.family), self.told())

    def told(self) -> dict[str, Any]:
        """What the name says: its preset and its settings."""
        return {**find_family(self.task, self.family).presets.get(self.preset, {}), **self.settings}

    def is_like(self, other: "Named") -> bool:
        """Whether both would be the same model. What a name does not say is chosen from the corpus, not the default;
        only what no plan chooses, the parts of its family, is."""
        known = {key for key, _ in parts_of(self.task, self.family).values()}
        ours, theirs = ({*one.told(), *known} for one in (self, other))
        if self.family != other.family or ours != theirs:
            return False
        return all(getattr(self.config(), key) == getattr(other.config(), key) for key in ours)


def parts_of(task: str, family: str) -> Parts:
    return PARTS.get(task, {}).get(family, {})


def read_names(text: str, task: str = "translate") -> list[Named]:
    """All models of a list with commas, each of them once."""
    models = [read_name(name.strip(), task) for name in text.split(",") if name.strip()]
    if not models:
        raise UsageError("E-CMP-03", f"--models {text!r} names no model; give some, such as rnn+dot,transformer")
    for one, other in combinations(models, 2):
        if one.is_like(other):
            twice = f"{one.name} is named twice" if one.name == other.name else f"{one.name} and {other.name} are equal"
            raise UsageError("E-CMP-03", f"--models: {twice}; name each model once")
    return models


def read_name(name: str, task: str = "translate") -> Named:
    whole, *extra = name.split(":")
    family, *parts = whole.split("+")
    presets = {preset: ("preset", preset) for preset in find_family(task, family).presets}
    known = {**parts_of(task, family), **presets}
    unknown = [part for part in parts if part not in known]
    if unknown:
        hint = nearest(unknown[0], list(known))
        raise UsageError("E-CMP-02", f"{name}: the family {family} has no part {unknown[0]!r}; {hint}")
    settings = once(name, [known[part] for part in parts] + [read_setting(name, item) for item in extra])
    model = Named(name, family, settings.pop("preset", ""), settings, task)
    model.config()
    return model


def read_setting(name: str, item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals:
        raise UsageError("E-CMP-02", f"{name}: {item!r} is no setting; write {name.partition(':')[0]}:key=value")
    return key, value


def once(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as settings; a second value for one of them is a mistake and not a correction."""
    settings: dict[str, Any] = {}
    for key, value in pairs:
        if key in settings:
            raise UsageError("E-CMP-02", f"{name} sets {key} to both {settings[key]} and {value}; choose one")
        settings[key] = value
    return settings
