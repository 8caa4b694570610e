"""word2vec's objective and its gradient, written out: words near each other are compared as one small matrix.

For a word's vector x, the vector y of a neighbour and those n of random words (Mikolov et al. 2013, eq. 4):

    nats = −log σ(x·y) − Σ log σ(−x·n)         ∂/∂x = −σ(−x·y) y + Σ σ(x·n) n        ∂/∂y = −σ(−x·y) x

The original draws k random words for each pair. Here a block of words shares K of them, and each counts k/K for every
pair: the mean of what is added up is the same, and it is a product of two matrices (docs/decisions/0015).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import embedding, softplus

from dragoman.models.word_vectors import Word2Vec
from dragoman.modules.activations import sigmoid
from dragoman.text.neighbours import Blocks
from dragoman.training.objectives import CarriesNothing, LossSum
from dragoman.training.rows import Learned, add_to_rows

TOLD = 8  # while learning, the loss is told from every eighth block


class Compared(NamedTuple):
    """Scores between what foretells and what is foretold, and how much each of them counts."""

    near: Float[Tensor, "N L *M"]  # x·y
    near_weight: Float[Tensor, "N L *M"]
    random: Float[Tensor, "N L K"]  # x·n
    random_weight: Float[Tensor, "N L 1"]

    def nats(self) -> Float[Tensor, ""]:
        """−log σ(s) = softplus(−s)."""
        near = (softplus(-self.near) * self.near_weight).sum()
        return near + (softplus(self.random) * self.random_weight).sum()

    def part(self, step: int) -> "Compared":
        return Compared(*(part[::step] for part in self))


class Slopes(NamedTuple):
    """The way down for each vector of a batch."""

    words: Float[Tensor, "N L D"]
    neighbours: Float[Tensor, "N L D"]
    drawn: Float[Tensor, "N K D"]


class Word2VecLoss(CarriesNothing):
    """Σ over all pairs of neighbours (skip-gram), or over all words that have some (cbow)."""

    def __call__(self, model: Word2Vec, batch: Blocks) -> LossSum:
        compared, _ = look(model, batch)
        return LossSum(compared.nats(), int(pairs_in(compared)))

    def learn(self, model: Word2Vec, batch: Blocks, rate: float) -> Learned:
        compared, slopes = look(model, batch)
        slope = float(torch.linalg.vector_norm(slopes.words))
        if slope < float("inf"):
            add_to_rows(model.words.weight, batch.words, slopes.words.mul_(rate))
            add_to_rows(model.neighbours.weight, batch.words, slopes.neighbours.mul_(rate))
            add_to_rows(model.neighbours.weight, batch.drawn, slopes.drawn.mul_(rate))
        some = compared.part(TOLD)
        return Learned(LossSum(some.nats(), int(pairs_in(some))), slope, batch.read)


def pairs_in(compared: Compared) -> Float[Tensor, ""]:
    return compared.near_weight.sum()


def look(model: Word2Vec, batch: Blocks) -> tuple[Compared, Slopes]:
    x = embedding(batch.words, model.words.weight)
    y, n = (embedding(rows, model.neighbours.weight) for rows in (batch.words, batch.drawn))
    kind = skip_gram if model.config.kind == "skip-gram" else cbow
    return kind(x, y, n, batch.near().to(x.dtype), model.config.negatives)


def skip_gram(
    x: Float[Tensor, "N L D"],
    y: Float[Tensor, "N L D"],
    n: Float[Tensor, "N K D"],
    near: Float[Tensor, "N L L"],
    negatives: int,
) -> tuple[Compared, Slopes]:
    """Word i foretells every j that looks as far as i (place (i, j) of `near`), as in word2vec.c."""
    weight = near.sum(dim=2, keepdim=True) * (negatives / n.shape[1])
    compared = Compared(torch.bmm(x, y.mT), near, torch.bmm(x, n.mT), weight)
    up, down = sigmoid(-compared.near).mul_(near), sigmoid(compared.random).mul_(weight)
    words = torch.baddbmm(torch.bmm(up, y), down, n, alpha=-1)
    return compared, Slopes(words, torch.bmm(up.mT, x), torch.bmm(down.mT, x).neg_())


def cbow(
    x: Float[Tensor, "N L D"],
    y: Float[Tensor, "N L D"],
    n: Float[Tensor, "N K D"],
    near: Float[Tensor, "N L L"],
    negatives: int,
) -> tuple[Compared, Slopes]:
    """The mean of all i that j looks at foretells j. Each of them takes its share of the gradient, 1/how many: the
    original gives each the whole, which is no gradient of the loss (İrsoy et al. 2021)."""
    many = near.sum(dim=1)[:, :, None]
    share = near.mT / many.clamp(min=1)  # (j, i)
    means, there = torch.bmm(share, x), (many > 0).to(x.dtype)
    compared = Compared(
        (means * y).sum(dim=2, keepdim=True), there, torch.bmm(means, n.mT), there * (negatives / n.shape[1])
    )
    up, down = sigmoid(-compared.near).mul_(there), sigmoid(compared.random).mul_(compared.random_weight)
    to_means = torch.baddbmm(up * y, down, n, alpha=-1)
    return compared, Slopes(torch.bmm(share.mT, to_means), up * means, torch.bmm(down.mT, means).neg_())
