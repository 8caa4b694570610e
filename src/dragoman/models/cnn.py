"""The convolutional network: from edges to shapes to things, each stage on half the height and width of the one before.

    image ─ stage ─ pool ─ stage ─ pool ─ flatten ─ W x + b ─ ReLU ─ answers

A stage is one or more residual layers; its channels are twice those of the stage before. For one label a pixel the way
goes down and up again, and on the way up each stage also sees what the same stage saw on the way down, since where a
thing is, is lost in the pooling (Ronneberger et al. 2015):

    image ─ stage 1 ─────────────────────── stage 1' ─ scores of each pixel
               └ pool ─ stage 2 ─ enlarge ──┘
"""

from itertools import pairwise
from typing import Any

from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor, nn

from dragoman.models.heads import Classes, ImageSettings, Numbers, Pixels, fully_connected, to_answers
from dragoman.modules.activations import relu
from dragoman.modules.convolution import REACH, ResidualConvolution, channels_together, halve, join
from dragoman.modules.dropout import Dropout


class CnnConfig(ImageSettings):
    width: int = Field(32, gt=0, description="channels of the first stage; each further one has twice as many")
    stages: int = Field(2, gt=0, description="stages, with pooling between and after them")
    layers: int = Field(1, gt=0, description="residual layers in a stage")
    hidden: int = Field(128, gt=0, description="units of the fully connected layer")
    batch_norm: bool = Field(True, description="normalise each channel over the batch: learns faster and more surely")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the units before the answers zeroed in training")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "CnnConfig":
        if min(self.size) < 2**self.stages:
            raise ValueError(
                f"images of {self.size[1]}×{self.size[0]} cannot be halved {self.stages} times; fewer stages can"
            )
        return self

    def stage_channels(self) -> list[int]:
        return [self.width << stage for stage in range(self.stages)]

    def stage_sizes(self) -> list[tuple[int, int]]:
        return [(self.size[0] >> stage, self.size[1] >> stage) for stage in range(self.stages)]

    def products_per_token(self) -> int:
        """Multiplications for one image, forwards, on the way down."""
        before, total = self.channels, 0
        for channels, (height, width) in zip(self.stage_channels(), self.stage_sizes(), strict=True):
            changes = before * channels * (REACH**2 + 1)
            total += height * width * (changes + (self.layers - 1) * (channels * REACH) ** 2)
            before = channels
        return total

    def stages_in_words(self) -> str:
        norm = "batch norm" if self.batch_norm else "no norm"
        layers = f" of {self.layers} layers" if self.layers > 1 else ""
        return f"{self.image()}, stages{layers} of {', '.join(map(str, self.stage_channels()))} channels, {norm}"

    def flat(self) -> int:
        """Numbers that are left after the last pooling."""
        height, width = self.size[0] >> self.stages, self.size[1] >> self.stages
        return self.stage_channels()[-1] * height * width


class CnnClassifierConfig(CnnConfig, Classes):
    def shape(self) -> str:
        return f"{self.stages_in_words()}, fully connected {self.hidden}, {self.told()}"


class CnnRegressorConfig(CnnConfig, Numbers):
    def shape(self) -> str:
        return f"{self.stages_in_words()}, fully connected {self.hidden}, {self.told()}"


class CnnSegmenterConfig(CnnConfig, Pixels):
    def products_per_token(self) -> int:
        """The way up costs about twice the way down: each stage reads the coarser one, too."""
        return 3 * super().products_per_token()

    def shape(self) -> str:
        return f"{self.stages_in_words()}, down and up again, {self.told()}"


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 16},
    "small": {"width": 32},
    "base": {"width": 64, "layers": 2, "hidden": 256},
}


class CnnReader(nn.Module):
    def __init__(self, c: CnnConfig) -> None:
        super().__init__()
        before, stages = c.channels, list[nn.Module]()
        for channels in c.stage_channels():
            widths = [before, *[channels] * c.layers]
            layers = (ResidualConvolution(a, b, batch_norm=c.batch_norm) for a, b in pairwise(widths))
            stages.append(nn.Sequential(*layers))
            before = channels
        self.stages = nn.ModuleList(stages)

    def forward(self, images: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B c h w"]]:
        """What each stage sees, the finest first."""
        seen, x = list[Tensor](), channels_together(images)
        for stage in self.stages:
            seen.append(stage(halve(x) if seen else x))
            x = seen[-1]
        return seen


class Cnn(nn.Module):
    def __init__(self, config: CnnClassifierConfig | CnnRegressorConfig) -> None:
        super().__init__()
        self.config = c = config
        self.reader = CnnReader(c)
        self.connected = fully_connected(c.flat(), c.hidden)
        self.dropout = Dropout(c.dropout)
        self.to_answers = to_answers(c.hidden, c.answers())

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B A"]:
        """A score for every class, or every number."""
        flat = halve(self.reader(images)[-1]).flatten(1)
        return self.to_answers(self.dropout(relu(self.connected(flat))))


class CnnSegmenter(nn.Module):
    def __init__(self, config: CnnSegmenterConfig) -> None:
        super().__init__()
        self.config = c = config
        self.reader = CnnReader(c)
        channels = c.stage_channels()
        self.up = nn.ModuleList(
            ResidualConvolution(coarse + fine, fine, batch_norm=c.batch_norm)
            for coarse, fine in zip(channels[:0:-1], channels[-2::-1], strict=True)
        )
        self.dropout = Dropout(c.dropout)
        self.to_pixels = nn.Conv2d(c.width, len(c.classes), 1)

    def forward(self, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B A H W"]:
        """A score for every class at every pixel."""
        *finer, x = self.reader(images)
        for up, fine in zip(self.up, reversed(finer), strict=True):
            x = up(join(x, fine))
        return self.to_pixels(self.dropout(x))
