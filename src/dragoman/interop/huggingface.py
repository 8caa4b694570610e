"""A Hugging Face folder: config.json, weights, generation_config.json and tokenizer files, as they are.

Weights are read from model.safetensors, from its parts where it is cut up, or from pytorch_model.bin. The last is a
pickle, which can run code as it is opened: it is read by torch's `weights_only`, which refuses all but tensors.
"""

import json
import pickle
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from dragoman.config import Settings
from dragoman.errors import DataError, UsageError
from dragoman.interop.tables import Table
from dragoman.modules.activations import named_by_huggingface
from dragoman.runs.files import MANIFEST
from dragoman.text.tokenizer import Tokenizers, one_line

WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"
ACTIVATIONS = named_by_huggingface("gelu", "relu", "gelu-tanh")  # ours for theirs
Notice = Callable[[str], None]
Kind = TypeVar("Kind", bound=Settings)


class Folder(NamedTuple):
    path: Path
    config: dict[str, Any]  # config.json
    generation: dict[str, Any]  # generation_config.json; config.json where it is absent, as older folders have it
    tokenizer: dict[str, Any]  # tokenizer_config.json, over special_tokens_map.json

    @property
    def architecture(self) -> str:
        named = self.config.get("architectures") or [""]
        return str(named[0])

    def one_of(self, name: str, *known: Any) -> Any:
        """A setting that must have one of these values; the first one where it is not there."""
        value = self.config.get(name, known[0])
        if value not in known:
            choices = " or ".join(repr(one) for one in dict.fromkeys(known))
            raise DataError(
                "E-IMP-02", f"{self.path} has {name} = {value!r} and dragoman knows {choices}; it cannot be imported"
            )
        return value

    def settings(self, kind: type[Kind], values: dict[str, Any]) -> Kind:
        """Ours of this kind; what they cannot be is a fault of the folder."""
        try:
            return kind.read(values, section="model")
        except UsageError as problem:
            raise DataError("E-IMP-02", f"{self.path} cannot be imported: {problem.sentence}") from None

    def token(self, name: str, usual: str) -> str:
        """A token by what it is for, such as `mask_token`; some files give it as an object."""
        given = self.tokenizer.get(name) or usual
        return str(given["content"] if isinstance(given, dict) else given)

    def token_id(self, name: str, usual: int) -> int:
        """An id by what it is for, such as `pad_token_id`; the first one where there are several."""
        return self.token_ids(name, usual)[0]

    def token_ids(self, name: str, usual: int) -> list[int]:
        """All that there are of it, such as `eos_token_id`: as `generate` takes it, or as the model says."""
        given = next((place[name] for place in (self.generation, self.config) if place.get(name) is not None), usual)
        ids = list(dict.fromkeys(given)) if isinstance(given, list) else [given]
        wrong = [one for one in ids if not isinstance(one, int) or isinstance(one, bool) or one < 0]
        if wrong or not ids:
            raise DataError(
                "E-IMP-02", f"{self.path} has {name} = {given!r}, and an id is a number from 0 on; fetch it again"
            )
        return ids

    def naming(self, token: int) -> str:
        """A special id with the name that it is given under; or as the usual one, where no file gives it."""
        names = [
            name
            for name, given in {**self.config, **self.generation}.items()
            if name.endswith("_token_id") and (token in given if isinstance(given, list) else given == token)
        ]
        return f"{' = '.join(names)} = {token}" if names else f"no id for a special token, which is then {token},"

    def longest(self, usual: int) -> int:
        """Tokens that a text may have by its tokenizer; a number beyond all sense says that nobody knows."""
        given = self.tokenizer.get("model_max_length") or usual
        return int(given) if given < 1 << 20 else usual


class Foreign(NamedTuple):
    """What a kind of model is here: each part read off its folder."""

    config: Callable[[Folder], Settings]
    table: Callable[[Folder, Collection[str]], Table]  # given the names of the tensors that there are
    tokenizers: Callable[[Folder], Tokenizers] | None  # None where it reads images
    about: Callable[[Folder, Settings], dict[str, Any]]  # how to use it, as a model's folder has it


def is_huggingface(path: Path) -> bool:
    """Whether this folder's config.json is one of theirs: ours has a manifest beside it, and a `format`."""
    ours = {"format": 0}
    return not (path / MANIFEST).is_file() and "format" not in read_json(path / "config.json", ours)


def open_folder(path: Path) -> Folder:
    config = read_json(path / "config.json")
    maps = {**read_json(path / "special_tokens_map.json", {}), **read_json(path / "tokenizer_config.json", {})}
    return Folder(path, config, read_json(path / "generation_config.json", config), maps)


def read_json(path: Path, absent: dict[str, Any] | None = None) -> dict[str, Any]:
    if absent is not None and not path.is_file():
        return absent
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise DataError("E-IMP-01", f"{path} cannot be read ({one_line(problem)}); fetch the folder again") from None
    if not isinstance(values, dict):
        raise DataError("E-IMP-01", f"{path} holds no settings but {type(values).__name__}; fetch the folder again")
    return values


def read_weights(path: Path, notice: Notice) -> dict[str, Tensor]:
    if (path / WEIGHTS).is_file():
        return read_file(path / WEIGHTS)
    for index, read in ((f"{WEIGHTS}.index.json", read_file), (f"{PICKLED}.index.json", read_pickle)):
        if (path / index).is_file():
            files = sorted({str(file) for file in read_json(path / index).get("weight_map", {}).values()})
            found = {name: tensor for file in files for name, tensor in read(path / Path(file).name).items()}
            if read is read_pickle:
                notice(said(path, files))
            return found
    if (path / PICKLED).is_file():
        found = read_pickle(path / PICKLED)
        notice(said(path, [PICKLED]))
        return found
    raise DataError("E-IMP-01", f"{path} holds neither {WEIGHTS} nor {PICKLED}; fetch its weights too")


def said(path: Path, files: list[str]) -> str:
    return f"{', '.join(files)} in {path} is a pickle; only tensors were read from it, no code was run"


def read_file(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as problem:
        raise DataError("E-IMP-01", f"{path} cannot be read ({one_line(problem)}); fetch it again") from None


def read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of pickles in another manner than torch's own
            weights = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise DataError(
            "E-IMP-04", f"{path} holds more than tensors, which could run code; nothing of it was run: do not trust it"
        ) from None
    except Exception as problem:  # bytes of any kind may stand there, and torch raises many kinds for them
        raise DataError("E-IMP-01", f"{path} cannot be read ({one_line(problem)}); fetch it again") from None
    if not isinstance(weights, dict) or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise DataError("E-IMP-04", f"{path} is no list of tensors; it cannot be imported")
    return weights
