"""The shapes of a model's tensors without their numbers: nothing is drawn, and no memory is taken for them.

What a file says of itself is checked against them before a model of its size is made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

DRAWS = frozenset(
    [nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_, nn.init.orthogonal_, Tensor.normal_, Tensor.uniform_]
)


class NothingIsDrawn(TorchFunctionMode):
    """First numbers are left out, for there is no place for them. To draw them all the same, torch would import its
    compiler, which takes as long as the rest of it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if func in DRAWS:
            return args[0] if args else given["tensor"]
        return func(*args, **given)


@contextmanager
def shapes_only() -> Iterator[None]:
    """Modules that are made within have tensors of the right shapes, and nothing in them."""
    with torch.device("meta"), NothingIsDrawn():
        yield
