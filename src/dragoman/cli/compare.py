"""dragoman compare: several models, the same data and budget, one report."""

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dragoman.cli.options import (
    Encoding,
    Epochs,
    Files,
    Flag,
    Minutes,
    Repeated,
    Seed,
    SourceLanguage,
    TargetLanguage,
    TrainingThreads,
    Whole,
    given_budgets,
)

if TYPE_CHECKING:
    from dragoman.lab.asked import Asked
    from dragoman.lab.compare import Done
    from dragoman.seeing.comparison import Table


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What is compared, on what, and how long each model may learn."""

    test: Files
    """What the models are measured on: SOURCE TARGET, or one corpus."""
    models: str
    """Names with commas between them, in the order of the report: a family, its parts after a +, its settings after a
    colon; such as rnn,rnn+additive,rnn+dot:width=256,transformer+small."""
    out: str
    """The comparison's folder."""
    task: Literal["", "translate", "classify", "regress", "segment"] = ""
    """translate; or classify, for models that label texts, such as bag,bag+attention,rnn,bert. Images tell it
    themselves, for mlp,cnn,vit: labels to classify, numbers to regress, or masks to segment."""
    valid: Files | None = None
    """Validation data, as for train. Without it a part is split off, the same for every model."""
    minutes: Minutes = None
    """The time for each model's training, its preparation included (times three with --rates 3)."""
    epochs: Epochs = None
    """Instead of --minutes: how often each model sees every pair."""
    rates: Whole = 1
    """1: each model is trained at its planned learning rate. 3: also at half and at twice of it, and the best by the
    validation loss counts."""
    seed: Seed = 1
    threads: TrainingThreads = None
    set: Repeated = None
    """One setting for every model, as section.key=value; may be repeated."""
    source_language: SourceLanguage = ""
    target_language: TargetLanguage = ""
    encoding: Encoding = "utf-8"
    json: Flag = False
    """Print every event as one JSON object a line, the report last."""


def compare(
    *corpora: Annotated[
        str,
        Parameter(
            help="SOURCE and TARGET, line by line; or .tsv, .jsonl or .tmx; or lines of label<TAB>text; or images"
        ),
    ],
    options: Options,
) -> int:
    """Train several models on equal terms and measure them on the same test set.

    All get the same data, tokenizer, batches, seed and budget. The report has scores with intervals, the significance
    between neighbours of the list, speed and size, and loss curves; of translators also scores by length, and a few
    sentences with what each model looked at; of classifiers F1 by label, of models that tell numbers R² of each, of
    those that label pixels IoU by label, and where they differ. The same command goes on with a comparison that was
    stopped; what is trained is not trained again.
    """
    from dragoman.jobs.machine import refuse_odd_threads

    refuse_odd_threads(options.threads)
    asked = as_asked(corpora, options)
    for files in (asked.corpora, asked.test, *([asked.valid] if asked.valid else [])):
        asked.find(files)  # a missing file is said before torch is imported
    done = follow(asked, options.threads, as_json=options.json)
    if options.json:
        report = json_module.loads((asked.folder / "report.json").read_text(encoding="utf-8"))
        print(json_module.dumps({"event": "compared", "report": report}, ensure_ascii=False))
    else:
        tell(done)
    return 0


def as_asked(corpora: Sequence[str], options: Options) -> "Asked":
    from dragoman.jobs.request import gather_settings
    from dragoman.lab.asked import Asked

    same = ("task", "test", "models", "out", "rates", "seed", "encoding")
    return Asked.read(
        {
            "corpora": list(corpora),
            "valid": options.valid or [],
            "source": options.source_language,
            "target": options.target_language,
            "settings": gather_settings(options.set or [], None),
        }
        | given_budgets(options, ("minutes", "epochs"))
        | {name: getattr(options, name) for name in same},
        section="compare",
    )


def follow(asked: "Asked", threads: int | None, *, as_json: bool) -> "Done":
    """Show the comparison as it goes; what comes out of it."""
    from dragoman.cli.display import choose_display
    from dragoman.lab.compare import Done, compare

    with (display := choose_display(as_json)):
        for event in compare(asked, threads=threads):
            if isinstance(event, Done):
                done = event
            else:
                display.show(event)
    return done


def tell(done: "Done") -> None:
    from dragoman.lab.tables import all_tables

    for table in all_tables(done.report):
        if sys.stdout.isatty():
            show_table(table)
        else:
            print_table(table)
    print("\n".join(str(path) for path in done.paths))


def show_table(table: "Table") -> None:
    """For people at a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for number, name in enumerate(table.header):
        grid.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    console = Console(highlight=False)
    console.print(grid)
    console.print(Text(table.note, style="dim"), "")


def print_table(table: "Table") -> None:
    """For files and pipes: columns of equal width."""
    rows = [table.header, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]
    print(f"{table.title}\n{table.note}")
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        print("  ".join(cells).rstrip())
    print()
