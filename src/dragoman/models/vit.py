"""The Vision Transformer (Dosovitskiy et al. 2021): an image is a text whose words are patches.

    image ─ patches ─ W x + b ─ [class token; patches] + learned positions ─ blocks ─ norm ─ state of the class token

A patch is p × p pixels in a row, and one matrix makes a vector of each: that is a convolution with kernel p and
stride p. From there on it is BERT's reader with the norm before each sublayer: no mask, every patch sees every other.
For one label a pixel, each patch's state tells those of its own pixels.
"""

from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.models.heads import Classes, ImageSettings, Numbers, Pixels, to_answers
from dragoman.modules.activations import activation
from dragoman.modules.attention import multi_head_attention
from dragoman.modules.block import Block, Stack, feedforward
from dragoman.modules.dropout import Dropout
from dragoman.modules.positions import LearnedPositions


class VitConfig(ImageSettings):
    patch: int = Field(4, gt=0, description="pixels on a side of a patch; must divide height and width")
    width: int = Field(128, gt=0, description="numbers in a patch's vector, d_model")
    heads: int = Field(4, gt=0, description="attention heads; must divide the width")
    layers: int = Field(4, gt=0, description="blocks")
    hidden: int = Field(256, gt=0, description="width inside the feed-forward network, d_ff")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of each sublayer's output that is zeroed in training")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="share of attention weights zeroed in training")
    activation: Literal["relu", "gelu", "gelu-tanh"] = Field("gelu", description="of the feed-forward network")
    epsilon: float = Field(1e-6, gt=0, description="added to the variance in norms")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "VitConfig":
        height, width = self.size
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be split into {self.heads} equal heads")
        if height % self.patch or width % self.patch:
            raise ValueError(f"images of {width}×{height} cannot be cut into patches of {self.patch}×{self.patch}")
        return self

    def grid(self) -> tuple[int, int]:
        """Patches down and across."""
        return self.size[0] // self.patch, self.size[1] // self.patch

    def patches(self) -> int:
        down, across = self.grid()
        return down * across

    def products_per_token(self) -> int:
        """Multiplications for one image, forwards."""
        tokens = self.patches() + 1
        block = 4 * self.width**2 + 2 * self.width * self.hidden + 2 * self.width * tokens
        return tokens * (self.layers * block + self.channels * self.patch**2 * self.width)

    def blocks_in_words(self) -> str:
        return (
            f"{self.image()}, {self.patches()} patches of {self.patch}×{self.patch}, {self.layers} blocks, "
            f"width {self.width}, {self.heads} heads, feed-forward {self.hidden}"
        )


class VitVectorsConfig(VitConfig):
    """A reader alone, as models to go on from are handed on."""

    def shape(self) -> str:
        return self.blocks_in_words()


class VitClassifierConfig(VitConfig, Classes):
    def shape(self) -> str:
        return f"{self.blocks_in_words()}, {self.told()}"


class VitRegressorConfig(VitConfig, Numbers):
    def shape(self) -> str:
        return f"{self.blocks_in_words()}, {self.told()}"


class VitSegmenterConfig(VitConfig, Pixels):
    def shape(self) -> str:
        return f"{self.blocks_in_words()}, {self.told()}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 64, "heads": 4, "layers": 4, "hidden": 128},
    "small": {"width": 128, "heads": 4, "layers": 6, "hidden": 256},
    "base": {"width": 512, "heads": 8, "layers": 6, "hidden": 2048},
}


def cut(images: Float[Tensor, "B C H W"], patch: int) -> Float[Tensor, "B P N"]:
    """Patches in reading order, each as a row of its pixels: channel, then row, then column."""
    grid = images.unflatten(3, (-1, patch)).unflatten(2, (-1, patch))  # (B C down p across p)
    return grid.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def paste(patches: Float[Tensor, "B P N"], patch: int, down: int) -> Float[Tensor, "B C H W"]:
    """`cut` backwards; `down` rows of patches there are."""
    grid = patches.unflatten(2, (-1, patch, patch)).unflatten(1, (down, -1))  # (B down across C p p)
    return grid.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)


class VitReader(nn.Module):
    def __init__(self, c: VitConfig) -> None:
        super().__init__()
        self.patch = c.patch
        norm = partial(nn.LayerNorm, c.width, eps=c.epsilon)
        self.to_vector = nn.Linear(c.channels * c.patch**2, c.width)
        nn.init.xavier_uniform_(self.to_vector.weight)
        nn.init.zeros_(self.to_vector.bias)
        self.class_token = nn.Parameter(torch.empty(c.width))
        nn.init.normal_(self.class_token, std=0.02)
        self.positions = LearnedPositions(1 + c.patches(), c.width)
        self.dropout = Dropout(c.dropout)
        blocks = (
            Block(
                self_attention=multi_head_attention(c.width, c.heads, dropout=c.attention_dropout),
                feedforward=feedforward(c.width, c.hidden, activation(c.activation)),
                norm=norm,
                norm_first=True,
                dropout=c.dropout,
            )
            for _ in range(c.layers)
        )
        self.encoder = Stack(blocks, final_norm=norm())

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B T D"]:
        """The state of the class token, then one for each patch."""
        patches = self.to_vector(cut(images, self.patch))
        first = self.class_token.expand(len(images), 1, -1)
        x = torch.cat([first, patches], dim=1)
        states, _ = self.encoder(self.dropout(x + self.positions(0, x.shape[1])), None)
        return states


class Vit(nn.Module):
    def __init__(self, config: VitClassifierConfig | VitRegressorConfig) -> None:
        super().__init__()
        self.config = c = config
        self.reader = VitReader(c)
        self.to_answers = to_answers(c.width, c.answers())

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B A"]:
        """A score for every class, or every number, from the state of the class token."""
        return self.to_answers(self.reader(images)[:, 0])


class VitSegmenter(nn.Module):
    def __init__(self, config: VitSegmenterConfig) -> None:
        super().__init__()
        self.config = c = config
        self.reader = VitReader(c)
        self.to_pixels = to_answers(c.width, len(c.classes) * c.patch**2)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B A H W"]:
        """A score for every class at every pixel, from the state of its patch."""
        c = self.config
        return paste(self.to_pixels(self.reader(images)[:, 1:]), c.patch, c.grid()[0])


class VitVectors(nn.Module):
    """The reader without a head: the state of its class token is a vector for the image."""

    def __init__(self, config: VitVectorsConfig) -> None:
        super().__init__()
        self.config = config
        self.reader = VitReader(config)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B T D"]:
        return self.reader(images)
