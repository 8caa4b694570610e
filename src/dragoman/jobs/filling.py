"""The task `fill`: from a text to blocks of it with some tokens hidden, and to how many of them a model can tell."""

from math import exp
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.jobs.task import Measured, Sample, mean_nats
from dragoman.jobs.texts import TextTask
from dragoman.text.corruption import MaskedBatch, hide_tokens, ordinary_ids
from dragoman.text.index import Ids
from dragoman.text.special import SpecialIds
from dragoman.text.stream import BlockOrder
from dragoman.text.tokenizer import Tokenizers
from dragoman.training.objectives import FillingLoss
from dragoman.training.settings import TrainingConfig

SHOWN = 24  # tokens of the validation text in a row, as an example


class Filling(TextTask):
    name = "fill"
    special = SpecialIds(mask=4)
    measured = 100_000

    def plan_training(self, config: Any) -> dict[str, Any]:
        """A block fills the model: [CLS], the text, [SEP]."""
        return {"label_smoothing": 0.0, "window": config.longest - 2}

    def order(self, training: TrainingConfig, seed: int) -> "MaskedOrder":
        return MaskedOrder(self.data.train, training, seed, self.tokenizers)

    def objective(self, training: TrainingConfig) -> FillingLoss:
        return FillingLoss(training.label_smoothing)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        """The same tokens are hidden at every validation."""
        return mean_nats(self.objective(training), model, self.validation_order(training))

    def validation_order(self, training: TrainingConfig) -> "MaskedOrder":
        return MaskedOrder(self.valid, training, 0, self.tokenizers)

    @torch.inference_mode()
    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        nats = self.validation_loss(model, training)
        batch = self.validation_order(training).batch(0, 0)
        best = model.scores(model.states(batch.tokens, batch.real, batch.asked)).argmax(dim=-1)
        right = 100 * (best == batch.wanted).float().mean().item()
        return Measured(nats, {"perplexity": exp(min(nats, 80)), "right": right}, [self.sample(batch, best)])

    def sample(self, batch: MaskedBatch, best: Tensor) -> Sample:
        """The beginning of a block as it was shown, as the model has it, and as it was."""
        told, was = batch.tokens.clone(), batch.tokens.clone()
        told[batch.asked], was[batch.asked] = best, batch.wanted
        tokenizer = self.tokenizers.target
        shown = " ".join(tokenizer.pieces(head(batch.tokens)))
        return Sample(shown, tokenizer.decode(head(told)), tokenizer.decode(head(was)))


def head(tokens: Tensor) -> list[int]:
    return tokens[0, 1 : 1 + SHOWN].tolist()


class MaskedOrder:
    """Blocks of a text, some tokens of each hidden; which ones is a function of (seed, epoch, k), too."""

    def __init__(self, ids: Ids, training: TrainingConfig, seed: int, tokenizers: Tokenizers) -> None:
        rows = training.tokens_per_step // training.accumulate // training.window
        self.blocks = BlockOrder(ids, rows, training.window, seed)
        self.seed, self.special = seed, tokenizers.special
        self.ordinary = ordinary_ids(len(tokenizers.target), self.special)

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, epoch: int, k: int) -> MaskedBatch:
        random = np.random.default_rng([self.seed, epoch, k])
        return hide_tokens(self.blocks.batch(epoch, k), self.special, self.ordinary, random)
