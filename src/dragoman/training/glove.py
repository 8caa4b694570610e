"""GloVe's objective (Pennington et al. 2014, eq. 8) and its gradient, over pairs of words with their counts:

    J = Σ f(X) (x·y + b + c − log X)²          f(X) = min(1, (X / x_max)^α)

    ∂J/∂x = 2 f(X) (x·y + b + c − log X) y     ∂J/∂b = 2 f(X) (x·y + b + c − log X)         and y, c the other way round

Rows move by AdaGrad: each number has a rate of its own, which falls with the squares of its gradients so far.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import embedding

from dragoman.models.word_vectors import Glove
from dragoman.text.cooccurrence import PairBatch
from dragoman.training.objectives import LossSum
from dragoman.training.rows import Learned, add_to_rows


class Missed(NamedTuple):
    by: Float[Tensor, " N"]  # x·y + b + c − log X
    weight: Float[Tensor, " N"]  # f(X)

    def squares(self) -> Float[Tensor, ""]:
        return (self.weight * self.by**2).sum()


class GloveLoss:
    """The sum of squares over some pairs. AdaGrad's sums go on from batch to batch; they start at 1, as theirs."""

    def __init__(self) -> None:
        self.sums: list[Tensor] = []

    def __call__(self, model: Glove, batch: PairBatch) -> LossSum:
        _, _, missed = compare(model, batch)
        return LossSum(missed.squares(), len(batch.counts))

    def learn(self, model: Glove, batch: PairBatch, rate: float) -> Learned:
        x, y, missed = compare(model, batch)
        slope = (2 * missed.weight * missed.by)[:, None]
        length = float(torch.linalg.vector_norm(slope))
        self.sums = self.sums or [torch.ones_like(table) for table in tables(model)]
        if length < float("inf"):
            rows = (batch.words, batch.neighbours, batch.words, batch.neighbours)
            slopes = (slope * y, slope * x, slope, slope)
            for table, sums, row, own in zip(tables(model), self.sums, rows, slopes, strict=True):
                add_to_rows(sums, row, own**2)
                add_to_rows(table, row, -rate * own / embedding(row, sums).sqrt())
        return Learned(LossSum(missed.squares(), len(batch.counts)), length, len(batch.counts))

    def carried(self) -> list[Tensor]:
        return self.sums

    def carry(self, model: Glove, tensors: list[Tensor]) -> None:  # noqa: ARG002
        self.sums = tensors


def compare(model: Glove, batch: PairBatch) -> tuple[Float[Tensor, "N D"], Float[Tensor, "N D"], Missed]:
    """The vectors of both words of each pair, and by how much they miss its count."""
    x, y = embedding(batch.words, model.words.weight), embedding(batch.neighbours, model.neighbours.weight)
    told = (x * y).sum(dim=1) + model.word_bias[batch.words] + model.neighbour_bias[batch.neighbours]
    weight = (batch.counts / model.config.most).clamp(max=1.0) ** model.config.power
    return x, y, Missed(told - batch.counts.log(), weight)


def tables(model: Glove) -> list[Tensor]:
    """Two of vectors and two of biases; what is learned is in their rows."""
    biases = (bias.data[:, None] for bias in (model.word_bias, model.neighbour_bias))
    return [model.words.weight.data, model.neighbours.weight.data, *biases]
