"""The model families. To add one: write its file, then add its line to FAMILIES."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from dragoman.config import Settings, nearest
from dragoman.errors import UsageError
from dragoman.models.transformer import Transformer, TransformerConfig

FAMILIES: dict[str, tuple[type[Settings], type[nn.Module]]] = {
    "transformer": (TransformerConfig, Transformer),
}


def build(config: Settings) -> nn.Module:
    _, model_class = FAMILIES[family_of(config)]
    return model_class(config)


def family_of(config: Settings) -> str:
    return next(name for name, (config_class, _) in FAMILIES.items() if type(config) is config_class)


def to_dict(config: Settings) -> dict[str, Any]:
    return {"family": family_of(config), **config.model_dump()}


def from_dict(values: Mapping[str, Any]) -> Settings:
    family, rest = values["family"], {name: value for name, value in values.items() if name != "family"}
    return config_class_of(family).read(rest, section="model")


def config_class_of(family: str) -> type[Settings]:
    if family not in FAMILIES:
        raise UsageError("E-SET-02", f"there is no family {family!r}; {nearest(family, list(FAMILIES))}")
    return FAMILIES[family][0]
