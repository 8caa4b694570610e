"""Several models on equal terms: the same data, tokenizer, batches, seed and budget; then the same test set.

    <out>/compare.json        what all models share, and what may not change
    <out>/<model>/run/        a training run like any other, with its model
    <out>/<model>/*.json      how it was trained and what was measured, with what that depends on
    <out>/report.*, plots/    the outcome

A generator of events, like a training run. Whatever is done is kept: killed anywhere, the same call goes on.
"""

from collections.abc import Generator, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import dragoman
from dragoman.errors import DataError, MachineError
from dragoman.images.answers import KINDS
from dragoman.images.corpus import find_images
from dragoman.jobs.events import Notice
from dragoman.jobs.machine import use_threads
from dragoman.jobs.pictures import ImagesConfig
from dragoman.jobs.plan_images import plan_model
from dragoman.jobs.tasks import refuse_unknown_settings, resolve
from dragoman.lab.asked import Asked, refuse_another
from dragoman.lab.exam import Exam, describe_test, open_exam
from dragoman.lab.memory import hash_of_model, keep, recall
from dragoman.lab.names import Named, read_names
from dragoman.lab.results import Compared, Neighbours, Outcome, Report
from dragoman.lab.stage import Stage
from dragoman.lab.train import Told, request_for, train_model
from dragoman.runs.files import MANIFEST, sha256, write_file
from dragoman.runs.lock import only_writer
from dragoman.runs.record import read_toml


class Done(NamedTuple):
    report: Report
    paths: list[Path]  # of report.md, report.json and report.html


def compare(asked: Asked, *, threads: int | None = None) -> Iterator[Told | Done]:
    """Every mistake is found before anything is trained; the last event holds the report."""
    refuse_missing_matplotlib()
    from dragoman.lab.report import write_report  # it draws

    use_threads(threads)
    models = read_names(asked.models, asked.learned)
    for model in models:
        refuse_unknown_settings(resolve(request_for(asked, model, asked.folder)), asked.learned)
    test = open_exam(asked)
    if asked.of_images:
        refuse_misfits(asked, models)
    with only_writer(asked.folder):
        refuse_another(asked)
        described = describe_test(asked, test)
        if described.leak:
            yield Notice(described.leak)
        compared: list[Compared] = []
        for model in models:
            stage = stage_of(asked, model, len(models), compared)
            compared.append((yield from compare_one(asked, model, stage, test, threads)))
            shared = what_is_shared(asked, compared)
        report = Report(
            dragoman=dragoman.__version__,
            task=asked.learned,
            corpora=asked.corpora,
            budget=asked.budget,
            seed=asked.seed,
            tokenizer=shared.get("tokenizer", ""),
            batch=f"{shared['batch']:,} {'images' if asked.of_images else 'tokens'}",
            test=described,
            models=compared,
            neighbours=[compare_two(asked, a, b, test) for a, b in pairwise(compared)],
        )
        yield Done(report, write_report(asked.folder, report))


def refuse_missing_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise MachineError(
            "E-CMP-07", "a comparison draws plots with matplotlib, which is missing: pip install 'dragoman[plot]'"
        )


def refuse_misfits(asked: Asked, models: list[Named]) -> None:
    """A model that cannot be made for images of this size is refused now, and not after others have been trained."""
    corpus = find_images(asked.corpora)
    form = corpus.form(ImagesConfig.read(asked.settings.get("images", {}), section="images").asked_size())
    told = KINDS[asked.learned].find(corpus, form).settings()
    for model in models:
        plan_model(asked.learned, form, told, request_for(asked, model, asked.folder), 1, 0.0)


# ── one model ─────────────────────────────────────────────────────────────────────────────


def compare_one(
    asked: Asked, model: Named, stage: Stage, test: Exam, threads: int | None
) -> Generator[Told, None, Compared]:
    """Train at every rate, choose the best on the validation data, measure that one on the test set."""
    runs = yield from train_model(asked, model, stage, threads)
    best = min(runs, key=lambda run: run.validation_nats)
    last = stage._replace(doing="measuring", number=stage.number + len(runs) - 1)
    measured = yield from measure_once(asked.folder / best.run, test, last)
    settings = read_toml(asked.folder / best.run / "run.toml")["model"]
    return Compared(model.name, model.family, settings, best, runs, measured)


def stage_of(asked: Asked, model: Named, models: int, before: list[Compared]) -> Stage:
    first = 1 + len(before) * asked.rates
    return Stage(model.name, "training", first, models * asked.rates, expected(asked, before))


def expected(asked: Asked, before: list[Compared]) -> float | None:
    if asked.minutes is not None:
        return 60 * asked.minutes
    known = [60 * run.minutes for one in before for run in one.rates]
    return mean(known) if known else None


def measure_once(run: Path, test: Exam, stage: Stage) -> Generator[Told, None, Outcome]:
    record, depends = run.parent / "measured.json", {"model": hash_of_model(run), "test": test.sha256}
    known = recall(record, depends, test.kind)
    if known:
        return known
    yield stage
    measured = test.measure(run)
    write_file(run.parent / test.file, "".join(f"{output}\n" for output in measured.outputs))
    keep(record, depends, measured)
    return measured


# ── several ───────────────────────────────────────────────────────────────────────────────


def compare_two(asked: Asked, first: Compared, second: Compared, test: Exam) -> Neighbours:
    runs = [asked.folder / one.trained.run for one in (first, second)]
    record = runs[1].parent / "significance.json"
    depends = {"first": first.name, "models": [hash_of_model(run) for run in runs], "test": test.sha256}
    known = recall(record, depends, Neighbours)
    if known:
        return known
    neighbours = Neighbours(first.name, second.name, test.compare(first.measured.outputs, second.measured.outputs))
    keep(record, depends, neighbours)
    return neighbours


def what_is_shared(asked: Asked, models: list[Compared]) -> dict[str, Any]:
    """The tokenizer and the size of a batch, which make the batches together with data and seed; refused if unequal."""
    found = []
    for one in models:
        run = asked.folder / one.trained.run
        training = read_toml(run / "run.toml")["training"]
        size = training["images_per_step" if asked.of_images else "tokens_per_step"]
        tokens = {} if asked.of_images else {"tokenizer": sha256(run / "tokenizer" / MANIFEST)}
        found.append({**tokens, "batch": size, "accumulate": training["accumulate"]})
    for one, shared in zip(models, found, strict=True):
        differing = [key for key in shared if shared[key] != found[0][key]]
        if differing:
            raise DataError(
                "E-CMP-05",
                f"{models[0].name} and {one.name} do not share their {', '.join(differing)}: they were not trained on "
                "equal terms; were they trained by different versions? Choose another --out",
            )
    return found[0]
