"""What an image model reads and what it tells: settings that all families share.

    classes    one score for each label           what is on the image
    numbers    one value each                     an angle, a box; as deviations from their mean
    pixels     one score for each label, at each pixel

A family has one reader, and for each of these heads settings that are the reader's and the head's together.
"""

from pydantic import Field
from torch import nn

from dragoman.config import Settings


class ImageSettings(Settings):
    size: tuple[int, int] = Field(description="height and width of the images it reads, in pixels")
    channels: int = Field(1, gt=0, description="1 for grey images, 3 for those in colour")

    def image(self) -> str:
        height, width = self.size
        return f"images of {width}×{height}{' in colour' if self.channels == 3 else ''}"


class Classes(Settings):
    classes: tuple[str, ...] = Field(min_length=2, description="names of the labels, in the order of their scores")

    def answers(self) -> int:
        return len(self.classes)

    def told(self) -> str:
        return f"{len(self.classes)} classes"


class Numbers(Settings):
    numbers: tuple[str, ...] = Field(min_length=1, description="names of the numbers that it tells")

    def answers(self) -> int:
        return len(self.numbers)

    def told(self) -> str:
        return f"{len(self.numbers)} number{'s' if len(self.numbers) > 1 else ''}"


class Pixels(Settings):
    classes: tuple[str, ...] = Field(min_length=2, description="names of the labels that a pixel may have")

    def told(self) -> str:
        return f"{len(self.classes)} classes at each pixel"


def fully_connected(inward: int, outward: int) -> nn.Linear:
    """For a layer with ReLU behind it (He et al. 2015)."""
    linear = nn.Linear(inward, outward)
    nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
    nn.init.zeros_(linear.bias)
    return linear


def to_answers(width: int, answers: int) -> nn.Linear:
    """The last layer: it starts small, so that at first all answers are about alike."""
    linear = nn.Linear(width, answers)
    nn.init.normal_(linear.weight, std=0.02)
    nn.init.zeros_(linear.bias)
    return linear
