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
from dragoman.training.rows import Moved, add_to_rows


class Looked(NamedTuple):
    batch: PairBatch
    squares: Float[Tensor, ""]
    slopes: tuple[Float[Tensor, "N D"], Float[Tensor, "N D"], Float[Tensor, "N 1"], Float[Tensor, "N 1"]]


class GloveLoss:
    """The sum of squares over some pairs. AdaGrad's sums go on from batch to batch; they start at 1, as theirs."""

    def __init__(self) -> None:
        self.sums: list[Tensor] = []

    def __call__(self, model: Glove, batch: PairBatch) -> LossSum:
        return LossSum(self.look(model, batch).squares, len(batch.counts))

    def look(self, model: Glove, batch: PairBatch) -> Looked:
        x, y = embedding(batch.words, model.words.weight), embedding(batch.neighbours, model.neighbours.weight)
        told = (x * y).sum(dim=1) + model.word_bias[batch.words] + model.neighbour_bias[batch.neighbours]
        missed = told - batch.counts.log()
        weight = (batch.counts / model.config.most).clamp(max=1.0) ** model.config.power
        slope = (2 * weight * missed)[:, None]
        return Looked(batch, (weight * missed**2).sum(), (slope * y, slope * x, slope, slope))

    def move(self, model: Glove, looked: Looked, rate: float) -> Moved:
        batch, squares, slopes = looked
        length = float(torch.linalg.vector_norm(slopes[-1]))
        if length < float("inf"):
            self.sums = self.sums or [torch.ones_like(table) for table in tables(model)]
            rows = (batch.words, batch.neighbours, batch.words, batch.neighbours)
            for table, sums, row, slope in zip(tables(model), self.sums, rows, slopes, strict=True):
                add_to_rows(sums, row, slope**2)
                add_to_rows(table, row, -rate * slope / embedding(row, sums).sqrt())
        return Moved(LossSum(squares, len(batch.counts)), length, len(batch.counts))

    def carried(self) -> list[Tensor]:
        return self.sums

    def carry(self, model: Glove, tensors: list[Tensor]) -> None:  # noqa: ARG002
        self.sums = tensors


def tables(model: Glove) -> list[Tensor]:
    """Two of vectors and two of biases; what is learned is in their rows."""
    biases = (bias.data[:, None] for bias in (model.word_bias, model.neighbour_bias))
    return [model.words.weight.data, model.neighbours.weight.data, *biases]
