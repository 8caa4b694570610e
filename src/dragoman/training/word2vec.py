"""word2vec's objective and its gradient, written out: words near each other are compared as one small matrix.

For a word's vector x, the vector y of a neighbour and those n of k random words (Mikolov et al. 2013, eq. 4):

    nats = −log σ(x·y) − Σ log σ(−x·n)         ∂/∂x = (σ(x·y) − 1) y + Σ σ(x·n) n

and the other way round for y and n. The original draws k random words for each pair. Here a block of words shares K of
them, and each counts k/K for every pair: the mean of what is added up is the same, and it is a product of matrices
(docs/decisions/0015).
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


class Scores(NamedTuple):
    """How what foretells (i) agrees with what might be foretold (j): the L words of the block, then K random ones."""

    scores: Float[Tensor, "N L M"]  # x·y, x·n; M = L + K
    weights: Float[Tensor, "N L M"]  # how often each counts
    words: int  # L: up to here the answer is yes

    def nats(self, every: int = 1) -> Float[Tensor, ""]:
        """−log σ(s) = softplus(−s) where the answer is yes, −log σ(−s) = softplus(s) where it is no; of some blocks."""
        scores = self.scores[::every].clone()
        scores[:, :, : self.words] *= -1
        return (softplus(scores) * self.weights[::every]).sum()

    def answers(self, every: int = 1) -> int:
        """How many pairs the loss is a sum over."""
        return round(self.weights[::every, :, : self.words].sum().item())

    def slopes(self) -> Float[Tensor, "N L M"]:
        """∂nats/∂scores: σ(s) − 1 where the answer is yes, σ(s) where it is no."""
        slopes = sigmoid(self.scores)
        slopes[:, :, : self.words] -= 1
        return slopes.mul_(self.weights)


class Word2VecLoss(CarriesNothing):
    """Σ over all pairs of neighbours (skip-gram), or over all words that have some (cbow)."""

    def __call__(self, model: Word2Vec, batch: Blocks) -> LossSum:
        _, _, found = foretell(model, batch)
        return LossSum(found.nats(), found.answers())

    def learn(self, model: Word2Vec, batch: Blocks, rate: float) -> Learned:
        inputs, outputs, found = foretell(model, batch)
        slopes = found.slopes()
        to_words, to_foretold = torch.bmm(slopes, outputs), torch.bmm(slopes.mT, inputs)
        if model.config.kind == "cbow":
            to_words = torch.bmm(mean_of_neighbours(batch, inputs.dtype).mT, to_words)
        length = float(torch.linalg.vector_norm(to_words))
        if length < float("inf"):
            add_to_rows(model.words.weight, batch.words, to_words.mul_(-rate))
            add_to_rows(model.neighbours.weight, batch.foretold(), to_foretold.mul_(-rate))
        return Learned(LossSum(found.nats(TOLD), found.answers(TOLD)), length, batch.read)


def foretell(model: Word2Vec, batch: Blocks) -> tuple[Float[Tensor, "N L D"], Float[Tensor, "N M D"], Scores]:
    """What foretells, what might be foretold, and how they agree.

    skip-gram   each word i that j looks at foretells j, as in word2vec.c
    cbow        the mean of all i that j looks at foretells j. Each takes its share of the gradient, 1/how many: the
                original gives each the whole, which is no gradient of the loss (İrsoy et al. 2021)
    """
    x, outputs = embedding(batch.words, model.words.weight), embedding(batch.foretold(), model.neighbours.weight)
    near = batch.near().to(x.dtype)
    if model.config.kind == "cbow":
        x = torch.bmm(mean_of_neighbours(batch, x.dtype), x)
        near = torch.diag_embed(near.amax(dim=1))
    share = near.sum(dim=2, keepdim=True) * (model.config.negatives / batch.drawn.shape[1])
    weights = torch.cat([near, share.expand(-1, -1, batch.drawn.shape[1])], dim=2)
    return x, outputs, Scores(torch.bmm(x, outputs.mT), weights, near.shape[1])


def mean_of_neighbours(batch: Blocks, dtype: torch.dtype) -> Float[Tensor, "N L L"]:
    """The matrix that makes of all words' vectors the means of those that each looks at: place (j, i)."""
    near = batch.near().mT.to(dtype)
    return near / near.sum(dim=2, keepdim=True).clamp(min=1)
