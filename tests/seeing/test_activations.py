"""The drawing of the activations shows what it says."""

import numpy as np
import torch

from dragoman.modules.activations import ACTIVATIONS
from dragoman.seeing.activations import draw_activations
from dragoman.seeing.plots import save_as


def test_every_activation_has_its_panel_with_its_own_numbers(tmp_path):
    figure = draw_activations()
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert list(panels)[:-1] == list(ACTIVATIONS)
    for name, row in ACTIVATIONS.items():
        curve, slope = panels[name].get_lines()[-2:]
        x = torch.as_tensor(np.asarray(curve.get_xdata()))
        np.testing.assert_allclose(curve.get_ydata(), row.function(x), atol=1e-6)
        np.testing.assert_allclose(slope.get_ydata(), row.slope(x), atol=1e-6)
    content = save_as(figure, tmp_path / "activations.png")
    assert content.startswith(b"\x89PNG")
    assert (tmp_path / "activations.png").stat().st_size == len(content)
