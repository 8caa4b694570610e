"""What every writing family promises. A family added to FAMILIES is tested here with one more line in SMALL."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from dragoman import models
from dragoman.evaluation.perplexity import text_nats
from dragoman.models import FAMILIES
from dragoman.models.gpt import GptConfig
from dragoman.models.rnn_writer import RnnWriterConfig
from dragoman.models.state import Writing, select_rows
from dragoman.text.stream import WindowOrder
from dragoman.training.loop import train
from dragoman.training.objectives import WritingLoss
from dragoman.training.optimizers import make_optimizer

V = 11
SMALL = {
    **{
        cell: RnnWriterConfig(vocabulary=V, cell=cell, width=16, embedding=12, layers=2, dropout=0.0)
        for cell in ("rnn", "gru", "lstm")
    },
    "gpt": GptConfig(vocabulary=V, width=16, heads=2, layers=2, hidden=32, longest=12, dropout=0.0),
    "gpt-plain": GptConfig(
        vocabulary=V, width=16, heads=4, layers=1, hidden=32, longest=12, dropout=0.0, biases=False, tied=False,
        activation="gelu-tanh",
    ),
}  # fmt: skip
TOKENS = torch.tensor([[4, 5, 6, 7, 8, 9, 10, 2], [10, 4, 10, 5, 10, 6, 10, 7]])


@pytest.fixture(params=SMALL.values(), ids=SMALL)
def model(request):
    return models.build(request.param).eval()


@pytest.fixture
def exact(model):
    return model.double()


def test_every_family_is_tested(model):
    assert {type(config) for config in SMALL.values()} == {family.config for family in FAMILIES["write"].values()}
    assert isinstance(model, Writing)
    assert models.from_dict(models.to_dict(model.config)) == model.config


@pytest.mark.parametrize("cuts", [[0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 3, 4, 8], [0, 7, 8]], ids=str)
def test_writing_in_any_chunks_equals_writing_at_once(exact, cuts):
    state, parts = exact.begin(2), []
    for a, b in pairwise(cuts):
        logits, state = exact.decode(TOKENS[:, a:b], state)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), exact(TOKENS), atol=1e-10, rtol=0)


def test_the_future_has_exactly_no_gradient(model):
    caught = []
    handle = model.embedding.register_forward_hook(lambda _m, _i, out: caught.append(out) or out)
    logits = model(TOKENS)
    handle.remove()
    (gradient,) = torch.autograd.grad(logits[:, 3].sum(), caught[-1])
    assert gradient[:, 4:].abs().max() == 0
    assert (gradient[:, :4].abs().amax(dim=(0, 2)) > 0).all()


def test_a_text_alone_equals_itself_beside_another(exact):
    together = exact(TOKENS)
    for row in range(2):
        torch.testing.assert_close(exact(TOKENS[row : row + 1])[0], together[row], atol=1e-10, rtol=0)


def test_state_rows_can_be_reordered(exact):
    rows = torch.tensor([1, 0, 1])
    _, state = exact.decode(TOKENS[:, :4], exact.begin(2))
    a = exact.decode(TOKENS[:, 4:5], state).logits[rows]
    b = exact.decode(TOKENS[rows, 4:5], select_rows(state, rows)).logits
    torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


def test_it_learns_a_rule(model):
    """In 4 5 6 7 8 9 10 4 5 … each token follows from the one before: the loss goes to nothing."""
    ids = np.tile(np.arange(4, 11), 200)
    order = WindowOrder(ids, 8, 12, seed=1)
    batches = [[order.batch(epoch, k)] for epoch in range(12) for k in range(len(order))]
    optimizer = make_optimizer("adam", model, 1e-2)
    losses = [step.nats_per_token for step in train(model, batches, WritingLoss(), optimizer, rate=lambda _: 1e-2)]
    assert losses[-1] < 0.1 < losses[0]


@pytest.mark.parametrize("tokens", [2, 5, 41, 300])
def test_a_text_is_measured_to_its_last_token(exact, tokens):
    ids = np.random.default_rng(0).integers(4, V, tokens)
    nats, counted = text_nats(exact, ids, rows=1)
    assert nats == pytest.approx(-sum(log_prob(exact, ids, place) for place in range(1, tokens)), rel=1e-6)
    assert counted == tokens - 1


def log_prob(model, ids, place):
    """Of the token at `place`, after all that came before it; or after what a window shows, half of one at least."""
    start, longest = 0, min(getattr(model.config, "longest", len(ids)), len(ids) - 1)
    if place > longest:
        step = longest // 2
        start = min(-(-(place - longest) // step) * step, len(ids) - 1 - longest)
    return model(torch.from_numpy(ids[None, start:place])).log_softmax(-1)[0, -1, ids[place]].item()
