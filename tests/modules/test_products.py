"""Large products: our own equal torch's, whichever way the matrices lie, and a row does not hang on those beside it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dragoman import native
from dragoman.modules.linear import project
from dragoman.modules.products import product

SIZES = st.integers(1, 150)


@pytest.fixture(params=["torch", *native.LEVELS])
def way(request, monkeypatch):
    """Torch's, and our own in every build that runs here, whatever this processor would take."""
    own = request.param != "torch"
    monkeypatch.setattr(native, "has_own_products", lambda: own)
    if own:
        build, plain = native.open_build(request.param), native.open_build("plain")
        if build is None or plain is None or native.LEVELS.index(request.param) > plain.processor_level():
            pytest.skip(f"this processor has no {request.param}")
        monkeypatch.setattr(native, "library", lambda: build)
        build.use_product(None)
        yield request.param
        native.open_build(request.param)  # as it was
    else:
        yield request.param


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (5, 7, 3), (13, 600, 70), (64, 1025, 130), (7, 40, 33), (100, 64, 64), (300, 40, 70)]
)
def test_products_are_those_of_float64(shape, turned):
    rows, terms, columns = shape
    a, b = torch.randn(rows, terms), torch.randn(terms, columns)
    a, b = (x.T.contiguous().T if turn else x for x, turn in zip((a, b), turned, strict=True))
    right = a.double() @ b.double()
    made = product(a, b)
    torch.testing.assert_close(made.double(), right, atol=1e-4 * terms**0.5, rtol=1e-5)
    product(a, b, out=made, add=True)
    torch.testing.assert_close(made.double(), 2 * right, atol=2e-4 * terms**0.5, rtol=1e-5)


@pytest.mark.usefixtures("way")
def test_several_pairs_are_multiplied_each_by_itself():
    x = torch.randn(4, 30, 90)
    torch.testing.assert_close(product(x, x.mT), x @ x.mT, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(product(x.mT, x), x.mT @ x, atol=1e-4, rtol=1e-5)


def test_what_does_not_lie_in_one_piece_is_multiplied_all_the_same():
    wide, out = torch.randn(20, 60), torch.zeros(20, 40)
    torch.testing.assert_close(product(wide[:, ::2], wide[:, ::2].T), wide[:, ::2] @ wide[:, ::2].T)
    product(wide[:, :30], wide[:, :30].T, out=out[:, ::2])
    torch.testing.assert_close(out[:, ::2], wide[:, :30] @ wide[:, :30].T)
    assert (out[:, 1::2] == 0).all()
    exact = wide.double()
    torch.testing.assert_close(product(exact, exact.T), exact @ exact.T)


def test_a_row_of_our_own_does_not_hang_on_those_beside_it_nor_on_threads(way, monkeypatch):
    if way == "torch":
        pytest.skip("torch promises no such thing")

    @given(rows=SIZES, terms=SIZES, columns=SIZES, seed=st.integers(0, 99))
    @settings(max_examples=30, deadline=None)
    def holds(rows, terms, columns, seed):
        chance = torch.Generator().manual_seed(seed)
        a, b = torch.randn(rows, terms, generator=chance), torch.randn(terms, columns, generator=chance)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
        whole, some = product(a, b), slice(rows // 2, rows // 2 + 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
        assert torch.equal(product(a[some], b), whole[some])
        assert torch.equal(product(a, b), whole)

    holds()


# ── linear maps that learn ────────────────────────────────────────────────────────────────


def slopes(apply, layer, x, above):
    given = [one for one in (x, *layer.parameters()) if one.requires_grad]
    y = apply(x, layer)
    return y, torch.autograd.grad(y, given, above)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("frozen", ["", "x", "weight"])
@pytest.mark.parametrize("above", ["plain", "turned", "spread"])
def test_a_projection_is_its_layer_forwards_and_back(bias, frozen, above):
    layer, x = nn.Linear(20, 30, bias=bias), torch.randn(4, 7, 20, requires_grad=frozen != "x")
    layer.weight.requires_grad_(frozen != "weight")
    ways = {
        "plain": torch.randn(4, 7, 30),
        "turned": torch.randn(4, 30, 7).mT,
        "spread": torch.ones(()).expand(4, 7, 30),
    }
    found, wanted = (slopes(apply, layer, x, ways[above]) for apply in (project, lambda x, layer: layer(x)))
    torch.testing.assert_close(found[0], wanted[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[1], wanted[1], atol=1e-4, rtol=1e-5)


@pytest.mark.usefixtures("way")
def test_who_listens_to_a_projection_hears_it_and_no_other_map_is_taken_for_one():
    heard, layer = [], nn.Linear(5, 6)
    layer.register_forward_hook(lambda *_: heard.append(1))
    project(torch.randn(2, 3, 5), layer)
    assert heard == [1]
    x = torch.randn(2, 3, 5)
    assert project(x, nn.Identity()) is x
    with torch.no_grad():
        assert torch.equal(project(x, layer), layer(x))
    exact = nn.Linear(5, 6).double()
    assert torch.equal(project(x.double(), exact), exact(x.double()))
    assert project(x[:0], layer).shape == (0, 3, 6)
