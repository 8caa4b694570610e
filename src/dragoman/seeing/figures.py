"""Figures for papers and slides, drawn with matplotlib without a screen: attention, positions, training.

Each function gives a figure; `plots.save_as` writes it as .png or .svg.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from torch import Tensor

from dragoman.decoding.maps import AttentionMap
from dragoman.seeing.history import Training
from dragoman.seeing.looked import Look
from dragoman.seeing.packed import Packed
from dragoman.seeing.plots import STYLE, colour
from dragoman.seeing.positions import Positions

INK = "Blues"  # the darker, the more
BOTH_WAYS = "RdBu_r"  # below 0 and above it
NUMBERED = 24  # up to so many keys there is room for a number in each cell
LABEL = 14  # letters of a token that are shown
STEEP = 5  # letters from which on the keys' tokens are set at a slant
SCORES = {"bleu": "BLEU", "chrf": "chrF", "macro_f1": "macro-F1", "r2": "R²", "mean_iou": "mean IoU"}
PLAIN: dict[Any, Any] = {**STYLE, "text.parse_math": False}  # a token may be a $


# ── attention ─────────────────────────────────────────────────────────────────────────────


def draw_attention_grid(found: AttentionMap, head: int = 0) -> Figure:
    """One head, counted from 0: a row for each token that looks, a column for each looked at, a number in each cell."""
    queries, keys = len(found.queries), len(found.keys)
    with matplotlib.rc_context(PLAIN):
        figure = Figure(figsize=(1.8 + 0.48 * keys, 1.5 + 0.4 * queries), layout="constrained")
        axes = figure.subplots()
        fill_grid(axes, found.weights[head], found.queries, found.keys)
        axes.set_title(f"{where(found)}, head {head + 1}: {found.entropy()[head]:.2f} bits", loc="left", fontsize=10)
    return figure


def fill_grid(axes: Axes, weights: Float[Tensor, "Q K"], queries: Sequence[str], keys: Sequence[str]) -> None:
    axes.imshow(weights.numpy(), cmap=INK, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    across, down = [shorten(key) for key in keys], [shorten(query) for query in queries]
    steep = max(map(len, across)) > STEEP
    axes.set_xticks(range(len(keys)), across, rotation=45 if steep else 0, ha="left" if steep else "center")
    axes.set_yticks(range(len(queries)), down)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.spines[:].set_visible(False)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("looked at", labelpad=6)
    axes.set_ylabel("looks")
    if len(keys) <= NUMBERED:
        write_numbers(axes, weights)


def write_numbers(axes: Axes, weights: Float[Tensor, "Q K"]) -> None:
    """In the cells, two digits; what is hidden or rounds to nothing stays faint."""
    for row, line in enumerate(weights.tolist()):
        for column, weight in enumerate(line):
            ink = "white" if weight > 0.55 else "black" if weight >= 0.005 else "#9a9a9a"
            text = f"{weight:.2f}".removeprefix("0") if weight >= 0.005 else "0"
            axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=8)


def draw_heads(maps: Sequence[AttentionMap]) -> Figure:
    """Every block (rows) and head (columns) of one kind as small grids, each with its entropy in bits."""
    heads = max(len(found.weights) for found in maps)
    queries, keys = len(maps[0].queries), len(maps[0].keys)
    height = min(1.8, max(0.8, 1.3 * queries / keys))
    with matplotlib.rc_context(PLAIN):
        figure = Figure(figsize=(1.0 + 1.35 * heads, 0.6 + (height + 0.35) * len(maps)), layout="constrained")
        fill_heads(figure, maps)
    return figure


def fill_heads(figure: FigureBase, maps: Sequence[AttentionMap]) -> None:
    heads = max(len(found.weights) for found in maps)
    panels = figure.subplots(len(maps), heads, squeeze=False)
    for row, found in zip(panels, maps, strict=True):
        for head, axes in enumerate(row):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(True)
            axes.spines[:].set_color("#bbbbbb")
            if head >= len(found.weights):
                axes.axis("off")
                continue
            axes.imshow(found.weights[head].numpy(), cmap=INK, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
            axes.set_title(f"{found.entropy()[head]:.2f} bits", fontsize=8, pad=3)
            if found is maps[-1]:
                axes.set_xlabel(f"head {head + 1}", fontsize=8)
        row[0].set_ylabel(f"block {found.number}", fontsize=8)
    figure.suptitle(f"{KINDS[maps[0].kind]}: rows look, columns are looked at", fontsize=10)


KINDS = {"encoder": "Encoder attention", "decoder": "Decoder attention", "cross": "Attention over the source"}


def where(found: AttentionMap) -> str:
    return f"{KINDS[found.kind]}, block {found.number}"


def shorten(token: str) -> str:
    """A token as a label; a space is to be seen."""
    shown = "".join(letter if letter.isprintable() else "·" for letter in token) if token.strip() else "␣"
    return shown if len(shown) <= LABEL else f"{shown[: LABEL - 1]}…"


def draw_look(seen: Look) -> Figure:
    """The mean over all heads, large, and below it every head: over the source where there is one."""
    kind = "cross" if any(layer.kind == "cross" for layer in seen.attention) else seen.attention[0].kind
    maps = maps_of(seen, kind)
    mean = torch.cat([found.weights for found in maps]).mean(dim=0)
    queries, keys, heads = len(maps[0].queries), len(maps[0].keys), len(maps[0].weights)
    heights = [1.6 + 0.32 * queries, 0.6 + 1.4 * len(maps)]
    width = max(1.8 + 0.45 * keys, 1.0 + 1.3 * heads, 5.0)
    with matplotlib.rc_context(PLAIN):
        figure = Figure(figsize=(width, sum(heights)), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=heights)
        above, below = parts
        axes = above.subplots()
        fill_grid(axes, mean, maps[0].queries, maps[0].keys)
        axes.set_title("the mean of all heads of all blocks", loc="left", fontsize=10)
        fill_heads(below, maps)
    return figure


def maps_of(seen: Look, kind: str) -> list[AttentionMap]:
    sides = {"source": seen.source, "given": seen.given, "written": seen.written}
    pieces = {name: side.pieces for name, side in sides.items() if side is not None}
    return [
        AttentionMap(layer.name, layer.weights.unpack(), pieces[layer.queries], pieces[layer.keys])
        for layer in seen.attention
        if layer.kind == kind
    ]


# ── positions ─────────────────────────────────────────────────────────────────────────────


def draw_positions(found: Positions) -> Figure:
    """The waves as a heat map and as curves, how close two places are, and what the model learned instead."""
    panels: list[Callable[[Axes], None]] = [
        lambda axes: fill_table(axes, found.table, "sines and cosines"),
        lambda axes: fill_waves(axes, found),
        lambda axes: fill_closeness(axes, found),
    ]
    if found.learned is not None:
        panels.insert(1, lambda axes: fill_table(axes, found.learned, "learned"))
    if found.bias is not None:
        panels.insert(1, lambda axes: fill_bias(axes, found))
    layout = [[0, 1], [0, 2]] if len(panels) == 3 else [[0, 1], [2, 3]]
    with matplotlib.rc_context(PLAIN):
        figure = Figure(figsize=(10.0, 6.0), layout="constrained")
        for place, axes in figure.subplot_mosaic(layout).items():  # type: ignore[arg-type]
            panels[place](axes)
    return figure


def fill_table(axes: Axes, table: Packed | None, name: str) -> None:
    assert table is not None
    values = table.unpack()
    most = max(float(values.abs().max()), 1e-9)
    drawn = axes.imshow(values.numpy(), cmap=BOTH_WAYS, vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    axes.set(title=name, xlabel="number of the vector", ylabel="place")
    axes.figure.colorbar(drawn, ax=axes, shrink=0.8)


def fill_waves(axes: Axes, found: Positions) -> None:
    for number, wave in enumerate(found.waves):
        label = f"{wave.dimension}: {wave.wavelength:,.1f}"
        axes.plot(wave.values.unpack(), color=colour(number), linewidth=1.2, label=label)
    axes.set(title="single numbers", xlabel="place")
    axes.legend(
        title="number: wavelength in places", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, frameon=False,
        fontsize=8, title_fontsize=8,
    )  # fmt: skip
    axes.grid(alpha=0.25)


def fill_closeness(axes: Axes, found: Positions) -> None:
    close = found.closeness
    axes.plot(close.distances, close.sinusoidal.unpack(), color=colour(0), label="sines and cosines")
    if close.learned is not None:
        axes.plot(close.distances, close.learned.unpack(), color=colour(1), label="learned")
        axes.legend(frameon=False)
    axes.set(title="how close two places are", xlabel="distance k", ylabel="p(i)·p(i+k) / |p|²")
    axes.grid(alpha=0.25)


def fill_bias(axes: Axes, found: Positions) -> None:
    """A row for each head: many lines in one picture could not be told apart."""
    assert found.bias is not None
    values, distances = found.bias.heads.unpack(), found.bias.distances
    most = max(float(values.abs().max()), 1e-9)
    edges = (distances[0] - 0.5, distances[-1] + 0.5, len(values) + 0.5, 0.5)
    drawn = axes.imshow(
        values.numpy(), cmap=BOTH_WAYS, vmin=-most, vmax=most, extent=edges, aspect="auto", interpolation="nearest"
    )
    axes.set_yticks(range(1, len(values) + 1))
    axes.set(title="added to the scores", xlabel="distance key − query", ylabel="head")
    axes.figure.colorbar(drawn, ax=axes, shrink=0.8)


# ── training ──────────────────────────────────────────────────────────────────────────────


def draw_training(found: Training) -> Figure:
    """Loss, scores and rate over the steps, one below the other; scores where there are any."""
    panels = [fill_loss, *([fill_scores] if found.validations.scores else []), fill_rate]
    with matplotlib.rc_context(PLAIN):
        figure = Figure(figsize=(8.0, 0.6 + 2.2 * len(panels)), layout="constrained")
        rows = figure.subplots(len(panels), 1, sharex=True, height_ratios=[2] * (len(panels) - 1) + [1])
        for fill, axes in zip(panels, rows, strict=True):
            fill(axes, found)
            axes.grid(alpha=0.25)
        rows[-1].set_xlabel("step")
    return figure


def fill_loss(axes: Axes, found: Training) -> None:
    """Training is with dropout, so it may lie above validation."""
    axes.plot(found.reports.step, found.reports.loss, color=colour(0), linewidth=0.9, alpha=0.6, label="training")
    if found.validations.step:
        axes.plot(
            found.validations.step, found.validations.loss, color=colour(1), marker="o", markersize=4,
            label="validation",
        )  # fmt: skip
    axes.set_ylabel(f"nats per {found.counted.removesuffix('s')}")
    axes.legend(frameon=False)


def fill_scores(axes: Axes, found: Training) -> None:
    for number, (name, values) in enumerate(found.validations.scores.items()):
        label = SCORES.get(name, name.replace("_", " "))
        drawn = [math.nan if value is None else value for value in values]
        axes.plot(found.validations.step, drawn, color=colour(2 + number), marker="o", markersize=4, label=label)
    axes.set_ylabel("score")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def fill_rate(axes: Axes, found: Training) -> None:
    axes.plot(found.reports.step, found.reports.rate, color=colour(6), linewidth=1.2)
    axes.set_ylabel("rate")
    axes.set_ylim(bottom=0)
