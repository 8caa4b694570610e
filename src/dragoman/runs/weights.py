"""A model's weights by name: out of a model, out of a file, and into a model that they fit exactly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from dragoman.errors import DataError
from dragoman.runs.files import refuse_irregular

Shapes = dict[str, tuple[int, ...]]


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once: a tied table stands under the first of its names. And what a norm has counted so far.

    Where workers share the parameters out, all of them must ask at once.
    """
    return {name: whole(tensor) for name, tensor in parts_of(model).items()}


def parts_of(model: nn.Module) -> dict[str, Tensor]:
    """The same as this worker holds them."""
    lasting = model.state_dict().keys()  # a table that is computed, such as the waves of 2017, is not among them
    counted = {name: buffer for name, buffer in model.named_buffers() if name in lasting}
    return {name: parameter.detach() for name, parameter in model.named_parameters()} | counted


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Every parameter filled, every tensor used, every shape equal — or a list of what is not."""
    wanted = parts_of(model)
    there = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    refuse_unequal(there, {name: tuple(tensor.shape) for name, tensor in wanted.items()}, folder)
    for name, tensor in wanted.items():
        tensor.copy_(shared_as(tensor, weights[name]))


def whole(tensor: Any) -> Tensor:
    """Put together, where it is one of torch's that workers share out (a DTensor; importing it takes a while)."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def shared_as(pattern: Any, tensor: Tensor) -> Tensor:
    """A tensor that every worker has, shared out as the pattern is."""
    if not hasattr(pattern, "full_tensor") or tensor.shape != pattern.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, pattern.device_mesh, pattern.placements, src_data_rank=None)


def refuse_unequal(there: Shapes, wanted: Shapes, folder: Path) -> None:
    """Every parameter filled, every tensor used, every shape equal — or a list of what is not."""
    problems = [f"{name} is missing" for name in wanted.keys() - there.keys()]
    problems += [f"{name:.100} is left over" for name in there.keys() - wanted.keys()]
    problems += [
        f"{name} is {there[name]} and must be {wanted[name]}"
        for name in wanted.keys() & there.keys()
        if there[name] != wanted[name]
    ]
    if problems:
        raise DataError("E-RUN-06", f"the weights in {folder} do not fit its settings: {'; '.join(sorted(problems))}")


def take_over(model: Any, old: Any, folder: Path) -> None:
    """All weights of a model of the same kind; of one of another kind its reader's, and what stands on it is new."""
    if model.config == old.config:
        load_weights(model, weights_of(old), folder)
    else:
        load_weights(model.reader, weights_of(old.reader), folder)


def read_tensors(path: Path) -> dict[str, Tensor]:
    refuse_irregular(path)
    try:
        return load_file(path)
    except FileNotFoundError:
        raise DataError("E-RUN-02", f"{path.parent} is damaged: {path.name} is missing") from None
    except SafetensorError as problem:
        raise DataError("E-RUN-02", f"{path} is damaged: {problem}") from None
