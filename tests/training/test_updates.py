"""What one native call does to all tensors is what torch does to one after another, in every build that runs here."""

import pytest
import torch
from torch import nn

from dragoman import native
from dragoman.training import updates
from dragoman.training.updates import Adam, add, length_of, multiply

SHAPES = [(3, 5), (1,), (130, 257), (0, 4), (7,)]  # one of them is more than a piece


@pytest.fixture(params=[*native.LEVELS, "torch"])
def build(request):
    if request.param == "torch":
        found = None
    else:
        found, plain = native.open_build(request.param), native.open_build("plain")
        if found is None or plain is None or native.LEVELS.index(request.param) > plain.processor_level():
            pytest.skip(f"this processor has no {request.param}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: found)
        yield found


def some(seed, scale=1.0):
    noise = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(shape, generator=noise) for shape in SHAPES]


def parameters():
    return [nn.Parameter(x) for x in some(0)]


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("apart", [False, True])
def test_adam_is_torchs(decay, apart):
    mine, theirs = parameters(), parameters()
    settings = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": decay, "decoupled_weight_decay": apart}
    ours, torchs = Adam(mine, **settings), torch.optim.Adam(theirs, **settings)
    for number in range(5):
        for p, q, gradient in zip(mine, theirs, some(number + 1), strict=True):
            p.grad, q.grad = gradient.clone(), gradient.clone()
        mine[1].grad = theirs[1].grad = None if number == 1 else theirs[1].grad  # it counts its own steps
        ours.step()
        torchs.step()
    for p, q in zip(mine, theirs, strict=True):
        torch.testing.assert_close(p, q, atol=2e-6, rtol=2e-6)
        for name in ("step", "exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(ours.state[p][name], torchs.state[q][name], atol=1e-6, rtol=1e-5)


@pytest.mark.usefixtures("build")
def test_a_gradient_has_the_length_it_has():
    expected = torch.cat([x.double().flatten() for x in some(3)]).norm().item()
    assert length_of(some(3)) == pytest.approx(expected, rel=1e-6)
    assert length_of([]) == 0.0


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_what_is_not_finite_has_no_finite_length(odd):
    gradients = some(3)
    gradients[2][129, 256] = odd
    assert not length_of(gradients) < float("inf")


@pytest.mark.usefixtures("build")
def test_all_are_multiplied_and_added():
    to, more = some(1), some(2)
    add(to, more)
    multiply(to, 0.5)
    for x, a, b in zip(to, some(1), some(2), strict=True):
        torch.testing.assert_close(x, (a + b) * 0.5, atol=0, rtol=0)


def test_the_number_of_threads_changes_no_bit():
    if native.library() is None:
        pytest.skip("nothing native here")
    threads, found = torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found.append(length_of([x for seed in range(20) for x in some(seed)]))
    torch.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


def test_only_ordinary_tensors_are_handed_over():
    x = torch.randn(4, 6)
    assert updates.native_for([x]) is native.library()
    for other in (x.double(), x.T, nn.Buffer(x).to("meta")):
        assert updates.native_for([x, other]) is None


def test_a_closure_is_called_with_gradients():
    [p] = [nn.Parameter(torch.ones(3))]
    optimizer = Adam([p], 0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 3.0
    assert (p < 1).all()


def test_what_torch_alone_can_do_torch_does():
    [p] = [nn.Parameter(torch.ones(3))]
    p.grad = torch.ones(3)
    Adam([p], 0.1, maximize=True).step()
    assert (p > 1).all()


def test_autograd_hears_of_what_was_changed():
    x, p = torch.randn(4, 6), nn.Parameter(torch.randn(5, 6))
    y = ((x @ p.T) @ p).sum()
    y.backward(retain_graph=True)
    Adam([p], 0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
