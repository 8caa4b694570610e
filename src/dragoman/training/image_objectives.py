"""What a model that reads images is asked to make small: a sum over images, and how many they are.

classes    −log p(class | image)
numbers    ½ (y − ŷ)², the mean over the numbers of an image: −log of a normal density, but for a constant
pixels     −log p(class | image, pixel), the mean over the pixels of an image; all images have as many
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.images.batches import ImageBatch
from dragoman.training.objectives import CarriesNothing, LossSum


@dataclass(frozen=True)
class NamingLoss(CarriesNothing):
    label_smoothing: float = 0.0

    def __call__(self, model: Any, batch: ImageBatch) -> LossSum:
        return self.of(model(batch.images), batch.wanted)

    def of(self, scores: Float[Tensor, "B C"], wanted: Int[Tensor, " B"]) -> LossSum:
        nats = F.cross_entropy(scores, wanted, reduction="sum", label_smoothing=self.label_smoothing)
        return LossSum(nats, len(scores))


@dataclass(frozen=True)
class MeasuringLoss(CarriesNothing):
    """Numbers are compared as deviations from their mean, in units of their deviation: each counts alike."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, model: Any, batch: ImageBatch) -> LossSum:
        return self.of(model(batch.images), batch.wanted)

    def of(self, told: Float[Tensor, "B K"], wanted: Float[Tensor, "B K"]) -> LossSum:
        right = (wanted - torch.tensor(self.mean)) / torch.tensor(self.deviation)
        return LossSum((told - right.to(told.dtype)).square().mean(dim=1).sum() / 2, len(told))


@dataclass(frozen=True)
class PixelLoss(CarriesNothing):
    label_smoothing: float = 0.0

    def __call__(self, model: Any, batch: ImageBatch) -> LossSum:
        return self.of(model(batch.images), batch.wanted)

    def of(self, scores: Float[Tensor, "B C H W"], wanted: Int[Tensor, "B H W"]) -> LossSum:
        nats = F.cross_entropy(scores, wanted, reduction="sum", label_smoothing=self.label_smoothing)
        return LossSum(nats / wanted[0].numel(), len(scores))
