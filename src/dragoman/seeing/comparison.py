"""Models side by side on one web page: tables, plots, and a few sentences with what each model looked at."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from dragoman.decoding.maps import AttentionMap
from dragoman.seeing.heatmap import STYLE, grid, mean_weights, page

NUMBERS = """
h3 { font-size: .9rem; font-weight: 600; margin: .5rem 0; } figure p { max-width: 20rem; }
.numbers { margin: .75rem 0; font-variant-numeric: tabular-nums; }
.numbers th, .numbers td { writing-mode: horizontal-tb; rotate: none; width: auto; height: auto; background: none;
  border: 0; border-bottom: 1px solid rgba(127,127,127,.25); padding: .3rem .9rem .3rem 0; text-align: right;
  font-size: .95rem; white-space: nowrap; }
.numbers thead th { color: var(--faint); vertical-align: bottom; }
.numbers th:first-child { text-align: left; }
.plot svg { max-width: 100%; height: auto; background: #ffffff; }
.output { color: var(--ink); margin: .25rem 0; } .output b { font-weight: 600; }
"""


class Table(NamedTuple):
    title: str
    note: str
    header: list[str]
    rows: list[list[str]]  # the first cell names the row


class Plot(NamedTuple):
    name: str  # of its files
    caption: str
    svg: str


class Output(NamedTuple):
    model: str
    text: str
    attention: AttentionMap | None  # over the source


class SideBySide(NamedTuple):
    source: str
    reference: str
    outputs: list[Output]


def comparison_page(
    title: str, words: Sequence[str], tables: Sequence[Table], plots: Sequence[Plot], sentences: Sequence[SideBySide]
) -> str:
    body = [
        *(f"<p>{escape(sentence)}</p>" for sentence in words),
        *(draw_table(table) for table in tables),
        *(f'<h2>{escape(plot.caption)}</h2><div class="plot">{plot.svg}</div>' for plot in plots),
        *(draw_sentence(number, sentence) for number, sentence in enumerate(sentences, start=1)),
    ]
    return page(title, "\n".join(body), STYLE + NUMBERS)


def draw_table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in table.rows
    )
    return (
        f"<h2>{escape(table.title)}</h2><p>{escape(table.note)}</p>"
        f'<div class="scroll"><table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def draw_sentence(number: int, sentence: SideBySide) -> str:
    """Outputs first, one under the other, to be read; then what each model looked at while it wrote its own."""
    lines = [("source", sentence.source), ("reference", sentence.reference)]
    lines += [(output.model, output.text) for output in sentence.outputs]
    rows = "".join(f'<p class="output"><b>{escape(name)}</b>  {escape(text)}</p>' for name, text in lines)
    maps = "".join(map(draw_attention, sentence.outputs))
    return f'<section><h2>Sentence {number}</h2>{rows}<div class="heads">{maps}</div></section>'


def draw_attention(output: Output) -> str:
    if output.attention is None:
        shown = "<p>It has no attention: all that it knew of the source was its first state.</p>"
    else:
        shown = grid(mean_weights([output.attention]), output.attention, small=False)
    return f'<figure class="scroll"><h3>{escape(output.model)}</h3>{shown}</figure>'
