"""Shared by all tests: a fixed seed, one thread, and a small model that has really learned something."""

import fcntl
import os
from contextlib import contextmanager

# Before torch and numpy start theirs, and for the commands that tests start: with two workers on two cores, two threads
# each wait for one another several times longer than they work.
os.environ["OMP_NUM_THREADS"] = "1"

import jaxtyping
import numpy as np
import pytest
import torch

import dragoman
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of
from dragoman.text.batches import BatchOrder, make_batch
from dragoman.text.generated import generate
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers
from dragoman.training.loop import train
from dragoman.training.objectives import translation_loss
from dragoman.training.optimizers import make_optimizer

EPOCHS = 8  # enough to be right mostly, too few to be right always


def pytest_collection_modifyitems(items):
    """The longest first, or one worker would wait at the end for the other."""
    items.sort(key=lambda item: not any(name in item.nodeid for name in ("test_proofs", "test_readme")))


@pytest.fixture(autouse=True)
def repeatable():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # whatever the test before has asked for


@contextmanager
def unchecked():
    """Without looking at the types of what is passed: where the same has been looked at before, or will be."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session", name="unchecked")
def unchecked_fixture():
    return unchecked


@pytest.fixture(scope="session")
def reverser(tmp_path_factory):
    """A translator that has learned, not perfectly, to reverse sequences: its outputs vary in tokens and in length.

    The first worker that needs it trains it; all load the same file.
    """
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    folder = tmp_path_factory.getbasetemp() if alone else tmp_path_factory.getbasetemp().parent
    pairs, held_out = generate("reverse", count=4000, seed=0, held_out=300)
    with (folder / "reverser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "reverser").exists():
            with unchecked():
                train_to_reverse(pairs, folder / "reverser")
    translator = dragoman.load(folder / "reverser")
    translator.held_out = held_out
    return translator


def train_to_reverse(pairs, folder):
    torch.manual_seed(0)
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), pairs)
    encoded = list(
        zip(
            tokenizers.source.encode([s for s, _ in pairs]),
            tokenizers.target.encode([t for _, t in pairs]),
            strict=True,
        )
    )
    size = len(tokenizers.source)
    config = TransformerConfig(
        source_vocabulary=size,
        target_vocabulary=size,
        width=48,
        heads=4,
        layers=2,
        hidden=96,
        dropout=0.0,
        norm_first=True,
    )
    model = Transformer(config)
    order = BatchOrder(np.array([[len(s), len(t)] for s, t in encoded]), 1024, seed=0)
    batches = (
        [make_batch([encoded[row] for row in order.rows(epoch, k)], SpecialIds())]
        for epoch in range(EPOCHS)
        for k in range(len(order))
    )
    steps = EPOCHS * len(order)
    optimizer = make_optimizer("muon", model, 0.008)
    for _ in train(model, batches, translation_loss, optimizer, rate=lambda n: 0.008 * (1 - n / (steps + 1))):
        pass
    about = {"longest": 64, "search": {"longest_ratio": 1.5}, "languages": ["", ""]}
    save_model(folder, model.config, weights_of(model), tokenizers, about)
