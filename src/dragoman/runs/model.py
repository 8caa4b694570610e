"""A model's folder: weights, settings and tokenizer, enough to translate and nothing else.

config.json           the model's settings, how to search, the languages, the levels of images
tokenizer/            as trained; a model that reads images has none
weights.safetensors   the parameters by name, what is tied stored once; and the running means of batch norms
manifest.json         sha256 of each
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dragoman import models
from dragoman.errors import DataError
from dragoman.runs.files import check_folder, write_folder
from dragoman.text.tokenizer import Tokenizers, open_tokenizers

FORMAT = 1


class SavedModel(NamedTuple):
    model: nn.Module
    tokens: Tokenizers | None  # None where it reads images
    about: dict[str, Any]  # how to use it: search settings, languages, the longest sentence trained on

    @property
    def tokenizers(self) -> Tokenizers:
        if self.tokens is None:
            raise DataError("E-RUN-10", f"this model learned to {self.task} images, and reads no text; give it images")
        return self.tokens

    @property
    def task(self) -> str:
        """What it learned to do: translate, write."""
        config: Any = self.model.config
        return models.task_and_family_of(config)[0]


def save_model(
    folder: Path, config: Any, weights: Mapping[str, Tensor], tokenizers: Tokenizers | None, about: dict[str, Any]
) -> None:
    def fill(ready: Path) -> None:
        settings = {"format": FORMAT, "model": models.to_dict(config), **about}
        (ready / "config.json").write_text(json.dumps(settings, indent=1, ensure_ascii=False), encoding="utf-8")
        if tokenizers is not None:
            tokenizers.save(ready / "tokenizer")
        save_file(dict(weights), ready / "weights.safetensors")

    write_folder(folder, fill, sum(tensor.nbytes for tensor in weights.values()))


def open_model(path: Path) -> SavedModel:
    """A model's folder, or a run's folder with one in it."""
    folder = find_model(path)
    check_folder(folder)
    about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if about.pop("format") > FORMAT:
        raise DataError("E-RUN-05", f"{folder} was written by a newer dragoman; install that version to open it")
    model = models.build(models.from_dict(about.pop("model")))
    load_weights(model, read_tensors(folder / "weights.safetensors"), folder)
    tokens = open_tokenizers(folder / "tokenizer") if (folder / "tokenizer").is_dir() else None
    return SavedModel(model.eval(), tokens, about)


def task_and_family_at(path: Path) -> tuple[str, str]:
    """What the model there learned to do, and of which family it is, without opening it."""
    about = json.loads((find_model(path) / "config.json").read_text(encoding="utf-8"))
    if "format" not in about:
        raise DataError(
            "E-RUN-04", f"{path} is no model of dragoman's; if Hugging Face made it: dragoman import {path} NEW"
        )
    return about["model"].get("task", "translate"), about["model"]["family"]


def find_model(path: Path) -> Path:
    for folder in (path / "model", path / "model.old", path):  # .old: the trainer is between two renames
        if (folder / "config.json").is_file():
            return folder
    if not path.exists():
        raise DataError("E-RUN-04", f"there is no model at {path}; give the folder of a run, such as runs/<name>")
    raise DataError("E-RUN-04", f"{path} holds no model; a run has one in model/ after its first validation")


# ── weights ───────────────────────────────────────────────────────────────────────────────


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once: a tied table stands under the first of its names. And what a norm has counted so far."""
    lasting = model.state_dict().keys()  # a table that is computed, such as the waves of 2017, is not among them
    counted = {name: buffer for name, buffer in model.named_buffers() if name in lasting}
    return {name: parameter.detach() for name, parameter in model.named_parameters()} | counted


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Every parameter filled, every tensor used, every shape equal — or a list of what is not."""
    wanted = weights_of(model)
    problems = [f"{name} is missing" for name in wanted.keys() - weights.keys()]
    problems += [f"{name} is left over" for name in weights.keys() - wanted.keys()]
    problems += [
        f"{name} is {tuple(weights[name].shape)} and must be {tuple(wanted[name].shape)}"
        for name in wanted.keys() & weights.keys()
        if weights[name].shape != wanted[name].shape
    ]
    if problems:
        raise DataError("E-RUN-06", f"the weights in {folder} do not fit its settings: {'; '.join(sorted(problems))}")
    for name, tensor in wanted.items():
        tensor.copy_(weights[name])


def take_over(model: Any, old: Any, folder: Path) -> None:
    """All weights of a model of the same kind; of one of another kind its reader's, and what stands on it is new."""
    if model.config == old.config:
        load_weights(model, weights_of(old), folder)
    else:
        load_weights(model.reader, weights_of(old.reader), folder)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as problem:
        raise DataError("E-RUN-02", f"{path} is damaged: {problem}") from None
