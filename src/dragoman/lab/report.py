"""The outcome of a comparison as files: report.md, report.json, report.html, and the plots as PNG and SVG."""

from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from dragoman.decoding.maps import AttentionMap
from dragoman.lab.results import Compared, HeldOut, Looked, Report, Translated
from dragoman.lab.tables import all_tables, translated
from dragoman.runs.files import write_file
from dragoman.seeing import plots
from dragoman.seeing.comparison import Output, Plot, SideBySide, Table, comparison_page

TITLE = "Models compared"


def write_report(folder: Path, report: Report) -> list[Path]:
    """Write everything; the paths of the three reports."""
    drawn = draw(folder / "plots", report)
    contents = {
        "report.md": to_markdown(report, [plot.name for plot in drawn]),
        "report.json": to_json(report),
        "report.html": comparison_page(TITLE, introduction(report), all_tables(report), drawn, side_by_side(report)),
    }
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]


def draw(folder: Path, report: Report) -> list[Plot]:
    folder.mkdir(exist_ok=True)
    losses = [
        plots.Losses(
            one.name,
            (one.trained.training.minutes, one.trained.training.nats),
            (one.trained.validation.minutes, one.trained.validation.nats),
        )
        for one in report.models
    ]
    scores = [(one.name, one.measured.scores) for one in report.models]
    lengths = [(one.name, one.measured.by_length) for one in report.models if isinstance(one.measured, Translated)]
    what = "token" if report.task == "translate" else "item"
    drawn = [("scores", "Scores with 95 % intervals", plots.draw_scores(scores))]
    if lengths:
        drawn.append(("lengths", "BLEU by the length of the source", plots.draw_lengths(lengths)))
    drawn.append(("losses", f"Loss in nats per {what}", plots.draw_losses(losses, what)))
    return [Plot(name, caption, plots.save(figure, folder / name)) for name, caption, figure in drawn]


def to_json(report: Report) -> str:
    """Every figure; what the models put out for the test set stands beside them, a line each."""
    without: Any = {"models": {"__all__": {"measured": {"outputs"}}}, "test": {"names", "labels"}}
    return TypeAdapter(Report).dump_json(report, indent=1, exclude=without).decode() + "\n"


def introduction(report: Report) -> list[str]:
    """What all models had in common, in sentences."""
    test = report.test
    names = " ".join(Path(path).name for path in report.corpora)
    what = "source" if report.task == "translate" else "item"
    leak = test.leak or f"No {what} of {' '.join(Path(path).name for path in test.files)} stands in the training data."
    return [
        f"{len(report.models)} models, trained on {names} with {report.budget} each: the same data, "
        f"{'the same tokenizer, ' if report.tokenizer else ''}the same batches of {report.batch}, seed {report.seed}.",
        leak,
    ]


# ── words ─────────────────────────────────────────────────────────────────────────────────


def to_markdown(report: Report, drawn: list[str]) -> str:
    parts = [f"# {TITLE}", *introduction(report)]
    for table in all_tables(report):
        parts += [f"## {table.title}", table.note, markdown_table(table)]
    parts += ["## Plots", *(f"![{name}](plots/{name}.png)" for name in drawn)]
    if sentences := side_by_side(report):
        parts += ["## Sentences", *map(markdown_sentence, sentences)]
    parts += ["## Signatures", *(f"- {score.name}: `{score.signature}`" for score in report.models[0].measured.scores)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table, align: str = "--:") -> str:
    rows = [table.header, ["---", *[align] * (len(table.header) - 1)], *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def markdown_sentence(sentence: SideBySide) -> str:
    rows = [["source", sentence.source], ["reference", sentence.reference]]
    rows += [[output.model, output.text] for output in sentence.outputs]
    return markdown_table(Table("", "", ["", ""], rows), align="---")


# ── sentences with their attention ────────────────────────────────────────────────────────


def side_by_side(report: Report) -> list[SideBySide]:
    """Of translators; where classifiers differ is a table."""
    if not isinstance(report.test, HeldOut):
        return []
    return [
        SideBySide(shown.source, shown.reference, [output_of(one, place) for one in report.models])
        for place, shown in enumerate(report.test.shown)
    ]


def output_of(one: Compared, place: int) -> Output:
    sample = translated(one).samples[place]
    return Output(one.name, sample.output, as_map(sample.attention) if sample.attention else None)


def as_map(looked: Looked) -> AttentionMap:
    return AttentionMap("source_attention", torch.tensor([looked.weights]), looked.written, looked.read)
