"""Plots of scores, drawn with matplotlib without a screen; those of a comparison are saved as PNG and as SVG."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dragoman.evaluation.confusion import Confusion
from dragoman.evaluation.scores import Bucket, Score
from dragoman.runs.files import write_file

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # Okabe and Ito: told apart
STYLE: dict[Any, Any] = {"svg.fonttype": "none", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
RESOLUTION = 144  # dots an inch
NOTHING = {"Date": None, "Creator": None, "Format": None, "Type": None}  # of the SVG's metadata: same plot, same bytes
Points = tuple[Sequence[float], Sequence[float]]


class Losses(NamedTuple):
    name: str
    training: Points  # minutes, nats per token or item
    validation: Points


def draw_losses(models: Sequence[Losses], what: str = "token") -> Figure:
    """Every report's loss thin, every validation's thick. Training is with dropout, so it may lie above."""
    figure, axes = new_figure(4.0)
    for number, model in enumerate(models):
        axes.plot(*model.training, color=colour(number), linewidth=0.8, alpha=0.45)
        axes.plot(*model.validation, color=colour(number), marker="o", markersize=4, label=label(model.name))
    axes.set(xlabel="minutes of training", ylabel=f"nats per {what}")
    axes.legend(frameon=False, title="validation (thin: training)")
    return figure


def draw_lengths(models: Sequence[tuple[str, Sequence[Bucket]]]) -> Figure:
    figure, axes = new_figure(3.5)
    for number, (name, buckets) in enumerate(models):
        words = [f"{bucket.words}\n({bucket.sentences:,})" for bucket in buckets]
        axes.plot(words, [bucket.bleu for bucket in buckets], color=colour(number), marker="o", label=label(name))
    axes.set(xlabel="words of the source (sentences)", ylabel="BLEU")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def draw_scores(models: Sequence[tuple[str, Sequence[Score]]]) -> Figure:
    """One panel for each score, a line for each model, in the order of the list."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 1.3 + 0.5 * len(models)), layout="constrained")
        panels = figure.subplots(1, len(models[0][1]), sharey=True, squeeze=False)[0]
    for place, axes in enumerate(panels):
        for number, (_, scores) in enumerate(models):
            score = scores[place]
            low, high = score.ends()
            apart = [[max(0.0, score.value - low)], [max(0.0, high - score.value)]] if high > low else None
            axes.errorbar(score.value, number, xerr=apart, fmt="o", color=colour(number), capsize=3)
        axes.set(xlabel=label(models[0][1][place].name, 12), ylim=(len(models) - 0.5, -0.5))
        axes.set_yticks(range(len(models)), [label(name) for name, _ in models])
        axes.grid(axis="x", alpha=0.25)
    return figure


def draw_confusion(confusion: Confusion) -> Figure:
    """A row for each right label, a column for each given one; as dark as the share of its row."""
    names = [label(name, 16) for name in confusion.classes]
    side = max(3.5, 1.5 + 0.5 * len(names))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(side, side), layout="constrained")
        axes = figure.subplots()
    shares = confusion.counts / np.maximum(1, confusion.counts.sum(axis=1, keepdims=True))
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(confusion.counts):
        ink = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, f"{count:,}", ha="center", va="center", color=ink)
    axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 4 else 0)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="given label", ylabel="right label", title=f"accuracy {confusion.accuracy:.1%}")
    return figure


def new_figure(height: float) -> tuple[Figure, Axes]:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, height), layout="constrained")
        axes = figure.subplots()
    axes.grid(axis="y", alpha=0.25)
    return figure, axes


def label(name: str, width: int = 28) -> str:
    """A long name over several lines."""
    return fill(name.replace(":", ": "), width, break_on_hyphens=False)


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def save(figure: Figure, path: Path) -> str:
    """Write path.png and path.svg; the drawing as SVG, fit to stand within a page."""
    save_as(figure, path.with_suffix(".png"))
    svg = save_as(figure, path.with_suffix(".svg")).decode("utf-8")
    return svg[svg.index("<svg") :]


def save_as(figure: Figure, path: Path) -> bytes:
    """Write it as the name's ending says, .png or .svg; what was written."""
    whole, kind = BytesIO(), path.suffix.removeprefix(".").lower()
    kept: dict[str, Any] = {"metadata": NOTHING} if kind == "svg" else {"dpi": RESOLUTION}
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": path.stem}):  # the salt keeps names apart within one page
        figure.savefig(whole, format=kind, **kept)
    write_file(path, whole.getvalue())
    return whole.getvalue()
