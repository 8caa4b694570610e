"""Pictures without a download, drawn with what is on them: every picture has one right answer.

    road     a road from the driver's seat      angle, to where the road will be (lecture 000: from pixels to steering)
    boxes    one thing before a busy wall       left, top, right, bottom of its box, as shares of the picture
    shapes   circles, squares and triangles     which of them each pixel belongs to

Colours, light and noise are drawn anew for each picture, so none of them tells the answer. Picture i is a function of
(seed, kind, part, i) alone.
"""

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from dragoman.errors import UsageError

Random = np.random.Generator
FINER = 4  # pictures are drawn so many times larger, and then made smaller: edges are smooth
ROAD, BOXES, SHAPES = (32, 64), (48, 48), (48, 48)  # height and width
AHEAD = 0.6  # how far up the road the driver looks, as a share of what is seen of it
SHAPE_NAMES = ("background", "circle", "square", "triangle")


class Picture(NamedTuple):
    pixels: UInt8[np.ndarray, "H W 3"]
    answer: Any  # numbers, or a mask


# ── a road ────────────────────────────────────────────────────────────────────────────────


def draw_road(random: Random) -> Picture:
    shift, heading, bend = random.uniform(-0.3, 0.3), random.uniform(-0.5, 0.5), random.uniform(-0.8, 0.8)
    return paint_road(shift, heading, bend, random)


def paint_road(shift: float, heading: float, bend: float, random: Random) -> Picture:
    """The road's middle is x(t) = shift + heading t + bend t², with t from 0 at the wheels to 1 at the horizon; as it
    recedes it gets narrow. The angle, in degrees, is that to the middle of the road some way ahead."""
    height, width = ROAD
    horizon, ground = random.uniform(0.25, 0.4) * height, height
    image, pen = canvas(ROAD, colour(random, 120, 255))
    pen.rectangle([0, FINER * horizon, FINER * width, FINER * height], fill=colour(random, 30, 200))
    road, line = colour(random, 40, 130), colour(random, 170, 255)

    def place(t: float, side: float) -> tuple[float, float]:
        """Where a point of the road is seen: `side` is −1 at its left edge, 1 at its right."""
        near = 1 - 0.85 * t
        x = shift + heading * t + bend * t * t + 0.45 * side * near
        return FINER * width * (0.5 + x / 2), FINER * (ground + (horizon - ground) * t)

    steps = np.linspace(0, 1, 24).tolist()
    pen.polygon([*(place(t, -1.0) for t in steps), *(place(t, 1.0) for t in reversed(steps))], fill=road)
    for a, b in zip(steps[::4], steps[2::4], strict=False):
        pen.polygon([place(a, -0.06), place(b, -0.06), place(b, 0.06), place(a, 0.06)], fill=line)
    angle = math.degrees(math.atan(shift + heading * AHEAD + bend * AHEAD**2))
    return Picture(finish(image, ROAD, random), np.array([angle], dtype=np.float32))


# ── a box ─────────────────────────────────────────────────────────────────────────────────


def draw_box(random: Random) -> Picture:
    height, width = BOXES
    image, pen = canvas(BOXES, colour(random, 60, 200))
    for _ in range(6):  # a wall of strokes, thinner than any thing
        ends = random.uniform(0, 1, (2, 2)) * [FINER * width, FINER * height]
        pen.line([tuple(end) for end in ends.tolist()], fill=colour(random, 60, 200), width=FINER)
    across, down = random.uniform(0.2, 0.6, 2)
    left, top = random.uniform(0, 1 - across), random.uniform(0, 1 - down)
    box = np.array([left, top, left + across, top + down])
    draw = pen.ellipse if random.random() < 0.5 else pen.rectangle
    draw((box * FINER * np.array([width, height, width, height])).tolist(), fill=far_colour(random, image))
    return Picture(finish(image, BOXES, random), box.astype(np.float32))


# ── shapes ────────────────────────────────────────────────────────────────────────────────


