"""What a model keeps while it writes: nested named tuples of tensors, batch first in every one."""

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


def select_rows(state: State, rows: Int[Tensor, " N"]) -> State:
    """Keep, repeat or reorder sentences: `state` with row i taken from row `rows[i]`."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, tuple):
        parts = [select_rows(part, rows) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    raise TypeError(f"a state holds tensors and tuples of them, not {type(state).__name__}")
