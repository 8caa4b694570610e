"""Settings from a corpus of images: the largest model that can see all of them some ten times, and what follows."""

import math
from collections.abc import Mapping
from typing import Any

from dragoman.errors import UsageError
from dragoman.images.pixels import Form, Size
from dragoman.jobs.request import Request
from dragoman.models import find_family

SIZES: dict[str, list[dict[str, Any]]] = {
    "mlp": [{"width": 256, "layers": 2}, {"width": 512, "layers": 2}, {"width": 1024, "layers": 2}],
    "cnn": [
        {"width": 16},
        {"width": 32},
        {"width": 32, "layers": 2},
        {"width": 64, "layers": 2, "hidden": 256},
    ],
    "vit": [
        {"width": width, "heads": heads, "layers": layers, "hidden": 2 * width}
        for width, heads, layers in ((64, 4, 4), (96, 4, 4), (128, 4, 6), (256, 8, 8))
    ],
}
DROPOUT = {"mlp": 0.2, "cnn": 0.2, "vit": 0.0}
WORTH = {
    "mlp": 30.0,
    "cnn": 8.0,
    "vit": 15.0,
}  # epochs that a larger model must be able to see, or a smaller one is better
MOST_EPOCHS = {"mlp": 60.0, "cnn": 20.0, "vit": 60.0}  # where nobody said; more of them gain little
FEWEST_STEPS = 1500  # that even a small corpus is trained for, where nobody said
EVEN_SO = 100.0  # epochs at most, however small the corpus is
PATCHES = 64  # an image is cut into at most, where nobody said
MOST_PATCHES = 256  # that are taken without asking, where no cut into fewer is even: ViT-B/16 has 196
FINEST = {"classify": 7, "regress": 7, "segment": 4}  # pixels on a side that the last stage sees, about
EVERY_PIXEL = 8  # so many times fewer images a step where each pixel of them has a label to learn from


def minutes_for(images: int) -> float:
    """How long to train where nobody said: 6 minutes for 10,000 images, 14 for 60,000, 58 for a million."""
    return 10 * (images / 30_000) ** 0.5


def epochs_for(task: str, family: str, images: int) -> float:
    enough = FEWEST_STEPS * images_per_step(task, images) / images
    return max(MOST_EPOCHS[family], min(EVEN_SO, enough))


def images_per_step(task: str, images: int) -> int:
    """128, and fewer where there are few: fifty steps an epoch, but no fewer than sixteen images each. Where every
    pixel is labelled, 16: an image teaches much, and more steps teach more."""
    usual = 2 ** int(math.log2(min(128, max(16, images / 50))))
    return max(8, usual // EVERY_PIXEL) if task == "segment" else usual


def plan_model(task: str, form: Form, told: Mapping[str, Any], request: Request, images: int, work: float) -> Any:
    """`told` are the names of what it learns; `work` the multiplications and additions that the time allows."""
    family, asked = find_family(task, request.family), request.asked("model")
    fixed = {"size": form.size, "channels": form.channels, **told}
    refuse_fixed(fixed, asked)
    dropout = 0.0 if task == "segment" else DROPOUT[request.family]
    if request.family == "vit" and "patch" not in asked:
        refuse_crumbs(form)
    shaped = {**fixed, **shape_for(task, request.family, form), "dropout": dropout}
    if request.preset:
        return family.config.read({**shaped, **family.presets[request.preset], **asked}, section="model")
    candidates = [family.config.read({**shaped, **size, **asked}, section="model") for size in SIZES[request.family]]
    epochs = request.epochs or WORTH[request.family]
    return next((c for c in reversed(candidates) if work_per_image(c) * images * epochs <= work), candidates[0])


def work_per_image(config: Any) -> float:
    """Multiplications and additions, forward and back: 6 for each product."""
    return 6.0 * config.products_per_token()


def shape_for(task: str, family: str, form: Form) -> dict[str, Any]:
    """What follows from the size of the images: patches, or how often they are halved."""
    match family:
        case "vit":
            return {"patch": patch_for(form)}
        case "cnn":
            return {"stages": max(1, round(math.log2(min(form.size) / FINEST[task])))}
        case _:
            return {}


def patch_for(form: Form) -> int:
    """The smallest that divides height and width into no more than 64 patches; else the largest that divides them."""
    whole = math.gcd(form.height, form.width)
    sides = [side for side in range(1, whole + 1) if whole % side == 0]
    return next((side for side in sides if form.height * form.width <= PATCHES * side**2), sides[-1])


def refuse_crumbs(form: Form) -> None:
    """Height and width with hardly a common divisor leave patches of a pixel or two, and attention is quadratic."""
    side = patch_for(form)
    patches = form.height * form.width // side**2
    if patches > MOST_PATCHES:
        better = evenly_cut(form.size)
        raise UsageError(
            "E-SET-01",
            f"images of {form.size} can only be cut into {patches:,} patches of {side}×{side}, too many to learn from; "
            f"--set images.size={better} makes {PATCHES} of them or fewer (or choose: --set model.patch={side})",
        )


def evenly_cut(size: Size) -> Size:
    """This size, or one near it, that square patches divide into no more than 64."""
    if size.height * size.width <= PATCHES * patch_for(Form(1, *size)) ** 2:
        return size
    side = max(1, math.isqrt(size.height * size.width // PATCHES))
    while True:
        down, across = (max(1, round(length / side)) for length in size)
        if down * across <= PATCHES:
            return Size(down * side, across * side)
        side += 1


def refuse_fixed(fixed: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    for name in sorted(fixed.keys() & asked.keys()):
        way = "set images.size instead" if name == "size" else "leave it out"
        raise UsageError("E-SET-01", f"model.{name} follows from the images; {way}")
