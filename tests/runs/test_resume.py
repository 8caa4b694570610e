"""Stopped and gone on with, every family of every task ends with the same bits: weights, optimizer, what is carried."""

import numpy as np
import pytest
import torch

from dragoman import models
from dragoman.images.batches import ImageBatch
from dragoman.models import FAMILIES
from dragoman.runs.checkpoint import checkpoint_folder, load_carried, load_checkpoint, save_checkpoint
from dragoman.text.batches import LabelledBatch, make_batch, make_reading
from dragoman.text.cooccurrence import PairBatch
from dragoman.text.corruption import MaskedBatch
from dragoman.text.neighbours import BlockedText
from dragoman.text.special import SpecialIds
from dragoman.text.stream import WindowOrder
from dragoman.training.glove import GloveLoss
from dragoman.training.image_objectives import MeasuringLoss, NamingLoss, PixelLoss
from dragoman.training.loop import train
from dragoman.training.objectives import ClassifyingLoss, FillingLoss, TranslationLoss, WritingLoss
from dragoman.training.optimizers import make_optimizer
from dragoman.training.rows import train_rows
from dragoman.training.word2vec import Word2VecLoss

V, SIDE = 11, 8
SMALL = {
    "vocabulary": V, "source_vocabulary": V, "target_vocabulary": V, "width": 16, "heads": 2, "layers": 2, "hidden": 16,
    "embedding": 12, "dropout": 0.2, "longest": 16, "size": (SIDE, SIDE), "channels": 1, "patch": 4,
    "classes": ("one", "other"), "numbers": ("one",), "head_width": 8,
}  # fmt: skip
IDS = np.random.default_rng(1).integers(4, V, 400).astype(np.uint16)
PAIRS = [([4, 5, 6], [7, 8]), ([9, 10], [4, 5, 6, 7]), ([10, 4, 5, 6], [9])]
TEXTS = make_reading([source for source, _ in PAIRS], SpecialIds())
ASKED = TEXTS.real & (torch.arange(TEXTS.tokens.shape[1]) % 2 == 1)
PIXELS = torch.randn(4, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
TRAINED = [(task, name) for task, families in FAMILIES.items() for name, family in families.items() if family.trained]


def what_to_learn(task, family):
    """The objective, and batch k."""
    if task in ("translate", "restore"):
        return TranslationLoss(0.1), lambda k: make_batch(PAIRS[k % 2 :], SpecialIds())
    if task == "write":
        return WritingLoss(), lambda k: WindowOrder(IDS, 3, 9, 1).batch(0, k)
    if task == "fill":
        return FillingLoss(), lambda _: MaskedBatch(*TEXTS, ASKED, TEXTS.tokens[ASKED])
    if family == "word2vec":
        counts = np.bincount(IDS, minlength=V)
        blocks = BlockedText(IDS, counts, SpecialIds(), reach=2, sample=1.0, tokens=60, seed=1)
        return Word2VecLoss(), lambda k: blocks.batch(0, k % len(blocks))
    if family == "glove":
        return GloveLoss(), lambda k: PairBatch(torch.tensor([4, 5]), torch.tensor([6, 7 + k % 2]), torch.ones(2) * 3)
    if family in ("cnn", "vit", "mlp"):
        wanted = {
            "classify": (NamingLoss(), torch.tensor([0, 1, 1, 0])),
            "regress": (MeasuringLoss((0.0,), (1.0,)), torch.rand(4, 1)),
            "segment": (PixelLoss(), torch.zeros(4, SIDE, SIDE, dtype=torch.int64)),
        }[task]
        return wanted[0], lambda k: ImageBatch(PIXELS.roll(k, 0), wanted[1])
    return ClassifyingLoss(), lambda _: LabelledBatch(*TEXTS, torch.tensor([0, 1, 1]))


def go(model, objective, optimizer, batch, first, last):
    batches = ([batch(k - 1)] for k in range(first, last + 1))
    if optimizer is None:
        return list(train_rows(model, batches, objective, rate=lambda n: 0.05 / n, first=first))
    return list(train(model, batches, objective, optimizer, rate=lambda n: 0.01 / n, seed=5, first=first))


def prepare(task, family):
    config = FAMILIES[task][family].config
    told = {name: value for name, value in SMALL.items() if name in config.model_fields}
    torch.manual_seed(3)
    model = models.build(models.settings_without_data(FAMILIES[task][family], told))
    objective, batch = what_to_learn(task, family)
    optimizer = None if family in ("word2vec", "glove") else make_optimizer("muon", model, 0.01)
    return model, objective, optimizer, batch


@pytest.mark.parametrize(("task", "family"), TRAINED, ids=lambda name: name)
def test_every_family_goes_on_with_the_same_bits(task, family, tmp_path):
    whole = prepare(task, family)
    go(*whole, 1, 6)
    save_checkpoint(tmp_path / "whole", 6, whole[0], whole[2], {}, whole[1].carried())

    before = prepare(task, family)
    go(*before, 1, 3)
    save_checkpoint(tmp_path, 3, before[0], before[2], {}, before[1].carried())
    after = prepare(task, family)
    load_checkpoint(checkpoint_folder(tmp_path, 3), after[0], after[2])
    after[1].carry(after[0], load_carried(checkpoint_folder(tmp_path, 3)))
    go(*after, 4, 6)
    save_checkpoint(tmp_path / "after", 6, after[0], after[2], {}, after[1].carried())

    manifests = [(checkpoint_folder(tmp_path / name, 6) / "manifest.json").read_text() for name in ("whole", "after")]
    assert manifests[0] == manifests[1]  # hashes of every file
