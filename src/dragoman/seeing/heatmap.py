"""Attention as one web page: no script, no network; every weight is a coloured cell that tells its number."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.maps import AttentionMap

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #ffffff; --faint: #61616b; --cell: 37, 99, 235; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8ee; --paper: #16161a; --faint: #a0a0aa; --cell: 96, 165, 250; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 75rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2.5rem 0 .25rem; font-weight: 600; }
p, figcaption { color: var(--faint); margin: .25rem 0; }
.scroll { overflow-x: auto; } .heads { display: flex; flex-wrap: wrap; gap: 1.25rem; }
figure { margin: .75rem 0; }
table { border-collapse: collapse; } th { font-weight: 400; font-size: .85rem; white-space: pre; }
thead th { writing-mode: vertical-rl; rotate: 180deg; text-align: left; padding: .25rem 0; }
tbody th { text-align: right; padding-right: .5rem; }
td { width: 1.5rem; height: 1.5rem; background: rgba(var(--cell), var(--w)); border: 1px solid rgba(127,127,127,.15); }
thead td { width: auto; height: auto; background: none; border: 0; }
.small th, .small thead { display: none; } .small td { width: .5rem; height: .5rem; border: 0; }
summary { cursor: pointer; color: var(--faint); }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Shown(NamedTuple):
    """One sentence with what its writing looked at."""

    source: str
    output: str
    maps: list[AttentionMap]


def attention_page(title: str, note: str, sentences: Sequence[Shown]) -> str:
    body = "\n".join(section(shown) for shown in sentences)
    return page(title, f"<p>{escape(note)}</p>\n{body}")


def page(title: str, body: str, style: str = STYLE, policy: str = POLICY) -> str:
    """A whole web page that loads nothing from anywhere; its policy has the browser hold it to that."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1>{body}\n</main></body></html>\n"
    )


def section(shown: Shown) -> str:
    """The mean over all heads large, every head small behind a click."""
    cross = cross_maps(shown.maps)
    heads = "".join(
        f"<figure>{grid(head, found, small=True)}<figcaption>block {block}, head {number}</figcaption></figure>"
        for block, found in enumerate(cross, start=1)
        for number, head in enumerate(found.weights, start=1)
    )
    return (
        f"<section><h2>{escape(shown.source)} → {escape(shown.output)}</h2>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="mean over all heads">'
        f"{grid(mean_weights(cross), cross[0], small=False)}</div>"
        f'<details><summary>every head of every decoder block</summary><div class="heads">{heads}</div></details>'
        f"</section>"
    )


def cross_maps(maps: Sequence[AttentionMap]) -> list[AttentionMap]:
    """Those of the decoder looking at the source; none for a model without attention."""
    return [found for found in maps if found.layer.endswith("source_attention")]


def mean_weights(maps: Sequence[AttentionMap]) -> Float[Tensor, "Q K"]:
    """The mean over all heads of all blocks."""
    return sum((found.weights.mean(dim=0) for found in maps[1:]), maps[0].weights.mean(dim=0)) / len(maps)


def grid(weights: Float[Tensor, "Q K"], labels: AttentionMap, *, small: bool) -> str:
    """Rows are written tokens, columns are source tokens; a row sums to one."""
    head = "".join(f"<th>{escape(key)}</th>" for key in labels.keys)
    rows = "".join(
        f"<tr><th>{escape(query)}</th>{cells(row, query, labels.keys)}</tr>"
        for query, row in zip(labels.queries, weights.tolist(), strict=True)
    )
    kind = ' class="small"' if small else ""
    return f"<table{kind}><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>"


def cells(row: list[float], query: str, keys: list[str]) -> str:
    return "".join(
        f'<td style="--w:{weight:.3f}" title="{escape(query)} ← {escape(key)}: {weight:.3f}"></td>'
        for key, weight in zip(keys, row, strict=True)
    )
