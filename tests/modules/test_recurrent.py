"""The recurrent cells: their equations, written out by hand here once more, and what they promise."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.models.rnn import Rnn, RnnConfig
from dragoman.modules.attention import watching
from dragoman.modules.recurrent import GATES, Reader, Recurrent, RecurrentStack, mirror

CELLS = ["rnn", "gru", "lstm"]


def sigmoid(x):
    return 1 / (1 + (-x).exp())


def by_hand(layer, xs):
    """Row by row, gate by gate, from the formulas of the lectures; not one line of the module's own code."""
    d, fused = layer.width, layer.fused
    w, u = fused.weight_ih_l0.split(d), fused.weight_hh_l0.split(d)
    b, c = fused.bias_ih_l0.split(d), fused.bias_hh_l0.split(d)
    h = m = torch.zeros(d, dtype=xs.dtype)
    states = []
    for x in xs:
        if layer.cell == "rnn":
            h = torch.tanh(w[0] @ x + b[0] + u[0] @ h + c[0])
        elif layer.cell == "gru":
            r = sigmoid(w[0] @ x + b[0] + u[0] @ h + c[0])
            z = sigmoid(w[1] @ x + b[1] + u[1] @ h + c[1])
            n = torch.tanh(w[2] @ x + b[2] + r * (u[2] @ h + c[2]))
            h = (1 - z) * n + z * h
        else:
            i, f, g, o = (w[k] @ x + b[k] + u[k] @ h + c[k] for k in range(4))
            m = sigmoid(f) * m + sigmoid(i) * torch.tanh(g)
            h = sigmoid(o) * torch.tanh(m)
        states.append(h)
    return torch.stack(states)


@pytest.fixture(params=CELLS)
def layer(request):
    made = Recurrent(request.param, 5, 7).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)  # biases too, or half of the formula is not tested
    return made


def test_the_fused_cell_equals_the_equations(layer):
    x = torch.randn(3, 6, 5, dtype=torch.float64)
    states, _ = layer(x, layer.zeros(3))
    torch.testing.assert_close(states, torch.stack([by_hand(layer, row) for row in x]), atol=1e-12, rtol=0)


def test_a_step_equals_the_fused_cell_and_so_do_its_gradients(layer):
    x = torch.randn(3, 6, 5, dtype=torch.float64, requires_grad=True)
    fused, last = layer(x, layer.zeros(3))
    state, steps = layer.zeros(3), []
    for t in range(6):
        state = layer.step(x[:, t], state)
        steps.append(state[0])
    torch.testing.assert_close(torch.stack(steps, dim=1), fused, atol=1e-12, rtol=0)
    torch.testing.assert_close(state, last, atol=1e-12, rtol=0)
    upstream = torch.randn_like(fused)
    wanted = [x, *layer.parameters()]
    a = torch.autograd.grad((fused * upstream).sum(), wanted)
    b = torch.autograd.grad((torch.stack(steps, dim=1) * upstream).sum(), wanted)
    torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


def test_a_cell_has_the_parameters_its_gates_need(layer):
    rows = GATES[layer.cell] * 7
    assert sum(p.numel() for p in layer.parameters()) == rows * (5 + 7 + 2)


def test_layers_read_the_ones_below():
    stack = RecurrentStack("gru", 4, 6, layers=2, dropout=0.0).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    whole, _ = stack(x, stack.zeros(2))
    below, _ = stack.layers[0](x, stack.layers[0].zeros(2))
    above, _ = stack.layers[1](below, stack.layers[1].zeros(2))
    torch.testing.assert_close(whole, above, atol=1e-12, rtol=0)


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_mirrored_twice_nothing_has_happened(lengths):
    x = torch.randn(len(lengths), 6, 2)
    there = torch.tensor(lengths)
    once = mirror(x, there)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(once[row, :length], x[row, :length].flip(0))
        torch.testing.assert_close(once[row, length:], x[row, length:])
    torch.testing.assert_close(mirror(once, there), x)


