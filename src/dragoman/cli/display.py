"""Show training as it goes: a live panel on a terminal, a line every half minute elsewhere, or JSON lines.

A comparison is several runs, one after another: its stages say which one, and how long all of them will take.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from dragoman.cli.streams import carrying_on
from dragoman.jobs.events import Event, Finished, Notice, Report, Validation, flat
from dragoman.jobs.start import Planned
from dragoman.lab.stage import Stage
from dragoman.runs.record import to_json

Told = Event | Planned | Stage
SHOWN_AS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "macro_f1": "macro-F1",
    "r2": "R²",
    "mean_error": "mean error",
    "mean_iou": "mean IoU",
    "pixel_accuracy": "pixel accuracy",
}
QUIET = 30.0  # seconds between two lines where there is no terminal


def show(events: Iterable[Told], *, as_json: bool = False) -> Finished | None:
    """Show every event; the last one says how the run ended."""
    finished = None
    with (display := choose_display(as_json)):
        for event in events:
            display.show(event)
            if isinstance(event, Finished):
                finished = event
    return finished


def choose_display(as_json: bool) -> "Unharmed":
    return Unharmed(JsonLines() if as_json else Panel() if sys.stderr.isatty() else Lines())


class Unharmed:
    """A display that may fail: a run is not lost because nobody looks at it any more."""

    def __init__(self, display: "JsonLines | Panel | Lines") -> None:
        self.display = display

    def __enter__(self) -> "Unharmed":
        with carrying_on():
            self.display.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        with carrying_on():
            self.display.__exit__(*problem)

    def show(self, event: Told) -> None:
        with carrying_on():
            self.display.show(event)


class JsonLines:
    """For programs, on standard output."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def show(self, event: Told) -> None:
        if isinstance(event, Planned):
            line: dict[str, Any] = {"event": "planned", **dict(event.lines)}
        else:
            named = flat(event) if isinstance(event, Validation) else event._asdict()
            values = {key: str(v) if isinstance(v, Path) else v for key, v in named.items()}
            line = {"event": type(event).__name__.lower(), **values}
        print(to_json(line), flush=True)


class Lines:
    """For logs and pipes."""

    def __init__(self) -> None:
        self.last = 0.0
        self.stage: Stage | None = None

    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

    def show(self, event: Told) -> None:
        match event:
            case Planned(lines):
                for word, sentence in lines:
                    say(f"{word:>9}  {sentence}")
            case Stage():
                self.stage = event
                say(f"  compare  {stage_words(event)}")
            case Notice(sentence):
                say(f"     note  {sentence}")
            case Report():
                if time.monotonic() - self.last >= QUIET or event.step == event.steps:
                    self.last = time.monotonic()
                    say(report_line(event) + in_all(self.stage, event))
            case Validation():
                say(validation_line(event))
                for source, output, _ in event.samples:
                    say(f"           {source} → {output}" if source else f"           {output}")
            case Finished():
                say(finished_line(event))


class Panel:
    """For people at a terminal: a bar, the numbers, and a few sentences as they improve."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(None),
            TextColumn("{task.fields[numbers]}"),
            console=self.console,
        )
        self.task = self.bar.add_task("step 0", total=None, numbers="")
        self.stage: Stage | None = None
        self.scores, self.samples = Text(""), Table.grid(padding=(0, 1))
        self.live = Live(self.render(), console=self.console, refresh_per_second=4, transient=False)

    def __enter__(self) -> None:
        self.live.start()

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def render(self) -> Group:
        return Group(self.bar, self.scores, self.samples)

    def show(self, event: Told) -> None:
        match event:
            case Planned(lines):
                for word, sentence in lines:
                    self.console.print(Text.assemble((f"{word:>9}  ", "bold cyan"), sentence))
            case Stage():
                self.stage = event
                self.console.print(Text.assemble(("  compare  ", "bold magenta"), stage_words(event)))
                self.bar.reset(self.task, total=None, description=event.doing, numbers="")
                self.scores, self.samples = Text(""), Table.grid()
            case Notice(sentence):
                self.console.print(Text.assemble(("     note  ", "bold yellow"), sentence))
            case Report():
                numbers = (
                    f"loss {event.nats_per_token:.3f} · {event.tokens_per_second:,.0f} {event.counted}/s · "
                    f"{clock(event.seconds_left)} left{in_all(self.stage, event)}"
                )
                self.bar.update(
                    self.task, description=f"step {event.step:,}/{event.steps:,}", completed=event.step,
                    total=event.steps, numbers=numbers,
                )  # fmt: skip
            case Validation():
                self.scores = Text(validation_line(event).strip())
                self.samples = sample_table(event)
            case Finished():
                self.console.print(Text.assemble(("     done  ", "bold green"), finished_line(event).strip()))
        self.live.update(self.render())


def sample_table(event: Validation) -> Table:
    table = Table.grid(padding=(0, 1))
    for sample in event.samples:
        if sample.source:
            table.add_row(Text("  source", style="dim"), Text(sample.source))
        table.add_row(Text("  output", style="bold"), Text(sample.output, style="bold"))
        if sample.reference:
            table.add_row(Text("   right", style="dim"), Text(sample.reference, style="dim"))
    return table


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def stage_words(stage: Stage) -> str:
    return f"{stage.number} of {stage.of} · {stage.model} · {stage.doing}"


def in_all(stage: Stage | None, report: Report) -> str:
    return f", {clock(stage.seconds_left(report))} in all" if stage else ""


def report_line(event: Report) -> str:
    return (
        f"     step  {event.step:,}/{event.steps:,} · epoch {event.epoch:.1f} · loss {event.nats_per_token:.3f} · "
        f"{event.tokens_per_second:,.0f} {event.counted}/s · {clock(event.seconds_left)} left"
    )


def validation_line(event: Validation) -> str:
    scores = "".join(f" · {SHOWN_AS.get(name, name)} {value:.4g}" for name, value in event.scores.items())
    best = ", the best so far" if event.best else ""
    return f"    valid  step {event.step:,} · loss {event.nats_per_token:.3f}{scores}{best}"


def finished_line(event: Finished) -> str:
    kind = "the mean of the last checkpoints" if event.averaged else "the best checkpoint"
    return f"     done  {event.reason}; the model is {kind} (validation loss {event.best_nats:.3f}): {event.run}"


def clock(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