def draw_shapes(random: Random) -> Picture:
    """One to four of them; a later one covers those before it. The mask is drawn beside the picture."""
    image, pen = canvas(SHAPES, colour(random, 0, 255))
    labels = Image.new("L", image.size, 0)
    mask_pen = ImageDraw.Draw(labels)
    for _ in range(random.integers(1, 5)):
        label = int(random.integers(1, len(SHAPE_NAMES)))
        radius = FINER * random.uniform(6, 12)
        x, y = random.uniform(radius, FINER * SHAPES[1] - radius), random.uniform(radius, FINER * SHAPES[0] - radius)
        turned, fill = random.uniform(0, 2 * math.pi), far_colour(random, image)
        for one, ink in ((pen, fill), (mask_pen, label)):
            if label == 1:
                one.ellipse([x - radius, y - radius, x + radius, y + radius], fill=ink)
            else:
                one.polygon(corners(x, y, radius, 4 if label == 2 else 3, turned), fill=ink)
    small = np.asarray(labels)[FINER // 2 :: FINER, FINER // 2 :: FINER]  # the middle of each pixel
    return Picture(finish(image, SHAPES, random), np.ascontiguousarray(small))


def corners(x: float, y: float, radius: float, count: int, turned: float) -> list[tuple[float, float]]:
    angles = [turned + 2 * math.pi * corner / count for corner in range(count)]
    return [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]


# ── paint ─────────────────────────────────────────────────────────────────────────────────


def canvas(size: tuple[int, int], fill: tuple[int, ...]) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (FINER * size[1], FINER * size[0]), fill)
    return image, ImageDraw.Draw(image)


def colour(random: Random, low: int, high: int) -> tuple[int, ...]:
    return tuple(random.integers(low, high, 3).tolist())


def far_colour(random: Random, image: Image.Image) -> tuple[int, ...]:
    """One that can be seen before what is painted already."""
    ground = np.asarray(image.resize((1, 1), Image.Resampling.BOX), dtype=np.int64).ravel()
    while True:
        found = colour(random, 0, 255)
        if abs(np.array(found) - ground).max() > 90:
            return found


def finish(image: Image.Image, size: tuple[int, int], random: Random) -> UInt8[np.ndarray, "H W 3"]:
    """Small again, in some light, with the noise of a camera."""
    small = np.asarray(image.resize((size[1], size[0]), Image.Resampling.BOX), dtype=np.float64)
    lit = small * random.uniform(0.7, 1.1) + random.normal(0, 8, small.shape)
    return lit.round().clip(0, 255).astype(np.uint8)


# ── files ─────────────────────────────────────────────────────────────────────────────────


class Kind(NamedTuple):
    draw: Callable[[Random], Picture]
    answers: str  # what they are called in the .npz
    names: tuple[str, ...]


KINDS = {
    "road": Kind(draw_road, "numbers", ("angle",)),
    "boxes": Kind(draw_box, "numbers", ("left", "top", "right", "bottom")),
    "shapes": Kind(draw_shapes, "masks", SHAPE_NAMES),
}


def draw_pictures(kind: str, part: str, count: int, seed: int) -> dict[str, np.ndarray]:
    """Arrays as a `.npz` has them: images, numbers or masks, and names."""
    made, place = KINDS[kind], crc32(f"{kind}/{part}".encode())
    pictures = [made.draw(np.random.default_rng([seed, place, number])) for number in range(count)]
    answers = np.stack([picture.answer for picture in pictures])
    return {
        "images": np.stack([picture.pixels for picture in pictures]),
        made.answers: answers,
        "names": np.array(made.names),
    }


def write_pictures(kind: str, out: Path, *, count: int, valid: int, test: int, seed: int) -> list[Path]:
    """Write train.npz, valid.npz and test.npz."""
    parts = {"train": count, "valid": valid, "test": test}
    refuse_to_overwrite(out, [f"{part}.npz" for part in parts])
    for part, wanted in parts.items():
        if wanted < 1:
            raise UsageError("E-USE-04", f"{wanted} pictures were asked for ({part}); ask for 1 or more")
    out.mkdir(parents=True, exist_ok=True)
    for part, wanted in parts.items():
        whole = io.BytesIO()
        np.savez_compressed(whole, **draw_pictures(kind, part, wanted, seed))  # type: ignore[arg-type]
        (out / f"{part}.npz").write_bytes(whole.getvalue())
    return [out / f"{part}.npz" for part in parts]


def refuse_to_overwrite(out: Path, names: list[str]) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError("E-USE-03", f"{out} is a file, and the pictures need a folder; name another")
    there = [name for name in names if (out / name).exists()]
    if there:
        raise UsageError("E-USE-03", f"{out} already holds {', '.join(there)}; remove them or name another folder")
