"""A model's folder: weights, settings and tokenizer, enough to translate and nothing else.

config.json           the model's settings, how to search, the languages, the levels of images
tokenizer/            as trained; a model that reads images has none
shortlist.safetensors which target tokens may come up in a translation, where that was learned
weights.safetensors   the parameters by name, what is tied stored once; and the running means of batch norms
manifest.json         sha256 of each
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import save_file
from torch import Tensor, nn

from dragoman import models
from dragoman.errors import DataError
from dragoman.runs.files import check_folder, no_model, read_json, write_folder
from dragoman.runs.scrutiny import read_about, refuse_foreign_ids, refuse_no_numbers, refuse_other_sizes
from dragoman.runs.shortlist import open_shortlist, save_shortlist
from dragoman.runs.weights import load_weights, read_tensors
from dragoman.text.shortlist import Shortlist
from dragoman.text.tokenizer import Tokenizers, open_tokenizers

FORMAT = 1


class SavedModel(NamedTuple):
    model: nn.Module
    tokens: Tokenizers | None  # None where it reads images
    about: dict[str, Any]  # how to use it: search settings, languages, the longest sentence trained on
    shortlist: Shortlist | None = None

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
    folder: Path,
    config: Any,
    weights: Mapping[str, Tensor],
    tokenizers: Tokenizers | None,
    about: dict[str, Any],
    shortlist: Shortlist | None = None,
) -> None:
    def fill(ready: Path) -> None:
        settings = {"format": FORMAT, "model": models.to_dict(config), **about}
        (ready / "config.json").write_text(json.dumps(settings, indent=1, ensure_ascii=False), encoding="utf-8")
        if tokenizers is not None:
            tokenizers.save(ready / "tokenizer")
        if shortlist is not None:
            save_shortlist(ready, shortlist)
        save_file(dict(weights), ready / "weights.safetensors")

    write_folder(folder, fill, sum(tensor.nbytes for tensor in weights.values()))


def open_model(path: Path) -> SavedModel:
    """A model's folder, or a run's folder with one in it."""
    folder = find_model(path)
    check_folder(folder)
    config, about = read_about(folder, FORMAT)
    refuse_other_sizes(config, folder / "weights.safetensors")
    weights = read_tensors(folder / "weights.safetensors")
    refuse_no_numbers(weights, folder)
    tokens = open_tokenizers(folder / "tokenizer") if (folder / "tokenizer").is_dir() else None
    if tokens is not None:
        refuse_foreign_ids(tokens, config, about, folder)
    model = models.build(config)
    load_weights(model, weights, folder)
    ends = () if tokens is None else tokens.target.special.ends
    return SavedModel(model.eval(), tokens, about, open_shortlist(folder, config, ends))


def task_and_family_at(path: Path) -> tuple[str, str]:
    """What the model there learned to do, and of which family it is, without opening it."""
    about = read_json(find_model(path) / "config.json")
    if "format" not in about or not isinstance(about.get("model"), dict):
        raise DataError(
            "E-RUN-04", f"{path} is no model of dragoman's; if Hugging Face made it: dragoman import {path} NEW"
        )
    return str(about["model"].get("task", "translate")), str(about["model"].get("family"))


def find_model(path: Path) -> Path:
    for folder in (path / "model", path / "model.old", path):  # .old: the trainer is between two renames
        if (folder / "config.json").is_file():
            return folder
    if not path.exists():
        raise no_model(path)
    raise DataError("E-RUN-04", f"{path} holds no model; a run has one in model/ after its first validation")
