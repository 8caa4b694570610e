"""Losses, optimizers, schedules and the loop."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dragoman import models
from dragoman.images.batches import ImageBatch
from dragoman.models import FAMILIES
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.text.batches import make_batch
from dragoman.text.special import SpecialIds
from dragoman.text.stream import WindowOrder
from dragoman.training.entropy import cross_entropy
from dragoman.training.image_objectives import NamingLoss
from dragoman.training.learner import seed_of
from dragoman.training.loop import train
from dragoman.training.objectives import WritingLoss, translation_loss
from dragoman.training.optimizers import Muon, make_optimizer, matrices_and_rest, orthogonal
from dragoman.training.schedules import share_of_peak

NAMES = ["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"]


# ── the loss ──────────────────────────────────────────────────────────────────────────────


@given(rows=st.integers(1, 600), smoothing=st.sampled_from([0.0, 0.1, 0.5]))
@settings(max_examples=15, deadline=None)
def test_the_loss_and_its_gradients_are_torchs_own(rows, smoothing):
    torch.manual_seed(rows)
    states = torch.randn(rows, 5, dtype=torch.float64, requires_grad=True)
    table = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    wanted = torch.randint(7, (rows,))
    ours = cross_entropy(states, table, wanted, smoothing)
    theirs = F.cross_entropy(states @ table.T, wanted, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    for mine, reference in zip(
        torch.autograd.grad(3 * ours, [states, table]), torch.autograd.grad(3 * theirs, [states, table]), strict=True
    ):
        torch.testing.assert_close(mine, reference)


def test_a_certain_wrong_answer_costs_a_finite_amount():
    states, table = torch.tensor([[1000.0]]), torch.tensor([[1.0], [-1.0]])
    assert cross_entropy(states, table, torch.tensor([1])).item() == pytest.approx(2000)


def test_padding_is_not_counted():
    model = small_model()
    special = SpecialIds()
    together = translation_loss(model, make_batch([([4], [5]), ([4, 5, 6], [7, 8, 9])], special))
    apart = [translation_loss(model, make_batch([pair], special)) for pair in [([4], [5]), ([4, 5, 6], [7, 8, 9])]]
    assert together.tokens == sum(loss.tokens for loss in apart) == 2 + 4  # <end> is a token to be learned too
    assert together.nats.item() == pytest.approx(sum(loss.nats.item() for loss in apart), rel=1e-5)


# ── optimizers ────────────────────────────────────────────────────────────────────────────


def small_model(seed=0):
    torch.manual_seed(seed)
    return Transformer(
        TransformerConfig(
            source_vocabulary=11, target_vocabulary=11, width=16, heads=2, layers=1, hidden=24, dropout=0.0
        )
    )


RATES = {"sgd": 0.5, "momentum": 0.05, "adagrad": 0.05, "rmsprop": 0.003, "adam": 0.01, "adamw": 0.01, "muon": 0.02}


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_learns_a_batch_by_heart(name):
    model, batch = small_model(), make_batch([([4, 5, 6], [7, 8]), ([9, 10], [4, 5, 6])], SpecialIds())
    optimizer, rate = make_optimizer(name, model, RATES[name]), RATES[name]
    losses = [s.nats_per_token for s in train(model, [[batch]] * 60, translation_loss, optimizer, rate=lambda _: rate)]
    assert losses[-1] < 0.3 * losses[0]


@given(rows=st.integers(2, 12), columns=st.integers(2, 12), seed=st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_newton_and_schulz_make_singular_values_nearly_one(rows, columns, seed):
    torch.manual_seed(seed)
    spread = torch.linspace(0.2, 1, min(rows, columns))
    u, _, v = torch.linalg.svd(torch.randn(rows, columns), full_matrices=False)
    made = torch.linalg.svdvals(orthogonal((u * spread @ v)[None])[0])
    assert made.min() > 0.6
    assert made.max() < 1.3


def test_muon_takes_the_matrices_and_adam_the_rest():
    model = small_model()
    matrices, rest = matrices_and_rest(model)
    assert {id(p) for p in matrices} | {id(p) for p in rest} == {id(p) for p in model.parameters()}
    assert all(p.ndim == 2 for p in matrices)
    assert any(p is model.source_embedding.table.weight for p in rest)
    assert len(matrices) == 4 + 2 + 8 + 2


def test_the_rest_of_muon_is_torchs_adamw():
    ours, theirs = nn.Parameter(torch.randn(7, dtype=torch.float64)), None
    theirs = nn.Parameter(ours.detach().clone())
    muon = Muon([], [ours], 0.01, weight_decay=0.1)
    adam = torch.optim.AdamW([theirs], 0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1)
    for _ in range(5):
        ours.grad = torch.randn(7, dtype=torch.float64)
        theirs.grad = ours.grad.clone()
        muon.step()
        adam.step()
    torch.testing.assert_close(ours, theirs)


# ── schedules ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["inverse-sqrt", "linear", "cosine", "constant"])
def test_a_schedule_rises_to_one_and_never_above(name):
    shares = [share_of_peak(name, step, 10, 100) for step in range(1, 101)]
    assert shares[:10] == pytest.approx([step / 10 for step in range(1, 11)])
    assert max(shares) == pytest.approx(1)
    assert min(shares) > 0
    assert all(a >= b for a, b in pairwise(shares[9:]))


def test_linear_and_cosine_end_with_the_run():
    assert share_of_peak("linear", 100, 10, 100) < 0.02
    assert share_of_peak("cosine", 100, 10, 100) < 0.001
    assert share_of_peak("inverse-sqrt", 40, 10, 100) == pytest.approx(0.5)  # √(10/40), the paper's


# ── the loop ──────────────────────────────────────────────────────────────────────────────


def test_a_step_without_a_finite_gradient_changes_no_parameter():
    model, batch = small_model(), make_batch([([4], [5])], SpecialIds())
    before = {name: p.detach().clone() for name, p in model.named_parameters()}

    def broken(model, batch):
        loss = translation_loss(model, batch)
        return loss._replace(nats=loss.nats * math.nan)

    step = next(train(model, [[batch]], broken, make_optimizer("adam", model, 0.1), rate=lambda _: 0.1))
    assert not step.applied
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())


class Broken:
    """Its loss is no number at the step that `at` names."""

    def __init__(self, objective, at):
        self.objective, self.at, self.calls = objective, at, 0
        self.carried, self.carry = objective.carried, objective.carry

    def __call__(self, model, batch):
        self.calls += 1
        loss = self.objective(model, batch)
        return loss._replace(nats=loss.nats * math.nan) if self.calls == self.at else loss


def test_what_norms_count_stays_as_it_was_before_a_step_that_is_not_applied():
    settings = {"size": (8, 8), "channels": 1, "classes": ("a", "b"), "batch_norm": True}
    family = FAMILIES["classify"]["cnn"]
    model = models.build(models.settings_without_data(family, settings))
    batch = ImageBatch(torch.full((4, 1, 8, 8), math.nan), torch.tensor([0, 1, 1, 0]))
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    assert before
    step = next(train(model, [[batch]], NamingLoss(), make_optimizer("sgd", model, 0.1), rate=lambda _: 0.1))
    assert not step.applied
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())


def test_the_state_that_goes_on_is_that_of_the_last_step_that_was_applied():
    family = FAMILIES["write"]["rnn"]
    told = {"vocabulary": 11, "width": 8, "embedding": 8}
    model = models.build(models.settings_without_data(family, told))
    objective = Broken(WritingLoss(), at=2)
    windows = WindowOrder(np.arange(400) % 7 + 4, 3, 9, 1)
    batches = [[windows.batch(0, k)] for k in range(2)]
    steps = train(model, batches, objective, make_optimizer("sgd", model, 0.1), rate=lambda _: 0.1)
    assert next(steps).applied
    before = [tensor.clone() for tensor in objective.carried()]
    assert before
    assert not next(steps).applied
    assert all(torch.equal(a, b) for a, b in zip(objective.carried(), before, strict=True))


def test_gradients_are_clipped_to_a_length():
    model, batch = small_model(), make_batch([([4, 5], [5])], SpecialIds())
    step = next(
        train(
            model, [[batch]], translation_loss, torch.optim.SGD(model.parameters(), 0.1), rate=lambda _: 0.0, clip=0.01
        )
    )
    assert step.gradient_norm > 0.01
    assert math.sqrt(sum((p.grad**2).sum().item() for p in model.parameters())) == pytest.approx(0.01, rel=1e-3)


def test_dropout_depends_on_the_place_in_the_run_not_on_its_past():
    config = TransformerConfig(
        source_vocabulary=11, target_vocabulary=11, width=16, heads=2, layers=1, hidden=24, dropout=0.3
    )
    batch = make_batch([([4, 5], [5, 6])], SpecialIds())
    frozen = partial(train, objective=translation_loss, rate=lambda _: 0.0)
    torch.manual_seed(0)
    model = Transformer(config)
    whole = [s.nats_per_token for s in frozen(model, [[batch]] * 5, optimizer=torch.optim.SGD(model.parameters(), 0.0))]
    later = [
        s.nats_per_token
        for s in frozen(model, [[batch]] * 2, optimizer=torch.optim.SGD(model.parameters(), 0.0), first=4)
    ]
    assert later == whole[3:]
    assert len(set(whole)) == 5


def test_no_two_places_share_a_seed():
    seeds = {seed_of(seed, step, part) for seed in range(3) for step in range(300) for part in range(4)}
    assert len(seeds) == 3 * 300 * 4


def test_muon_goes_on_when_a_matrix_learns_only_in_some_steps():
    """Each parameter's own number of steps corrects its means, and its momentum waits for it."""
    torch.manual_seed(0)
    always, seldom = (nn.Linear(4, 4) for _ in range(2))
    model = nn.ModuleList([always, seldom])
    optimizer = make_optimizer("muon", model, 0.01)
    for step in range(3):
        optimizer.zero_grad()
        loss = always(torch.ones(4)).sum() + (seldom(torch.ones(4)).sum() if step != 0 else 0.0)
        loss.backward()
        before = seldom.bias.detach().clone()
        optimizer.step()
        if step == 1:  # its first one
            torch.testing.assert_close(seldom.bias.detach(), before - 0.01, atol=1e-5, rtol=0)
    assert optimizer.state[always.bias]["step"] == 3
    assert optimizer.state[seldom.bias]["step"] == 2
