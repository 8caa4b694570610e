"""The plain feed-forward network: all pixels in a row, and every one of them connected with every unit.

    image ─ flatten ─ (W x + b ─ ReLU ─ dropout) × layers ─ answers

It does not know which pixels are neighbours: this is what a convolution has to beat.
"""

from itertools import pairwise
from typing import Any

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from dragoman.models.heads import Classes, ImageSettings, Numbers, fully_connected, to_answers
from dragoman.modules.activations import relu
from dragoman.modules.dropout import Dropout


class MlpConfig(ImageSettings):
    width: int = Field(512, gt=0, description="units in a layer")
    layers: int = Field(2, gt=0, description="layers before the last")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of each layer's output that is zeroed in training")

    def products_per_token(self) -> int:
        """Multiplications for one image, forwards."""
        pixels = self.channels * self.size[0] * self.size[1]
        return pixels * self.width + (self.layers - 1) * self.width**2


class MlpClassifierConfig(MlpConfig, Classes):
    def shape(self) -> str:
        return f"{self.image()}, {self.layers} layers of {self.width}, {self.told()}"


class MlpRegressorConfig(MlpConfig, Numbers):
    def shape(self) -> str:
        return f"{self.image()}, {self.layers} layers of {self.width}, {self.told()}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "layers": 1},
    "small": {"width": 512, "layers": 2},
    "base": {"width": 1024, "layers": 3},
}


class MlpReader(nn.Module):
    def __init__(self, c: MlpConfig) -> None:
        super().__init__()
        widths = [c.channels * c.size[0] * c.size[1], *[c.width] * c.layers]
        self.layers = nn.ModuleList(fully_connected(a, b) for a, b in pairwise(widths))
        self.dropout = Dropout(c.dropout)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        x = images.flatten(1)
        for layer in self.layers:
            x = self.dropout(relu(layer(x)))
        return x


class Mlp(nn.Module):
    def __init__(self, config: MlpClassifierConfig | MlpRegressorConfig) -> None:
        super().__init__()
        self.config = c = config
        self.reader = MlpReader(c)
        self.to_answers = to_answers(c.width, c.answers())

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B A"]:
        """A score for every class, or every number."""
        return self.to_answers(self.reader(images))
