"""A step in parts is the step: cut for memory, cut for workers, added in a fixed order."""

from copy import deepcopy
from typing import NamedTuple

import pytest
import torch
from torch import nn

from dragoman.errors import MachineError
from dragoman.models.rnn_writer import RnnWriter, RnnWriterConfig
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.text.batches import Batch, make_batch
from dragoman.text.corruption import MaskedBatch
from dragoman.text.special import SpecialIds
from dragoman.text.stream import Window
from dragoman.training.learner import Learner
from dragoman.training.loop import train
from dragoman.training.micro_batches import MicroBatches, cut, rows_of
from dragoman.training.objectives import LossSum, WritingLoss, translation_loss
from dragoman.training.optimizers import make_optimizer
from dragoman.training.parallel import ALONE, Workers

PAIRS = [([4 + k % 5] * (1 + k % 4), [5 + k % 3] * (1 + k % 3)) for k in range(11)]


def make_model(dropout=0.0):
    torch.manual_seed(3)
    size = {"source_vocabulary": 11, "target_vocabulary": 11, "width": 16, "heads": 2, "layers": 1, "hidden": 24}
    return Transformer(TransformerConfig(**size, dropout=dropout))


def make(place):
    return make_batch(PAIRS[place:] + PAIRS[:place], SpecialIds())


def gradients(model):
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("parts", [2, 3, 4, 11, 20])
def test_the_parts_of_a_batch_give_its_gradient(parts):
    model, batch = make_model(), make(0)
    whole = translation_loss(model, batch)
    whole.nats.backward()
    wanted = gradients(model)
    model.zero_grad()
    found = [translation_loss(model, part) for part in cut(batch, parts) if rows_of(part)]
    for one in found:
        one.nats.backward()
    assert sum(one.tokens for one in found) == whole.tokens
    torch.testing.assert_close(sum(one.nats.detach() for one in found), whole.nats.detach())
    torch.testing.assert_close(gradients(model), wanted, rtol=1e-4, atol=1e-5)


def test_a_cut_keeps_every_row_once_whatever_the_batch_is():
    batch = make(0)
    assert all(isinstance(part, Batch) for part in cut(batch, 3))
    assert torch.equal(torch.cat([part.source for part in cut(batch, 3)]).sort(0).values, batch.source.sort(0).values)
    window = Window(torch.arange(12).view(6, 2), torch.arange(12).view(6, 2) + 1, first=True)
    assert [part.tokens.tolist() for part in cut(window, 4)[:2]] == [[[0, 1], [8, 9]], [[2, 3], [10, 11]]]
    assert all(part.first for part in cut(window, 4))


def test_what_is_wanted_of_a_masked_batch_goes_with_its_rows():
    tokens = torch.arange(20).view(4, 5)
    asked = torch.rand(4, 5) < 0.5
    batch = MaskedBatch(tokens, torch.ones(4, 5, dtype=torch.bool), asked, 100 + tokens[asked])
    for part in cut(batch, 3):
        assert torch.equal(part.wanted, 100 + part.tokens[part.asked])


def test_a_worker_makes_its_own_batches_and_no_others():
    made = []
    micro = MicroBatches(lambda k: made.append(k) or make(k % 11), first=40, batches=4, slices=1)
    assert len(micro) == 4
    _ = micro[1], micro[3]
    assert made == [41, 43]
    sliced = MicroBatches(lambda k: made.append(k) or make(k % 11), first=0, batches=2, slices=4)
    _ = [sliced[i] for i in (0, 2)]
    assert made == [41, 43, 0]  # two slices of one batch, which is made once


# ── memory ────────────────────────────────────────────────────────────────────────────────


def needs_memory(model, batch, most=3):
    """A batch of more rows asks the allocator for more than any machine has."""
    if rows_of(batch) > most:
        torch.empty(1 << 50, dtype=torch.uint8)
    return translation_loss(model, batch)


def test_a_batch_that_does_not_fit_is_cut_and_gives_the_same_step():
    whole, parts = make_model(), make_model()
    steps = [list(train_some(whole, translation_loss)), list(train_some(parts, needs_memory))]
    assert [step.parts for step in steps[0]] == [1, 1, 1]
    assert [step.parts for step in steps[1]] == [
        4,
        4,
        4,
    ]  # eleven rows, three at a time; what did not fit is remembered
    for a, b in zip(*steps, strict=True):
        assert a.tokens == b.tokens
        assert a.nats_per_token == pytest.approx(b.nats_per_token, rel=1e-5)
    torch.testing.assert_close(list(whole.parameters()), list(parts.parameters()), rtol=1e-4, atol=1e-5)


