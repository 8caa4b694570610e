"""What an image model sees on its way: the maps of every convolution, or where every head of a vit looks.

A vit's answer is read from the state of its class token, so that is whose looks count; with one label a pixel it is
read from all patches, and what counts is the mean over them.

rollout    Ã = ½ A + ½ I for each block, A the mean over its heads; the class token's row of Ã_L … Ã_1 says how much of
           each patch reaches it through all blocks, the ways around attention included (Abnar & Zuidema 2020)
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.errors import UsageError
from dragoman.images.pixels import Pixels
from dragoman.models.vit import VitSegmenter
from dragoman.modules.attention import watching
from dragoman.modules.convolution import ResidualConvolution


class FeatureMaps(NamedTuple):
    layer: str
    maps: Float[Tensor, "C h w"]

    def strongest(self) -> int:
        """The map that is brightest on the whole."""
        return int(self.maps.mean(dim=(1, 2)).argmax())

    def silent(self) -> float:
        """Share of the maps that are dark everywhere."""
        return (self.maps.amax(dim=(1, 2)) <= 0).float().mean().item()


class PatchAttention(NamedTuple):
    """How much the class token, or the mean patch, looks at each patch, by every head."""

    layer: str
    weights: Float[Tensor, "H h w"]
    at_class: Float[Tensor, " H"]  # how much at the class token: with the patches it sums to one

    def entropy(self) -> list[float]:
        """−Σ a log₂ a of each head, in bits: 0 where it looks at one place, log₂ of their number where at all alike."""
        whole = torch.cat([self.weights.flatten(1), self.at_class[:, None]], dim=1).double()
        return (-torch.special.xlogy(whole, whole).sum(dim=1) / torch.log(torch.tensor(2.0))).tolist()

    def strongest(self) -> list[tuple[int, int, float]]:
        """Row, column and weight of the patch that each head looks at most, counted from 0."""
        found = []
        for head in self.weights:
            row, column = divmod(int(head.argmax()), head.shape[1])
            found.append((row, column, float(head[row, column])))
        return found


class Insides(NamedTuple):
    pixels: Pixels
    told: list[tuple[str, str]]  # what the model says of the image
    maps: list[FeatureMaps]
    attention: list[PatchAttention]
    rollout: Float[Tensor, "h w"] | None  # of a class token that is asked


class Watched(NamedTuple):
    """What came out, and what was seen on the way."""

    answers: Float[Tensor, "1 ..."]
    maps: list[FeatureMaps]
    attention: list[PatchAttention]
    rollout: Float[Tensor, "h w"] | None


@torch.inference_mode()
def watch(model: Any, image: Float[Tensor, "1 C H W"]) -> Watched:
    maps, handles = list[FeatureMaps](), list[Any]()
    for name, module in model.named_modules():
        if isinstance(module, ResidualConvolution):
            keep = lambda _m, _i, out, name=name: maps.append(FeatureMaps(in_words(name), out[0].clone()))  # noqa: E731
            handles.append(module.register_forward_hook(keep))
    with watching(model) as seen:
        answers = model(image)
    for handle in handles:
        handle.remove()
    if not (maps or seen):
        raise UsageError(
            "E-IMG-15",
            "an mlp has neither feature maps nor attention to look at; give a model of the family cnn or vit",
        )
    weights = [found.weights[0] for [found] in seen.values()]  # (H T T) of each block
    rows = [one[:, 1:].mean(dim=1) if asks_patches(model) else one[:, 0] for one in weights]  # (H T)
    attention = [patch_attention(block, one, model.config.grid()) for block, one in enumerate(rows, start=1)]
    rolls = bool(weights) and not asks_patches(model)
    rollout = roll_out(weights).unflatten(0, model.config.grid()) if rolls else None
    return Watched(answers, maps, attention, rollout)


def asks_patches(model: Any) -> bool:
    """Whether its answer is read from the states of the patches; else it is read from the class token's."""
    return isinstance(model, VitSegmenter)


def patch_attention(block: int, row: Float[Tensor, "H T"], grid: tuple[int, int]) -> PatchAttention:
    return PatchAttention(f"block {block}", row[:, 1:].unflatten(1, grid), row[:, 0])


def roll_out(blocks: list[Float[Tensor, "H T T"]]) -> Float[Tensor, " P"]:
    """What of each patch reaches the class token, of all that is not its own."""
    reached = torch.eye(blocks[0].shape[-1])[0]
    for weights in reversed(blocks):
        reached = 0.5 * reached @ weights.mean(dim=0) + 0.5 * reached
    return reached[1:] / reached[1:].sum()


def in_words(name: str) -> str:
    """reader.stages.0.1 → stage 1, layer 2; up.0 → way up 1."""
    parts = [int(part) + 1 for part in name.split(".") if part.isdigit()]
    return f"way up {parts[0]}" if name.startswith("up") else f"stage {parts[0]}, layer {parts[1]}"
