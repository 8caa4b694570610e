"""What an image model sees, as a picture: feature maps side by side, attention as light on the image. And the page of
a cnn, which has no attention for the page of those that attend.

The page is one file: its pictures stand in it as data, nothing is loaded from anywhere, and the numbers stand beside.
"""

import base64
import io
import json
from html import escape
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from dragoman.decoding.insides import FeatureMaps, Insides, PatchAttention
from dragoman.images.pixels import Pixels
from dragoman.seeing.heatmap import POLICY, STYLE, page

SIDE = 168  # pixels that a picture is about wide on the page
LIGHT = np.array([255.0, 196.0, 40.0])  # what is looked at most
MOST = 12  # feature maps in a row of the picture: the brightest
MORE_STYLE = """
img { image-rendering: pixelated; border: 1px solid rgba(127,127,127,.25); }
.told td { width: auto; height: auto; padding: 0 1rem 0 0; background: none; border: 0; }
figcaption { font-size: .85rem; max-width: 11rem; }
"""

Picture = UInt8[np.ndarray, "H W 3"]


# ── pictures ──────────────────────────────────────────────────────────────────────────────


def as_picture(pixels: Pixels) -> Picture:
    return np.repeat(pixels, 3, axis=0).transpose(1, 2, 0) if len(pixels) == 1 else pixels.transpose(1, 2, 0)


def light_up(pixels: Pixels, weights: Float[Tensor, "h w"]) -> Picture:
    """The image in dim grey, lit where the weight is; the largest weight is full light."""
    grey = as_picture(pixels).mean(axis=2, keepdims=True) * 0.75 + 24
    share = weights.double().numpy() / max(1e-12, float(weights.max()))
    size = (pixels.shape[2], pixels.shape[1])
    light = np.asarray(Image.fromarray((255 * share).round().astype(np.uint8)).resize(size, Image.Resampling.NEAREST))
    amount = 0.85 * light[:, :, None] / 255
    return ((1 - amount) * grey + amount * LIGHT).round().clip(0, 255).astype(np.uint8)


def as_grey(one: Float[Tensor, "h w"]) -> UInt8[np.ndarray, "h w"]:
    """A feature map: black where nothing is found, white where most is."""
    low, high = float(one.min()), float(one.max())
    return (255 * (one - low) / max(1e-12, high - low)).round().byte().numpy()


def sheet(maps: Float[Tensor, "C h w"]) -> UInt8[np.ndarray, "H W"]:
    """All maps of a layer on one sheet, in rows, in the order of their channels."""
    count, height, width = maps.shape
    across = ceil(sqrt(count * height / width))
    down = ceil(count / across)
    whole = np.full((down * (height + 1), across * (width + 1)), 90, np.uint8)
    for number, one in enumerate(maps):
        top, left = (number // across) * (height + 1), (number % across) * (width + 1)
        whole[top : top + height, left : left + width] = as_grey(one)
    return whole


# ── the picture ───────────────────────────────────────────────────────────────────────────


def draw_insides(found: Insides, title: str) -> Any:
    """A row for each layer: the heads of a block, or the brightest maps of a convolution; the image itself on top."""
    import matplotlib
    from matplotlib.figure import Figure

    from dragoman.seeing.plots import STYLE as PLOT_STYLE

    rows = [row_of_heads(found, one) for one in found.attention] + [row_of_maps(one) for one in found.maps]
    first = [("image", as_picture(found.pixels))]
    if found.rollout is not None:
        first.append(("all blocks\n(rollout)", light_up(found.pixels, found.rollout)))
    columns = max(len(row) for _, row in rows)
    with matplotlib.rc_context({**PLOT_STYLE, "font.size": 8}):
        figure = Figure(figsize=(1.1 + 1.25 * columns, 0.5 + 1.55 * (len(rows) + 1)), layout="constrained")
        grid = figure.subplots(len(rows) + 1, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for line, (name, row) in zip(grid, [("", first), *rows], strict=True):
        line[0].text(-0.12, 0.5, name, transform=line[0].transAxes, rotation=90, ha="right", va="center", fontsize=9)
        for axes, (caption, picture) in zip(line, row, strict=False):
            axes.imshow(picture, cmap="gray", interpolation="nearest")
            axes.set_title(caption, fontsize=8)
    told = ", ".join(f"{word} ({value})" for word, value in found.told[:4])
    figure.suptitle(f"{title}: {told}" if told else title, fontsize=10)
    return figure


def row_of_heads(found: Insides, one: PatchAttention) -> tuple[str, list[tuple[str, np.ndarray]]]:
    captions = [f"head {number}\n{bits:.2f} bits" for number, bits in enumerate(one.entropy(), start=1)]
    return one.layer, [(text, light_up(found.pixels, head)) for text, head in zip(captions, one.weights, strict=True)]


def row_of_maps(one: FeatureMaps) -> tuple[str, list[tuple[str, np.ndarray]]]:
    brightest = one.maps.mean(dim=(1, 2)).argsort(descending=True)[:MOST].sort().values.tolist()
    count, height, width = one.maps.shape
    name = f"{one.layer}\n{count} maps, {width}×{height}"
    return name, [(f"map {number + 1}", as_grey(one.maps[number])) for number in brightest]


# ── the page ──────────────────────────────────────────────────────────────────────────────


def insides_page(found: Insides, title: str) -> str:
    told = "".join(f"<tr><td>{escape(word)}</td><td>{escape(value)}</td></tr>" for word, value in found.told)
    image = embedded(as_picture(found.pixels), "the image")
    body = [f'<div class="heads"><figure>{image}</figure><table class="told">{told}</table></div>']
    body += [layer_section(one) for one in found.maps]
    policy = f"{POLICY}; img-src data:"
    return page(title, "\n".join(body), STYLE + MORE_STYLE, policy)


def layer_section(one: FeatureMaps) -> str:
    count, height, width = one.maps.shape
    numbers = (
        f"{count} maps of {width}×{height}; brightest on the whole: map {one.strongest() + 1}; "
        f"dark everywhere: {one.silent():.0%}"
    )
    picture = embedded(sheet(one.maps), one.layer, side=4 * SIDE)
    scrolls = f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(one.layer)}">{picture}</div>'
    return f"<section><h2>{escape(one.layer)}</h2><p>{numbers}</p>{scrolls}</section>"


def embedded(picture: UInt8[np.ndarray, "H W ..."], name: str, side: int = SIDE) -> str:
    """The picture as data within the page, each of its pixels enlarged to whole ones."""
    whole = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(whole, format="PNG")
    larger = max(1, side // picture.shape[1])
    data = base64.b64encode(whole.getvalue()).decode()
    height, width = larger * picture.shape[0], larger * picture.shape[1]
    return f'<img src="data:image/png;base64,{data}" alt="{escape(name)}" width="{width}" height="{height}">'


def save_insides(found: Insides, title: str, path: Path) -> None:
    """As the name's ending says: .html, .json, .png or .svg."""
    from dragoman.runs.files import write_file

    match path.suffix.lower():
        case ".html":
            write_file(path, insides_page(found, title))
        case ".json":
            write_file(path, json.dumps(as_json(found, title), ensure_ascii=False))
        case _:
            from dragoman.seeing.plots import save_as

            save_as(draw_insides(found, title), path)


def as_json(found: Insides, title: str) -> dict[str, Any]:
    """Every number of the page, as it is."""
    return {
        "image": title,
        "told": [list(pair) for pair in found.told],
        "maps": [{"layer": one.layer, "maps": one.maps.tolist()} for one in found.maps],
    }
