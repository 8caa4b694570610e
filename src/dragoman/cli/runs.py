"""`dragoman runs`: which runs there are, what each holds, whether it is whole. What changes something is in
runs_change.py.

The result goes to standard output, as text or with --json as one JSON object a line; notes go to standard error.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from dragoman.runs.inventory import Part, Progress, Settings, Summary

app = App(name="runs", help="list runs, show what one holds, check it, average its checkpoints, remove it")

Run = Annotated[Path, Parameter(help="a run's folder, the one with run.toml")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="print one JSON object a line")]

TOLD = {  # section -> settings that matter; of the model all do
    "asked": ("preset", "seed", "start_from", "embeddings", "source", "target"),
    "tokenizer": ("kind", "vocabulary", "joint"),
    "training": (
        "steps", "tokens_per_step", "images_per_step", "accumulate", "optimizer", "rate", "schedule", "warmup",
        "label_smoothing", "validate_every", "save_every", "patience", "average",
    ),
    "search": ("beam", "length_penalty"),
}  # fmt: skip


# ── list ──────────────────────────────────────────────────────────────────────────────────


@app.command(name="list")
def list_(
    folder: Annotated[Path, Parameter(help="where to look, folders below it included")] = Path("runs"),
    /,
    *,
    as_json: Json = False,
) -> None:
    """list every run below a folder: what it learns, how far it is, its best validation, its size"""
    from dragoman.runs.inventory import find_runs, summarise

    found = [summarise(run) for run in find_runs(folder)]
    if as_json:
        for one in found:
            print(to_json(summary_values(one)))
    elif found:
        print(draw_table([row_of(one) for one in found]))
    if not found:
        print(f"dragoman: there is no run below {folder}", file=sys.stderr)


def summary_values(one: "Summary") -> dict[str, Any]:
    return {
        "run": str(one.path),
        "name": one.path.resolve().name,
        "task": one.task,
        "family": one.family,
        **progress_values(one.progress),
        "bytes": one.bytes,
        "written": time_of(one.written).isoformat(timespec="seconds") if one.written else None,
        "problems": one.problems,
    }


def progress_values(progress: "Progress") -> dict[str, Any]:
    return {
        "step": progress.done,
        "steps": progress.planned,
        "loss": progress.loss,
        "scores": progress.scores,
        "state": progress.state,
        "finished": progress.is_finished,
    }


def row_of(one: "Summary") -> list[str]:
    progress = one.progress
    return [
        str(one.path),
        " ".join(filter(None, (one.task, one.family))),
        draw_steps(progress),
        "" if progress.loss is None else f"{progress.loss:.3f}",
        draw_scores(progress.scores, most=1),
        draw_size(one.bytes),
        f"{time_of(one.written):%Y-%m-%d %H:%M}" if one.written else "",
        "; ".join([progress.state, *one.problems] if one.task else one.problems),
    ]


def draw_table(rows: list[list[str]]) -> str:
    head = ["run", "learns to", "steps", "loss", "score", "size", "last written", "state"]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    return "\n".join(line.rstrip() for line in lines)


def draw_steps(progress: "Progress") -> str:
    done, planned = ("?" if n is None else f"{n:,}" for n in (progress.done, progress.planned))
    return f"{done} of {planned}"


def draw_scores(scores: dict[str, float], most: int) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in list(scores.items())[:most])


def draw_size(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def time_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()


# ── show ──────────────────────────────────────────────────────────────────────────────────


@app.command
def show(run: Run, /, *, as_json: Json = False) -> None:
    """show what a run holds: its settings, data, versions and checkpoints, and how it went; every byte is checked"""
    from dragoman.runs.inventory import LOG, parts, progress_of, read_settings, refuse_no_run
    from dragoman.runs.record import read_log

    refuse_no_run(run)
    settings, log = read_settings(run), read_log(run / LOG)
    values = {
        "run": str(run),
        "problem": settings.problem,
        **progress_values(progress_of(run, settings, log)),
        "versions": settings.section("run"),
        "settings": told(settings),
        "files": files_of(settings),
        "parts": [part_values(run, part) for part in parts(run, settings)],
        "model": model_card(run),
        "last_report": last_of(log, "report"),
        "last_validation": last_of(log, "validation"),
    }
    print(to_json(values) if as_json else draw_run(values))


def told(settings: "Settings") -> dict[str, dict[str, Any]]:
    chosen = {
        section: {name: settings.section(section)[name] for name in names if name in settings.section(section)}
        for section, names in TOLD.items()
    }
    return {"model": settings.section("model"), **chosen}


def files_of(settings: "Settings") -> list[dict[str, Any]]:
    """The data it was begun with; whether each file is still there, of the same size."""
    return [
        {"path": file.get("path", ""), "bytes": file.get("bytes"), "sha256": file.get("sha256", ""), "now": now(file)}
        for file in settings.section("files").values()
        if isinstance(file, dict)
    ]


def now(file: dict[str, Any]) -> str:
    path = Path(str(file.get("path", "")))
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        return "missing"
    return "there" if path.is_dir() or size == file.get("bytes") else "another size"


def part_values(run: Path, part: "Part") -> dict[str, Any]:
    from dragoman.runs.inventory import step_at

    path = run / part.name
    step = {"step": step_at(path)} if part.name.startswith("checkpoints/") else {}
    return {"run": str(run), "part": part.name, **step, "whole": not part.problem, "problem": part.problem}


def model_card(run: Path) -> dict[str, Any] | None:
    from dragoman.cli.kind import kind_of
    from dragoman.errors import DataError
    from dragoman.runs.files import read_json
    from dragoman.runs.inventory import count_numbers, model_path

    folder = model_path(run)
    try:
        about = read_json(folder / "config.json")
    except DataError:
        return None
    task, family = kind_of(folder)
    use = {name: value for name, value in about.items() if name in ("languages", "longest")}
    return {"task": task, "family": family, "numbers": count_numbers(folder / "weights.safetensors"), **use}


def last_of(log: list[dict[str, Any]], kind: str) -> dict[str, Any] | None:
    return next((line for line in reversed(log) if line.get("kind") == kind), None)


def draw_run(values: dict[str, Any]) -> str:
    lines = [(name, draw_values(about)) for name, about in values["settings"].items()]
    return "\n".join(
        f"{name:<12}{text}".rstrip()
        for name, text in [
            ("run", values["run"]),
            *([("damaged", values["problem"])] if values["problem"] else []),
            ("learns to", " ".join(str(values["versions"].get(name, "")) for name in ("task", "family"))),
            ("state", draw_state(values)),
            *lines,
            ("versions", draw_values(values["versions"], without=("task", "family"))),
            *(("data", draw_file(file)) for file in values["files"]),
            *(("part", draw_part(part)) for part in values["parts"]),
            ("model card", draw_card(values["model"])),
            ("report", draw_report(values["last_report"])),
            ("validation", draw_validation(values["last_validation"])),
        ]
    )


def draw_values(values: dict[str, Any], without: tuple[str, ...] = ()) -> str:
    plain = {name: value for name, value in values.items() if name not in without and value not in ("", None)}
    return " ".join(f"{name}={value}" for name, value in plain.items() if not isinstance(value, dict | list)) or "–"


def draw_state(values: dict[str, Any]) -> str:
    steps = " of ".join("?" if values[name] is None else f"{values[name]:,}" for name in ("step", "steps"))
    best = "" if values["loss"] is None else f", best validation {values['loss']:.3f} nats"
    scores = draw_scores(values["scores"], most=9)
    return f"{values['state']}, {steps} steps{best}{f' ({scores})' if scores else ''}"


def draw_file(file: dict[str, Any]) -> str:
    changed = "" if file["now"] == "there" else f"  now {file['now']}"
    return f"{file['path']}  {file['bytes']} bytes  sha256 {str(file['sha256'])[:16]}…{changed}"


def draw_part(part: dict[str, Any]) -> str:
    return f"{part['part']}: {part['problem'] or 'whole'}"


def draw_card(card: dict[str, Any] | None) -> str:
    if card is None:
        return "no model yet; the first validation saves one"
    numbers = "weights that cannot be read" if card["numbers"] is None else f"{card['numbers']:,} numbers"
    languages = " → ".join(filter(None, card.get("languages", [])))
    return ", ".join(filter(None, (f"{card['family']} that learned to {card['task']}", numbers, languages)))


def draw_report(report: dict[str, Any] | None) -> str:
    if report is None:
        return "none yet"
    speed = f"{report.get('counted', 'tokens')} a second"
    names = {"nats_per_token": "loss", "rate": "rate", "tokens_per_second": speed, "seconds": "seconds in all"}
    told = [f"{word} {report[name]:,.4g}" for name, word in names.items() if isinstance(report.get(name), int | float)]
    return ", ".join([f"step {report['step']:,}", *told])


def draw_validation(line: dict[str, Any] | None) -> str:
    from dragoman.runs.inventory import NO_SCORES, finite

    if line is None:
        return "none yet"
    scores = {name: line[name] for name in line if name not in NO_SCORES - {"nats_per_token"}}
    named = {
        "loss" if name == "nats_per_token" else name: value
        for name, value in scores.items()
        if finite(value) is not None
    }
    return f"step {line['step']:,}, {draw_scores(named, most=9)}{', the best' if line.get('best') else ''}"


# ── verify ────────────────────────────────────────────────────────────────────────────────


@app.command
def verify(*runs: Run, as_json: Json = False) -> int:
    """check every checkpoint, the model and the tokenizer of runs against their checksums; exit 3 if one is damaged"""
    from dragoman.errors import UsageError
    from dragoman.runs.inventory import refuse_no_run

    if not runs:
        raise UsageError("E-USE-00", "no run was named; give the folders of runs to check")
    for run in runs:
        refuse_no_run(run)
    whole = [verify_one(run, as_json) for run in runs]
    return 0 if all(whole) else 3


def verify_one(run: Path, as_json: bool) -> bool:
    from dragoman.runs.inventory import parts, read_settings, resume_point

    found = parts(run, read_settings(run))
    resume = resume_point(run, found)
    for part in found:
        word, said = ("damaged", f": {part.problem}") if part.problem else ("whole", "")
        print(to_json(part_values(run, part)) if as_json else f"{word:<9}{run / part.name}{said}")
    if as_json:
        print(to_json({"run": str(run), "resume": str(resume) if resume else None}))
    else:
        print(f"{'resume':<9}{draw_resume(run, resume, found)}")
    return not any(part.problem for part in found)


NEEDED = ("run.toml", "tokenizer", "data")  # beside a whole checkpoint, for a run to go on


def draw_resume(run: Path, resume: Path | None, found: list["Part"]) -> str:
    from dragoman.runs.inventory import step_at

    broken = [part.name for part in found if part.problem and part.name in NEEDED]
    if broken:
        return f"the same train command refuses {run}: {', '.join(broken)} must be whole; --fresh begins anew"
    if resume is not None:
        return f"the same train command goes on from {resume}, step {step_at(resume):,}"
    has = "no whole checkpoint" if any(part.name.startswith("checkpoints/") for part in found) else "no checkpoint"
    return f"{run} has {has} to go on from: the same train command refuses it, and --fresh begins anew"


app.command(
    "dragoman.cli.runs_change:average",
    name="average",
    help="write a model whose weights are the mean of several checkpoints'",
)
app.command(
    "dragoman.cli.runs_change:remove_",
    name="remove",
    help="remove a run, or only its checkpoints; what dragoman did not write into its folder stays",
)


def to_json(value: dict[str, Any]) -> str:
    return json.dumps(plain(value), ensure_ascii=False, default=str)


def plain(value: Any) -> Any:
    """JSON has neither infinity nor what is no number."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and value - value != 0 else value
