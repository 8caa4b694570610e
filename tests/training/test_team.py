"""Threads that go their own ways add up to the same step, bit for bit."""

import weakref
from contextlib import suppress
from threading import Barrier

import pytest
import torch

from dragoman import models
from dragoman.models.cnn import CnnClassifierConfig
from dragoman.models.gpt import Gpt, GptConfig
from dragoman.models.rnn_writer import RnnWriter, RnnWriterConfig
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.modules.dropout import drop, seeded
from dragoman.text.batches import make_batch
from dragoman.text.special import SpecialIds
from dragoman.text.stream import Window
from dragoman.training.learner import Learner, can_be_together
from dragoman.training.loop import train
from dragoman.training.micro_batches import MicroBatches
from dragoman.training.objectives import LossSum, TranslationLoss, WritingLoss
from dragoman.training.optimizers import make_optimizer
from dragoman.training.team import Team

SIZE = {"width": 16, "heads": 2, "layers": 2, "hidden": 32, "dropout": 0.2}
DROPS = {"attention_dropout": 0.1}  # then nothing but attention is computed natively


def translator():
    return Transformer(TransformerConfig(source_vocabulary=20, target_vocabulary=20, **SIZE)), TranslationLoss(0.1)


def dropping():
    sizes = {"source_vocabulary": 20, "target_vocabulary": 20}
    return Transformer(TransformerConfig(**sizes, **SIZE, **DROPS)), TranslationLoss(0.1)


def writer():
    return Gpt(GptConfig(vocabulary=20, longest=8, **SIZE)), WritingLoss()


def carrier():
    """Its state goes on from window to window, also where a step is made of several."""
    return RnnWriter(RnnWriterConfig(vocabulary=20, width=16, embedding=8, dropout=0.2)), WritingLoss()


def pairs(k):
    drawn = torch.randint(4, 20, (7, 2, 5), generator=torch.Generator().manual_seed(k)).tolist()
    return make_batch([(source[: 2 + i % 4], target) for i, (source, target) in enumerate(drawn)], SpecialIds())


def windows(k):
    ids = torch.randint(4, 20, (5, 9), generator=torch.Generator().manual_seed(k))
    return Window(ids[:, :-1], ids[:, 1:], first=True)


def following(k):
    return windows(k)._replace(first=k == 0)


def train_with(threads, make, batch, slices=3):
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    model, objective = make()
    steps = train(
        model, [MicroBatches(batch, 2 * k, 2, slices) for k in range(4)], objective,
        make_optimizer("muon", model, 1e-2), rate=lambda _: 1e-2,
    )  # fmt: skip
    return [step.nats_per_token for step in steps], model.state_dict()


@pytest.mark.parametrize(("make", "batch"), [(translator, pairs), (dropping, pairs), (writer, windows)])
def test_the_number_of_threads_changes_no_bit(make, batch):
    losses, weights = train_with(1, make, batch)
    assert len(set(losses)) == 4
    for threads in (2, 3):
        again, others = train_with(threads, make, batch)
        assert again == losses
        for name, weight in weights.items():
            assert torch.equal(weight, others[name]), name


def test_a_state_that_goes_on_is_read_by_the_window_that_follows():
    """All threads are then in every operation, and its last digits may be others; the state must be the same."""
    losses, weights = train_with(1, carrier, following, slices=1)
    again, others = train_with(2, carrier, following, slices=1)
    assert again == pytest.approx(losses, rel=1e-6)
    for name, weight in weights.items():
        torch.testing.assert_close(weight, others[name], rtol=0, atol=1e-4)


def test_a_teams_gradient_is_that_of_one_after_another():
    torch.manual_seed(0)
    model, objective = translator()
    micro_batches, found = MicroBatches(pairs, 0, 1, 3), []
    for size in (1, 3):
        sums = Learner(model, objective, 5, Team(size)).learn(1, micro_batches, range(3))
        found.append((sums, [p.grad.clone() for p in model.parameters()]))
    (sums, gradients), (others, theirs) = found
    assert sums == others
    assert all(torch.equal(a, b) for a, b in zip(gradients, theirs, strict=True))


def test_a_micro_batch_that_does_not_fit_is_first_gone_through_alone():
    model, objective = translator()
    teams = []

    class Learning(Learner):
        def slopes(self, *_):
            raise MemoryError

        def cut_finer(self, rows):
            super().cut_finer(rows)
            teams.append((self.team.size, self.parts))

    sums = Learning(model, objective, 5, Team(2)).learn(1, MicroBatches(pairs, 0, 1, 2), range(2))
    assert teams == [(1, 1)]
    assert sum(one.tokens for one in sums) == pairs(0).target_mask.sum()


def test_what_a_failed_attempt_held_is_let_go():
    held = []

    def work(i):
        tensor = torch.zeros(10)
        held.append(weakref.ref(tensor))
        raise MemoryError(i)

    with suppress(MemoryError):
        Team(2).each(work, [0, 1])
    assert len(held) == 2
    assert not any(one() is not None for one in held)


def test_the_gradient_of_a_convolution_lies_as_its_weights_do():
    """A fused optimizer walks through both side by side."""
    config = CnnClassifierConfig(size=(8, 8), classes=("a", "b"), width=4, batch_norm=False, dropout=0.0)
    images = torch.rand(6, 1, 8, 8)
    found = []
    for threads in (1, 2):
        torch.manual_seed(0)
        torch.set_num_threads(threads)
        model = models.build(config)
        learner = Learner(
            model, lambda model, batch: LossSum(model(batch[0]).square().sum(), len(batch[0])), 0, Team(threads)
        )
        learner.learn(1, [(images[:3],), (images[3:],)], range(2))
        assert all(p.grad.is_contiguous() == p.is_contiguous() for p in model.parameters())
        make_optimizer("adamw", model, 0.1).step()
        found.append([p.detach().clone() for p in model.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


def test_each_thread_has_an_item_of_its_own_at_the_same_time():
    meeting = Barrier(3, timeout=20)  # none of the three goes on before all are there
    torch.set_num_threads(2)
    assert Team(3).each(lambda i: (meeting.wait() >= 0, torch.get_num_threads(), i), range(3)) == [
        (True, 1, 0), (True, 1, 1), (True, 1, 2),
    ]  # fmt: skip
    assert torch.get_num_threads() == 2


def test_what_goes_wrong_in_one_thread_is_said_and_the_team_goes_on():
    torch.set_num_threads(2)
    team = Team(2)

    def work(i):
        if i:
            raise ValueError(f"item {i}")
        return i

    with pytest.raises(ValueError, match="item 1"):
        team.each(work, [0, 1])
    assert torch.get_num_threads() == 2
    assert team.each(abs, [-1, -2]) == [1, 2]


def test_masks_follow_from_a_threads_own_seed():
    def masked(seed):
        with seeded(seed):
            return [drop(torch.ones(64), 0.5) for _ in range(3)]

    alone = [masked(seed) for seed in (1, 2)]
    together = Team(2).each(masked, [1, 2])
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(alone[0][0], alone[1][0])
    assert not torch.equal(alone[0][0], alone[0][1])


def test_norms_that_count_are_gone_through_by_one_at_a_time():
    norms = models.build(CnnClassifierConfig(size=(8, 8), classes=("a", "b"), width=4, batch_norm=True))
    assert not can_be_together(norms, TranslationLoss())
    assert Learner(norms, TranslationLoss(), 0, Team(2)).team.size == 1
    assert can_be_together(*translator())
