"""What a model keeps while it writes: nested named tuples of tensors, batch first in every one."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

State = Any  # a NamedTuple of tensors, memories and tuples of them; each model declares its own


class Decoded(NamedTuple):
    logits: Float[Tensor, "B T V"]
    state: State


@runtime_checkable
class Writer(Protocol):
    """Anything that can continue a text: all that search and sampling need to know of a model."""

    def decode(self, tokens: Int[Tensor, "B T"], state: State) -> Decoded: ...


@runtime_checkable
class Translating(Writer, Protocol):
    """A writer that first reads a source."""

    scores: Any  # the module that turns states into logits, with its `table`

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> State: ...

    def states(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]: ...


@runtime_checkable
class Writing(Writer, Protocol):
    """A writer that begins with nothing."""

    scores: Any
    carries: bool  # whether its state goes on from one window of a text into the next

    def begin(self, rows: int) -> State: ...

    def write(self, tokens: Int[Tensor, "B T"], state: State) -> tuple[Float[Tensor, "B T D"], State]: ...


def map_tensors(state: State, change: Callable[[Tensor], Tensor]) -> State:
    """`state` with every tensor changed."""
    if isinstance(state, Tensor):
        return change(state)
    if isinstance(state, tuple):
        parts = [map_tensors(part, change) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    raise TypeError(f"a state holds tensors and tuples of them, not {type(state).__name__}")


def select_rows(state: State, rows: Int[Tensor, " N"]) -> State:
    """Keep, repeat or reorder sentences: `state` with row i taken from row `rows[i]`."""
    if hasattr(state, "select"):  # it knows a cheaper way than copying every tensor
        return state.select(rows.numpy())
    return map_tensors(state, lambda tensor: tensor.index_select(0, rows))


def tensors_of(state: State) -> list[Tensor]:
    """Every tensor of a state, in the order that `map_tensors` visits them."""
    if isinstance(state, Tensor):
        return [state]
    return [tensor for part in state for tensor in tensors_of(part)]