def train_some(model, objective, workers=ALONE, slices=1):
    batches = [MicroBatches(make, 2 * k, 2, slices) for k in range(3)]
    optimizer = make_optimizer("sgd", model, 0.01)
    return train(model, batches, objective, optimizer, rate=lambda _: 0.01, seed=5, workers=workers)


def test_a_state_that_goes_on_is_never_cut_not_even_before_its_first_window():
    model = RnnWriter(RnnWriterConfig(vocabulary=9, width=8, embedding=8))
    learner = Learner(model, WritingLoss(), seed=1)
    assert model.carries
    with pytest.raises(MachineError, match="in 1 parts of 4 rows"):
        learner.cut_finer(4)


def test_one_row_that_does_not_fit_is_said():
    with pytest.raises(MachineError, match=r"does not fit into memory.*lower training.tokens_per_step") as caught:
        list(train_some(make_model(), lambda model, batch: needs_memory(model, batch, most=0)))
    assert caught.value.exit_code == 4


def test_another_error_is_not_taken_for_a_full_memory():
    def broken(*_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        list(train_some(make_model(), broken))


# ── a fixed order ─────────────────────────────────────────────────────────────────────────


def test_added_in_order_is_added_up():
    """With dropout: it is drawn for each micro-batch, so both ways draw the same."""
    usual, ordered = make_model(0.3), make_model(0.3)
    a = list(train_some(usual, translation_loss, slices=3))
    b = list(train_some(ordered, translation_loss, Workers(reproducible=True), slices=3))
    assert [step.nats_per_token for step in a] == pytest.approx([step.nats_per_token for step in b], abs=1e-6)
    torch.testing.assert_close(list(usual.parameters()), list(ordered.parameters()), rtol=1e-4, atol=1e-5)


class Rows(NamedTuple):
    numbers: torch.Tensor


def sum_of(model, batch):
    return LossSum(model(batch.numbers).square().sum(), rows_of(batch))


def normed():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def rows_at(place):
    return Rows(torch.randn(6, 2, generator=torch.Generator().manual_seed(place)) + place)


def counted_by(model, parts):
    """What its norm counts where each of these is the first that it sees."""
    found = []
    for part in parts:
        other = deepcopy(model)
        other(part.numbers)
        found.append(list(other[1].buffers())[:2])
    return [torch.stack(several).mean(0) for several in zip(*found, strict=True)]


@pytest.mark.parametrize("workers", [ALONE, Workers(reproducible=True)])
def test_what_norms_count_in_a_step_is_the_mean_over_its_micro_batches(workers):
    model = normed()
    wanted = counted_by(model, map(rows_at, range(3)))
    steps = train(
        model, [MicroBatches(rows_at, 0, 3)], sum_of, make_optimizer("sgd", model, 0.01), rate=lambda _: 0.01,
        workers=workers,
    )  # fmt: skip
    assert next(steps).applied
    mean, variance, steps_counted = model[1].buffers()
    torch.testing.assert_close([mean, variance], wanted)
    assert steps_counted == 1


def test_what_norms_count_is_the_sum_of_what_each_worker_adds():
    model, micro_batches = normed(), MicroBatches(rows_at, 0, 3)
    wanted, before, found = counted_by(model, map(rows_at, range(3))), list(model[1].buffers())[:2], []
    before = [value.clone() for value in before]
    for places in ([0, 2], [1]):
        learner = Learner(model, sum_of, 1)
        start = learner.counts.before()
        learner.learn(1, micro_batches, places)
        found.append([mean.clone() for mean in learner.counts.means])
        learner.counts.put_back(start)
    torch.testing.assert_close([a + b for a, b in zip(*found, strict=True)], wanted)
    torch.testing.assert_close(list(model[1].buffers())[:2], before)


def test_norms_count_nothing_of_an_attempt_that_did_not_fit():
    def needs(model, batch):
        found = sum_of(model, batch)  # by now its norm has seen it
        if rows_of(batch) > 3:
            torch.empty(1 << 50, dtype=torch.uint8)
        return found

    model = normed()
    halves = [half for place in range(2) for half in cut(rows_at(place), 2)]
    wanted = counted_by(model, halves)
    [step] = train(model, [MicroBatches(rows_at, 0, 2)], needs, make_optimizer("sgd", model, 0.01), rate=lambda _: 0.01)
    assert step.parts == 2
    torch.testing.assert_close(list(model[1].buffers())[:2], wanted)


def test_a_run_goes_on_with_the_parts_it_found_necessary():
    seen, model = [], make_model()

    def watched(model, batch):
        seen.append(rows_of(batch))
        return translation_loss(model, batch)

    batches, optimizer = [MicroBatches(make, 0, 1)], make_optimizer("sgd", model, 0.01)
    [step] = train(model, batches, watched, optimizer, rate=lambda _: 0.01, parts=4)
    assert seen == [3, 3, 3, 2]
    assert step.parts == 4
