"""Every activation with its slope, side by side: where a curve is flat, nothing is learned through it."""

from collections.abc import Callable

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from dragoman.modules.activations import ACTIVATIONS, softmax, softmax_slope
from dragoman.seeing.plots import COLOURS, STYLE

REACH = 4.0  # to both sides


def draw_activations() -> Figure:
    """A panel each: the curve, and dashed its slope. Softmax is drawn as the probability of x beside three zeros."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.0, 5.0), layout="constrained")
        panels = figure.subplots(2, 4, sharex=True).flatten()
    for axes, (name, row) in zip(panels, ACTIVATIONS.items(), strict=False):
        draw(axes, name, row.function, row.slope)
    draw(
        panels[len(ACTIVATIONS)],
        "softmax of (x, 0, 0, 0)",
        lambda x: softmax(beside_zeros(x))[:, 0],
        lambda x: softmax_slope(beside_zeros(x))[:, 0, 0],
    )
    panels[0].legend(frameon=False, loc="upper left")
    return figure


def draw(axes: Axes, name: str, function: Callable[[Tensor], Tensor], slope: Callable[[Tensor], Tensor]) -> None:
    x = torch.linspace(-REACH, REACH, 800)  # an even number: 0, where relu has no slope, is not among them
    axes.axhline(0, color="black", linewidth=0.5)
    axes.axvline(0, color="black", linewidth=0.5)
    axes.plot(x, function(x), color=COLOURS[0], label="f(x)")
    axes.plot(x, slope(x), color=COLOURS[1], linestyle="--", label="f′(x)")
    axes.set(title=name, ylim=(-1.2, 2.2))
    axes.grid(alpha=0.25)


def beside_zeros(x: Tensor) -> Tensor:
    return torch.nn.functional.pad(x[:, None], (0, 3))
