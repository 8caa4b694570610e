"""What a person asks of a training run, and what of it may change when the run goes on."""

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from dragoman.config import Settings, nearest
from dragoman.errors import UsageError
from dragoman.families import refuse_unknown_family, refuse_unknown_preset, refuse_unknown_task
from dragoman.runs.record import read_toml
from dragoman.training.settings import TrainingConfig

SECTIONS = ("data", "images", "tokenizer", "model", "training", "search")
MAY_CHANGE = ("minutes", "epochs", "training.steps", "training.report_every")
PREFIX = "DRAGOMAN_"
OPTIONS = ("minutes", "epochs", "steps", "seed", "threads", "engine")  # that PREFIX may stand before, too


class Request(Settings):
    corpora: list[str] = Field(description="SOURCE and TARGET, or one or more .tsv, .jsonl, .tmx, or images")
    valid: list[str] = Field([], description="validation data, as one or two files; else a part is split off")
    out: str = Field("", description="the run's folder; else runs/<corpus>-<family>-<preset>")
    task: str = Field("", description="what is learned, such as translate, write or classify; else told from the files")
    family: str = Field("", description="which kind of model; else the usual one for the task")
    preset: str = Field(
        "", description="tiny, small, base, small-deep or base-deep; else the size is chosen from the corpus"
    )
    source: str = Field("", description="the source's language, where the file names do not tell")
    target: str = Field("", description="the target's language")
    encoding: str = Field("utf-8", description="of the text files")
    start_from: str = Field("", description="a model whose weights and tokenizer to start from")
    embeddings: str = Field("", description="vectors of words, for the tokens that are words to begin with")
    minutes: float | None = Field(None, gt=0, allow_inf_nan=False, description="the whole time this command may take")
    epochs: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="how often to see all of the corpus, whatever time it takes"
    )
    seed: int = Field(1, ge=0, description="decides the first weights, the batches and the dropout")
    settings: dict[str, dict[str, Any]] = Field({}, description="section -> key -> value")

    def asked(self, section: str) -> dict[str, Any]:
        return self.settings.get(section, {})

    def lasting(self) -> dict[str, Any]:
        """What must stay the same when a run goes on, flat: 'model.width' -> 256."""
        flat = {f"{section}.{key}": value for section, keys in self.settings.items() for key, value in keys.items()}
        plain = self.with_whole_paths().model_dump(exclude={"settings", "out"})
        return {key: value for key, value in {**plain, **flat}.items() if key not in MAY_CHANGE}

    def with_whole_paths(self) -> "Request":
        """The same files, from wherever the command is given again."""
        whole = {
            "corpora": [str(Path(path).resolve()) for path in self.corpora],
            "valid": [str(Path(path).resolve()) for path in self.valid],
            "start_from": str(Path(self.start_from).resolve()) if self.start_from else "",
            "embeddings": str(Path(self.embeddings).resolve()) if self.embeddings else "",
        }
        return self.model_copy(update=whole)

    @model_validator(mode="after")
    def names_are_known(self) -> "Request":
        """What can be told without a model: a mistake is answered at once."""
        if self.task:
            refuse_unknown_task(self.task)
        if self.family:
            refuse_unknown_family(self.family, self.task)
        if self.preset:
            refuse_unknown_preset(self.preset, self.family)
        TrainingConfig.read(self.asked("training"), section="training")
        return self

    @model_validator(mode="after")
    def parts_fit_together(self) -> "Request":
        for section in self.settings:
            refuse_unknown_section(section)
        given = [
            name
            for name, value in (
                ("--minutes", self.minutes), ("--epochs", self.epochs), ("--steps", self.asked("training").get("steps"))
            )
            if value is not None
        ]  # fmt: skip
        if self.epochs and len(given) > 1:
            raise UsageError("E-USE-13", f"{' and '.join(given)} were given, and each is a budget; give one of them")
        if self.start_from and self.embeddings:
            raise UsageError(
                "E-USE-10", f"the first vectors come from {self.start_from}; leave out --embeddings {self.embeddings}"
            )
        if self.start_from and (self.preset or self.asked("model") or self.asked("tokenizer")):
            raise UsageError(
                "E-USE-10",
                f"size and tokenizer come from {self.start_from}; leave out --preset, model.* and tokenizer.*",
            )
        return self


def refuse_changes(now: Mapping[str, Any], before: Mapping[str, Any], folder: Path) -> None:
    """A run goes on with the settings it began with; anything else would be another run under its name."""
    changed = [key for key in sorted({*now, *before}) if now.get(key) != before.get(key)]
    if changed:
        listed = "; ".join(f"{key} was {before.get(key)!r} and is now {now.get(key)!r}" for key in changed)
        raise UsageError(
            "E-RUN-09", f"{folder} was begun otherwise: {listed}. Use --fresh to begin anew, or another --out"
        )


def gather_settings(
    sets: Sequence[str], config: Path | None, environment: Mapping[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Flags over DRAGOMAN_* over the file: section -> key -> value."""
    found: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    if config is not None:
        for section, values in read_toml(config).items():
            refuse_unknown_section(section)
            if not isinstance(values, dict):
                raise UsageError("E-SET-05", f"{config}: {section} must be a section, written [{section}]")
            found[section].update(values)
    for name, value in (os.environ if environment is None else environment).items():
        if name.startswith(PREFIX):
            said = name.removeprefix(PREFIX).lower()
            section, _, key = "training_steps".partition("_") if said == "steps" else said.partition("_")
            if section in SECTIONS and key:
                found[section][key] = value
            elif said not in OPTIONS:
                raise unknown_variable(said)
    for item in sets:
        path, equals, value = item.partition("=")
        section, dot, key = path.partition(".")
        if not (equals and dot):
            raise UsageError("E-SET-05", f"--set {item} cannot be read; write --set section.key=value")
        refuse_unknown_section(section)
        key, dot, inner = key.partition(".")  # tokenizer.special.start=2
        if dot:
            outer = found[section].setdefault(key, {})
            if not isinstance(outer, dict):
                raise UsageError("E-SET-05", f"--set {item} is part of {section}.{key}, which is {outer} already")
            outer[inner] = value
        else:
            found[section][key] = value
    return {section: values for section, values in found.items() if values}


def unknown_variable(said: str) -> UsageError:
    """With the nearest right name: the first word is a section's, or an option's."""
    word, _, key = said.partition("_")
    near = difflib.get_close_matches(word, [*SECTIONS, *OPTIONS], n=1, cutoff=0.6)
    hint = f"known: SECTION_KEY ({', '.join(SECTIONS)}), {', '.join(OPTIONS)}, each after {PREFIX}"
    if near:
        name = f"{near[0]}_{key or 'KEY'}" if near[0] in SECTIONS else near[0]
        hint = f"did you mean {PREFIX}{name.upper()}?"
    return UsageError("E-SET-06", f"{PREFIX}{said.upper()} in the environment is no setting; {hint}")


def refuse_unknown_section(section: str) -> None:
    if section not in SECTIONS:
        raise UsageError("E-SET-06", f"there is no section {section!r} of settings; {nearest(section, list(SECTIONS))}")
