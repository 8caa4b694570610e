"""Which task it is, told by the request: its files, what was asked for, or the model to start from.

find       the files that a request names
prepare    them, in a run's folder
reopen     what was prepared there before
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.config import Settings
from dragoman.decoding.beam import SearchConfig
from dragoman.errors import DataError, UsageError
from dragoman.families import refuse_unknown_preset
from dragoman.images.corpus import find_images, holds_images
from dragoman.images.pixels import ENDINGS
from dragoman.jobs import classifying, embedding, pictures, texts, translating
from dragoman.jobs.filling import Filling
from dragoman.jobs.imaging import ClassifyingImages, Regressing, Segmenting
from dragoman.jobs.pictures import ImagesConfig
from dragoman.jobs.prepare import DataConfig
from dragoman.jobs.request import Request
from dragoman.jobs.restoring import Restoring
from dragoman.jobs.task import Task
from dragoman.jobs.writing import Writing
from dragoman.models import FAMILIES, USUAL, USUAL_FOR_IMAGES, find_family, settings_without_data
from dragoman.runs.model import SavedModel, task_and_family_at
from dragoman.text.corpus import files_in, is_lone_text
from dragoman.text.tokenizer import TokenizerConfig
from dragoman.training.settings import TrainingConfig

SECTIONS: dict[str, type[Settings]] = {
    "data": DataConfig,
    "images": ImagesConfig,
    "tokenizer": TokenizerConfig,
    "training": TrainingConfig,
    "search": SearchConfig,
}


class Job(NamedTuple):
    """How a task begins: its files found, then prepared in a folder, or found there."""

    find: Callable[[Request], Any]  # Sources, of a kind that `prepare` knows
    prepare: Callable[[Path, Request, Any, SavedModel | None, Callable[[str], None]], Task]
    reopen: Callable[[Path, dict[str, Any]], Task]
    sections: tuple[str, ...]  # of settings that it reads


TASKS = {
    "translate": Job(
        translating.find,
        translating.Translating.prepare,
        translating.Translating.reopen,
        ("data", "tokenizer", "training", "search"),
    ),
    "write": Job(texts.find, Writing.prepare, Writing.reopen, ("tokenizer", "training")),
    "fill": Job(texts.find, Filling.prepare, Filling.reopen, ("tokenizer", "training")),
    "restore": Job(texts.find, Restoring.prepare, Restoring.reopen, ("tokenizer", "training", "search")),
    "embed": Job(embedding.find, embedding.prepare, embedding.reopen, ("tokenizer", "training")),
    "classify": Job(
        classifying.find,
        classifying.Classifying.prepare,
        classifying.Classifying.reopen,
        ("data", "tokenizer", "training"),
    ),
}
IMAGE_TASKS = {
    task.name: Job(pictures.find, task.prepare, task.reopen, ("images", "training"))
    for task in (ClassifyingImages, Regressing, Segmenting)
}


def job_of(task: str, family: str) -> Job:
    """A text and an image are classified alike to who asks, but not to who prepares them."""
    return (IMAGE_TASKS if find_family(task, family).reads == "images" else TASKS)[task]


def resolve(request: Request) -> Request:
    """Task and family: as asked for, as the model to start from has them, or as the files tell."""
    known = task_and_family_at(Path(request.start_from)) if request.start_from else None
    if holds_images(request.corpora):
        refuse_folders_of_text(request.corpora)
        return resolve_images(request, known)
    lone = is_lone_text(request.corpora)
    if lone and not (request.task or request.family or known):
        raise UsageError(
            "E-USE-01",
            f"one plain file has no partner ({Path(request.corpora[0]).name}): to translate, give SOURCE and TARGET; "
            "to learn to write text like it, add --task write; to learn the labels of its lines, --task classify",
        )
    family = request.family or (known[1] if known else "")
    learned = known[0] if known and not (lone and known[0] == "translate") else ""  # to translate takes two texts
    task = request.task or learned or told_task(family, lone)
    family = family or USUAL.get(task, "")
    if known and (task, family) not in (known, *LEADS_TO.get(known, ())):
        raise UsageError(
            "E-USE-10",
            f"{request.start_from} is of the family {known[1]} and learned to {known[0]}, and this run is to {task} "
            f"with the family {family}; leave out --task and --family, or --from",
        )
    if request.preset:
        refuse_unknown_preset(request.preset, family)
    return request.model_copy(update={"task": task, "family": family})


def refuse_folders_of_text(paths: list[str]) -> None:
    """A folder is taken for images; one that has other files and no image was meant otherwise."""
    for path in map(Path, paths):
        files = files_in(path) if path.is_dir() else []
        if files and not any(file.suffix.lower() in ENDINGS for file in files):
            raise DataError("E-DATA-04", f"{path} is a folder without images; to learn from text, name the files in it")


def resolve_images(request: Request, known: tuple[str, str] | None) -> Request:
    """What is to be learned is told by the images: they have labels, numbers, or masks. Any reader may go on to any."""
    family = request.family or (known[1] if known else USUAL_FOR_IMAGES)
    task = request.task or find_images(request.corpora).task() or "classify"
    if task in FAMILIES and family in FAMILIES[task] and find_family(task, family).reads != "images":
        images = [name for name, one in FAMILIES[task].items() if one.reads == "images"]
        raise UsageError(
            "E-SET-02",
            f"the family {family!r} reads texts, and {request.corpora[0]} holds images; "
            f"choose --family {', '.join(images[:-1])} or {images[-1]}",
        )
    if known and known[1] != family:
        raise UsageError(
            "E-USE-10",
            f"{request.start_from} is of the family {known[1]}, and this run is to {task} images with the family "
            f"{family}; leave out --family, or --from",
        )
    return request.model_copy(update={"task": task, "family": family})


LEADS_TO = {  # what a model that learned one thing may go on to learn
    ("translate", "t5"): [("restore", "t5")],
    ("fill", "bert"): [("classify", "bert")],
    ("embed", "bert"): [("classify", "bert")],
}


def told_task(family: str, lone: bool) -> str:
    """From the family, where it learns one thing only; else from whether there is one text or pairs."""
    kinds = ("write", "fill", "restore") if lone else ("translate",)
    return next((task for task in kinds if family in FAMILIES[task]), only_task(family) or kinds[0])


def only_task(family: str) -> str:
    tasks = [task for task in TASKS if family in FAMILIES[task] and FAMILIES[task][family].trained]
    return tasks[0] if len(tasks) == 1 else ""


def with_types(request: Request) -> Request:
    """The same request with every setting as what it means: `64` and `"64"`, `1e-3` and `0.001` are one."""
    family = find_family(request.task, request.family)
    settings = {section: dict(values) for section, values in request.settings.items()}
    for section, kind in SECTIONS.items():
        if section in settings:
            settings[section] = kind.read(settings[section], section=section).model_dump(exclude_unset=True)
    if "model" in settings:
        read = settings_without_data(family, settings["model"]).model_dump()
        settings["model"] = {name: read[name] for name in settings["model"]}
    return request.model_copy(update={"settings": settings})


def refuse_unknown_settings(request: Request, task: str) -> None:
    """Before any work: a wrong name must not be found after minutes of preparing."""
    family = find_family(task, request.family)
    if not family.trained:
        others = [name for name, other in FAMILIES[task].items() if other.trained]
        raise UsageError(
            "E-USE-08",
            f"a {request.family} is not trained to {task} by itself; leave out --task, or choose --family "
            f"{' or '.join(others)}",
        )
    if request.embeddings and family.reads == "images":
        raise UsageError("E-USE-16", f"a {request.family} reads images, not words; leave out --embeddings")
    settings_without_data(family, request.asked("model"))
    for section, settings in SECTIONS.items():
        settings.read(request.asked(section), section=section)
        if request.asked(section) and section not in job_of(task, request.family).sections:
            unread = f"{section}.{next(iter(request.asked(section)))}"
            raise UsageError("E-SET-06", f"{unread} is not read where the task is to {task}; leave it out")
