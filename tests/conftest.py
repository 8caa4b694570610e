"""Shared by all tests: a fixed seed, and small models that have really learned something."""

import os

import numpy as np
import pytest
import torch

from dragoman.decoding.translate import Translator
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.text.batches import BatchOrder, make_batch
from dragoman.text.generated import generate
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers
from dragoman.training.loop import train
from dragoman.training.objectives import translation_loss
from dragoman.training.optimizers import make_optimizer

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))
EPOCHS = 8  # enough to be right mostly, too few to be right always


@pytest.fixture(autouse=True)
def repeatable():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def reverser():
    """A translator that has learned, not perfectly, to reverse sequences: its outputs vary in tokens and in length."""
    torch.manual_seed(0)
    pairs, held_out = generate("reverse", count=4000, seed=0, held_out=300)
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
    translator = Translator(model, tokenizers, {"longest": 64, "search": {"longest_ratio": 1.5}, "languages": ["", ""]})
    translator.held_out = held_out
    return translator
