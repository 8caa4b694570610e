"""dragoman compare: several models, the same data and budget, one report."""

import json as json_module
import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from dragoman.lab.asked import Asked
    from dragoman.lab.compare import Done
    from dragoman.seeing.comparison import Table

WORDS = Parameter(negative="")
FILES = Parameter(consume_multiple=True, negative="")


def compare(
    *corpora: Annotated[
        str,
        Parameter(
            help="SOURCE and TARGET, line by line; or .tsv, .jsonl or .tmx; or lines of label<TAB>text; or images"
        ),
    ],
    test: Annotated[list[str], FILES],
    models: str,
    out: str,
    task: Literal["", "translate", "classify", "regress", "segment"] = "",
    valid: Annotated[list[str] | None, FILES] = None,
    minutes: Annotated[float | None, Parameter(env_var="DRAGOMAN_MINUTES")] = None,
    epochs: Annotated[float | None, Parameter(env_var="DRAGOMAN_EPOCHS")] = None,
    rates: int = 1,
    seed: Annotated[int, Parameter(env_var="DRAGOMAN_SEED")] = 1,
    threads: Annotated[int | None, Parameter(env_var="DRAGOMAN_THREADS")] = None,
    set: Annotated[list[str] | None, Parameter(negative="")] = None,
    source_language: Annotated[str, Parameter(name=["--source-language", "--src"])] = "",
    target_language: Annotated[str, Parameter(name=["--target-language", "--tgt"])] = "",
    encoding: str = "utf-8",
    json: Annotated[bool, WORDS] = False,
) -> int:
    """Train several models on equal terms and measure them on the same test set.

    All get the same data, tokenizer, batches, seed and budget. The report has scores with intervals, the significance
    between neighbours of the list, speed and size, and loss curves; of translators also scores by length, and a few
    sentences with what each model looked at; of classifiers F1 by label, of models that tell numbers R² of each, of
    those that label pixels IoU by label, and where they differ. The same command goes on with a comparison that was
    stopped; what is trained is not trained again.

    Parameters
    ----------
    test
        What the models are measured on: SOURCE TARGET, or one corpus.
    models
        Names with commas between them, in the order of the report: a family, its parts after a +, its settings after
        a colon; such as rnn,rnn+additive,rnn+dot:width=256,transformer+small.
    out
        The comparison's folder.
    task
        translate; or classify, for models that label texts, such as bag,bag+attention,rnn,bert. Images tell it
        themselves, for mlp,cnn,vit: labels to classify, numbers to regress, or masks to segment.
    valid
        Validation data, as for train. Without it a part is split off, the same for every model.
    minutes
        The time for each model's training, its preparation included (times three with --rates 3).
    epochs
        Instead of --minutes: how often each model sees every pair.
    rates
        1: each model is trained at its planned learning rate. 3: also at half and at twice of it, and the best by the
        validation loss counts.
    seed
        Decides the first weights, the order of the batches and the dropout.
    threads
        Processor threads to use; else one for each core.
    set
        One setting for every model, as section.key=value; may be repeated.
    source_language
        The source's language, such as de, where the file names do not tell; needed for some .tmx and .jsonl.
    target_language
        The target's language.
    encoding
        Of the text files.
    json
        Print every event as one JSON object a line, the report last.
    """
    from dragoman.jobs.machine import refuse_no_threads
    from dragoman.jobs.request import gather_settings
    from dragoman.lab.asked import Asked

    refuse_no_threads(threads)
    asked = Asked.read(
        {
            "corpora": list(corpora), "task": task, "valid": valid or [], "test": test, "models": models, "out": out,
            "minutes": minutes, "epochs": epochs, "rates": rates, "seed": seed, "source": source_language,
            "target": target_language, "encoding": encoding, "settings": gather_settings(set or [], None),
        },
        section="compare",
    )  # fmt: skip
    for files in (asked.corpora, asked.test, *([asked.valid] if asked.valid else [])):
        asked.find(files)  # a missing file is said before torch is imported
    done = follow(asked, threads, as_json=json)
    if json:
        report = json_module.loads((asked.folder / "report.json").read_text(encoding="utf-8"))
        print(json_module.dumps({"event": "compared", "report": report}, ensure_ascii=False))
    else:
        tell(done)
    return 0


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
