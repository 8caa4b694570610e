"""What a person asks of a comparison, and what of it may not change once it has begun. Importing this is quick."""

import json
import math
import re
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from dragoman.config import Settings
from dragoman.errors import UsageError
from dragoman.families import refuse_unknown_family
from dragoman.images.corpus import ImageCorpus, find_images, holds_images
from dragoman.runs.files import write_file
from dragoman.text.corpus import Corpus, find_corpus, fingerprint
from dragoman.text.labels import LabelledCorpus, find_labelled

RECORD = "compare.json"


class Asked(Settings):
    corpora: list[str] = Field(
        description="SOURCE and TARGET, or one or more .tsv, .jsonl, .tmx; or labelled texts; or images"
    )
    task: Literal["", "translate", "classify", "regress", "segment"] = Field(
        "", description="what is learned; else told from the files"
    )
    valid: list[str] = Field([], description="validation data; else a part is split off, the same for every model")
    test: list[str] = Field(description="what the models are measured on")
    models: str = Field(description="names with commas between them")
    out: str = Field(description="the comparison's folder")
    minutes: float | None = Field(None, description="for the training of each model at each rate")
    epochs: float | None = Field(None, description="instead of minutes: how often each model sees every pair")
    rates: Literal[1, 3] = Field(1, description="learning rates tried: the planned one; 3: also half and twice of it")
    seed: int = Field(1, ge=0, description="decides the first weights, the batches and the dropout")
    source: str = Field("", description="the source's language, where the file names do not tell")
    target: str = Field("", description="the target's language")
    encoding: str = Field("utf-8", description="of the text files")
    settings: dict[str, dict[str, Any]] = Field({}, description="section -> key -> value, for every model")

    @property
    def folder(self) -> Path:
        return Path(self.out)

    @property
    def budget(self) -> str:
        return f"{self.minutes:g} minutes" if self.minutes is not None else f"{self.epochs:g} epochs"

    @property
    def of_images(self) -> bool:
        return holds_images(self.corpora)

    @cached_property
    def learned(self) -> str:
        """The task, as asked for or as the files tell: images have labels, numbers, or masks."""
        if self.task or not self.of_images:
            return self.task or "translate"
        return find_images(self.corpora).task() or "classify"

    def find(self, files: list[str]) -> Corpus | LabelledCorpus | ImageCorpus:
        if self.of_images:
            return find_images(files)
        return find_labelled(files, self.encoding) if self.learned == "classify" else find_pairs(self, files)

    @model_validator(mode="after")
    def asks_of_texts_what_they_tell(self) -> "Asked":
        if self.task in ("regress", "segment") and not self.of_images:
            raise UsageError(
                "E-USE-08", f"--task {self.task} is for images, and {' '.join(self.corpora)} are texts; leave it out"
            )
        return self

    @model_validator(mode="after")
    def names_families_that_there_are(self) -> "Asked":
        """What else a name says is looked at later, with the models at hand (names.py)."""
        for name in filter(None, map(str.strip, self.models.split(","))):
            refuse_unknown_family(re.split("[+:]", name)[0], self.task)
        return self

    @model_validator(mode="after")
    def gives_one_budget(self) -> "Asked":
        both = self.minutes is not None and self.epochs is not None
        if both or (self.minutes is None and self.epochs is None):
            said = "both --minutes and --epochs were given" if both else "neither --minutes nor --epochs was given"
            raise UsageError("E-CMP-01", f"{said}; every model gets the same budget, so give one of the two")
        for option, value in (("--minutes", self.minutes), ("--epochs", self.epochs)):
            if value is not None and not 0 < value < math.inf:
                raise UsageError("E-CMP-01", f"{option} {value:g} is no budget to train with; give more than 0")
        if "steps" in self.settings.get("training", {}):
            raise UsageError("E-CMP-01", f"training.steps is a second budget beside {self.budget}; leave it out")
        return self


def find_pairs(asked: Asked, files: list[str]) -> Corpus:
    languages = {"source_language": asked.source or None, "target_language": asked.target or None}
    return find_corpus(files, **languages, encoding=asked.encoding)


def refuse_another(asked: Asked) -> None:
    """A folder holds one comparison: data, budget, seed and settings stay; models, rates and test set may change."""
    path = asked.folder / RECORD
    now = lasting(asked)
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else now
    changed = [key for key in sorted({*now, *before}) if now.get(key) != before.get(key)]
    if changed:
        listed = "; ".join(f"{key} was {before.get(key)!r} and is now {now.get(key)!r}" for key in changed)
        raise UsageError(
            "E-CMP-04",
            f"{asked.out} was begun otherwise: {listed}. Models are compared on equal terms; choose another --out",
        )
    write_file(path, json.dumps(now, indent=1, ensure_ascii=False))


def lasting(asked: Asked) -> dict[str, Any]:
    """What must stay the same for models trained today and tomorrow to be comparable, flat; files by their hashes."""
    plain = asked.model_dump(include={"minutes", "epochs", "seed", "source", "target", "encoding"})
    flat = {f"{section}.{key}": value for section, keys in asked.settings.items() for key, value in keys.items()}
    files = {str(path.resolve()): fingerprint(path) for path in asked.find(asked.corpora).paths}
    valid = {str(path.resolve()): fingerprint(path) for path in asked.find(asked.valid).paths} if asked.valid else {}
    task = {} if asked.learned == "translate" else {"task": asked.learned}
    return {**plain, **task, **flat, "files": files, "valid": valid}
