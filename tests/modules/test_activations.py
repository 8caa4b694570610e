"""Slopes are autograd's, extremes are harmless, and the names are those that others use."""

import pytest
import torch

from dragoman.interop.huggingface import ACTIVATIONS as THEIRS
from dragoman.modules.activations import ACTIVATIONS, activation, softmax, softmax_slope

EXTREMES = torch.tensor([-1000.0, -100.0, -20.0, 0.0, 20.0, 100.0, 1000.0])


@pytest.fixture(params=ACTIVATIONS)
def curve(request):
    return ACTIVATIONS[request.param]


def test_slopes_are_autograds(curve):
    x = torch.cat([torch.randn(200), torch.tensor([-9.0, 9.0])]).double().requires_grad_()
    (wanted,) = torch.autograd.grad(curve.function(x).sum(), x)
    torch.testing.assert_close(curve.slope(x.detach()), wanted)


def test_a_layer_computes_the_function(curve):
    x = torch.randn(50)
    assert torch.equal(curve.layer()(x), curve.function(x))


def test_extremes_are_finite_and_flat_or_straight(curve):
    values, slopes = curve.function(EXTREMES), curve.slope(EXTREMES)
    assert values.isfinite().all()
    assert slopes.isfinite().all()
    assert slopes[0].item() in (0.0, pytest.approx(0.01))
    assert slopes[-1].item() in (0.0, 1.0)


def test_softmax_is_a_distribution_that_a_shift_does_not_change():
    scores = torch.randn(5, 7).double()
    torch.testing.assert_close(softmax(scores).sum(dim=-1), torch.ones(5).double())
    torch.testing.assert_close(softmax(scores + 1000.0), softmax(scores))
    torch.testing.assert_close(softmax(EXTREMES), torch.tensor([0.0] * 6 + [1.0]))
    assert softmax(torch.full((3,), -1e30)).tolist() == pytest.approx([1 / 3] * 3)


def test_softmaxs_slope_is_autograds():
    scores = torch.randn(6).double()
    wanted = torch.autograd.functional.jacobian(softmax, scores)
    torch.testing.assert_close(softmax_slope(scores), wanted)
    torch.testing.assert_close(softmax_slope(torch.stack([scores, -scores]))[0], wanted)


def test_huggingface_names_mean_the_same_curves():
    activations = pytest.importorskip("transformers.activations")
    x = torch.linspace(-4, 4, 101)
    for name, row in ACTIVATIONS.items():
        for theirs in row.huggingface:
            torch.testing.assert_close(activations.ACT2FN[theirs](x), activation(name)(x), atol=1e-6, rtol=1e-6)
    assert THEIRS == {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh"}