@pytest.mark.parametrize("two_way", [True, False], ids=["two-way", "one-way"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_reader_gives_the_states_of_both_ways_and_the_last_of_each(cell, two_way):
    reader = Reader(cell, 3, 8, layers=1, dropout=0.0, two_way=two_way).double()
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    states, [last] = reader(x, real)
    forwards = by_hand(reader.forwards[0], x[1, :3])
    if two_way:
        backwards = by_hand(reader.backwards[0], x[1, :3].flip(0)).flip(0)
        torch.testing.assert_close(states[1, :3], torch.cat([forwards, backwards], dim=-1), atol=1e-12, rtol=0)
        torch.testing.assert_close(last[1], torch.cat([forwards[-1], backwards[0]]), atol=1e-12, rtol=0)
    else:
        torch.testing.assert_close(states[1, :3], forwards, atol=1e-12, rtol=0)
        torch.testing.assert_close(last[1], forwards[-1], atol=1e-12, rtol=0)
    assert (states[1, 3:] == 0).all()


def distance_gradient(cell, steps):
    """‖∂h<last>/∂x<first>‖, the mean over a few random networks of plain torch initialisation."""
    total = 0.0
    for seed in range(5):
        torch.manual_seed(seed)
        layer = Recurrent(cell, 16, 16)
        with torch.no_grad():
            bound = 1 / math.sqrt(16)
            for parameter in layer.parameters():
                parameter.uniform_(-bound, bound)
            if cell == "lstm":
                layer.fused.bias_ih_l0[16:32] = 1.0  # the gate that forgets starts open
        x = torch.randn(4, steps, 16, requires_grad=True)
        states, _ = layer(x, layer.zeros(4))
        total += torch.autograd.grad(states[:, -1].sum(), x)[0][:, 0].norm().item()
    return total / 5


def test_the_gradient_reaches_further_back_in_an_lstm_than_in_a_plain_rnn():
    near = {cell: distance_gradient(cell, 2) for cell in ("rnn", "lstm")}
    far = {cell: distance_gradient(cell, 30) for cell in ("rnn", "lstm")}
    assert far["rnn"] / near["rnn"] < 0.01 * far["lstm"] / near["lstm"]


# ── with attention ────────────────────────────────────────────────────────────────────────


def small(**settings):
    return Rnn(
        RnnConfig(source_vocabulary=9, target_vocabulary=9, width=8, embedding=6, dropout=0.0, **settings)
    ).eval()


SOURCE = torch.tensor([[4, 5, 6, 2], [7, 8, 2, 0]])
REAL = torch.tensor([[True] * 4, [True] * 3 + [False]])


@pytest.mark.parametrize("attention", ["dot", "scaled", "bilinear", "low-rank"])
def test_with_a_zero_query_attention_is_the_mean_of_the_states(attention):
    model = small(attention=attention)
    state = model.encode(SOURCE, REAL)
    context = model.source_attention(torch.zeros(2, 1, 8), state.source[0], state.source_mask)
    values = state.source[0].values[:, 0]
    torch.testing.assert_close(context[0, 0], values[0].mean(dim=0))
    torch.testing.assert_close(context[1, 0], values[1, :3].mean(dim=0))


def test_additive_attention_asks_with_the_state_before_the_step():
    """Its first weights hang on s<0> alone: not on the first token, which the step reads."""
    weights = {}
    for attention in ("additive", "dot"):
        torch.manual_seed(1)
        model = small(attention=attention)
        for token in (1, 5):
            with watching(model) as seen:
                model.decode(torch.tensor([[token], [token]]), model.encode(SOURCE, REAL))
            weights[attention, token] = seen["source_attention"][0].weights
    assert torch.equal(weights["additive", 1], weights["additive", 5])
    assert not torch.allclose(weights["dot", 1], weights["dot", 5])


def test_without_attention_the_source_is_one_vector():
    """All that the decoder can know of the source is in its first state."""
    model = small(attention="none")
    state = model.encode(SOURCE, REAL)
    other = model.encode(SOURCE.flip(0), REAL.flip(0))
    tokens = torch.tensor([[1, 4, 5], [1, 4, 5]])
    a = model.decode(tokens, state).logits
    b = model.decode(tokens, other._replace(cells=state.cells)).logits
    assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"width": 7}, "width 7 is odd"),
        ({"input_feeding": True}, "there is nothing to tell"),
        ({"input_feeding": True, "attention": "additive"}, "the cell reads that already"),
        ({"tied": "all", "target_vocabulary": 8}, "one table cannot serve"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        RnnConfig(**{"source_vocabulary": 9, "target_vocabulary": 9, **settings})


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", ["none", "additive", "dot", "low-rank"])
def test_the_work_of_a_token_is_what_its_matrices_hold(cell, attention):
    config = RnnConfig(source_vocabulary=50, target_vocabulary=50, cell=cell, attention=attention, width=16, layers=2)
    model = Rnn(config)
    parts = [model.encoder, model.decoder, model.to_readout, model.scores, model.source_attention]
    matrices = sum(p.numel() for part in parts if part is not None for p in part.parameters() if p.ndim == 2)
    assert config.products_per_token() == matrices
