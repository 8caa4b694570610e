"""What is done once to every number of a model in each step: gradients added up, measured and scaled, Adam's update.

For tensors on a CPU all of them are done by one native call each. A model of a hundred small tensors spends as long in
calling a framework a thousand times as in its products. For any other tensors torch does the same, one after another.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version  # what was changed behind autograd's back, it is told

from dragoman import native
from dragoman.runs.weights import whole

Many = Sequence[Tensor]


class Rates(NamedTuple):
    """Adam's settings in one step."""

    rate: float
    betas: tuple[float, float]
    epsilon: float
    step: int  # from 1
    decay: float = 0.0  # share of a parameter that goes, times the rate (AdamW)
    pull: float = 0.0  # share of a parameter that is added to its gradient (Adam)


def length_of(gradients: Many) -> float:
    """√Σ g², of all of them together."""
    library = native_for(gradients)
    if library is None:
        return float(whole(nn.utils.get_total_norm(gradients))) if gradients else 0.0
    described = describe(gradients)
    return math.sqrt(library.sum_of_squares(ctypes.byref(described.struct)))


def multiply(tensors: Many, share: float) -> None:
    library = native_for(tensors)
    if library is not None:
        described = describe(tensors)
        library.multiply_all(ctypes.byref(described.struct), share)
        increment_version(tensors)
    elif tensors:
        torch._foreach_mul_(list(tensors), share)


def add(to: Many, more: Many) -> None:
    library = native_for(to, more)
    if library is not None:
        described, others = describe(to), addresses(more)
        library.add_all(ctypes.byref(described.struct), others.ctypes.data)
        increment_version(to)
    elif to:
        torch._foreach_add_(list(to), list(more))


def adam(parameters: Many, gradients: Many, means: Many, squares: Many, given: Rates) -> None:
    """m ← β₁ m + (1−β₁) g;  v ← β₂ v + (1−β₂) g²;  p ← (1 − decay · rate) p − rate · m̂ / (√v̂ + ε)."""
    first, second = given.betas
    rate, correction = given.rate / (1 - first**given.step), math.sqrt(1 - second**given.step)
    kept = 1 - given.rate * given.decay
    library = native_for(parameters, gradients, means, squares)
    if library is None:
        return adam_by_torch(parameters, gradients, means, squares, given, rate, correction)
    described, lists = describe(parameters), [addresses(part) for part in (gradients, means, squares)]
    asked = native.Adam(
        described.struct, *(part.ctypes.data for part in lists), first, second, rate, correction, given.epsilon, kept,
        given.pull,
    )  # fmt: skip
    library.adam(ctypes.byref(asked))
    return increment_version([*parameters, *means, *squares])


def adam_by_torch(
    parameters: Many, gradients: Many, means: Many, squares: Many, given: Rates, rate: float, correction: float
) -> None:
    first, second = given.betas
    if given.pull:
        gradients = torch._foreach_add(list(gradients), list(parameters), alpha=given.pull)
    if given.decay:
        torch._foreach_mul_(list(parameters), 1 - given.rate * given.decay)
    torch._foreach_lerp_(list(means), list(gradients), 1 - first)
    torch._foreach_mul_(list(squares), second)
    torch._foreach_addcmul_(list(squares), list(gradients), list(gradients), 1 - second)
    roots = torch._foreach_sqrt(list(squares))
    torch._foreach_div_(roots, correction)
    torch._foreach_add_(roots, given.epsilon)
    torch._foreach_addcdiv_(list(parameters), list(means), roots, -rate)


RARE = ("amsgrad", "maximize", "capturable", "differentiable")


class Adam(torch.optim.Adam):
    """torch's own, all of its tensors updated by one call; its state has the same names. What is rarely asked
    for torch does itself."""

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        if any(group[name] for group in self.param_groups for name in RARE):
            return super().step(closure)
        loss = called(closure)
        for group in self.param_groups:
            learning = [p for p in group["params"] if p.grad is not None]
            states = [self.state[p] for p in learning]
            for p, state in zip(learning, states, strict=True):
                if not state:
                    state.update(step=no_steps(), exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
            steps = count_up(states)
            for step in sorted(set(steps)):  # nearly always one: all have learned from the beginning
                some = [i for i, number in enumerate(steps) if number == step]
                adam(
                    [learning[i] for i in some],
                    [g for i in some if (g := learning[i].grad) is not None],
                    [states[i]["exp_avg"] for i in some],
                    [states[i]["exp_avg_sq"] for i in some],
                    rates_of(group, step),
                )
        return loss


def called(closure: Callable[[], float] | None) -> float | None:
    with torch.enable_grad():
        return closure() if closure else None


def no_steps() -> Tensor:
    """A counter; other kinds of numbers would soon stop counting."""
    return torch.zeros((), dtype=torch.float32)


def count_up(states: Sequence[dict[str, Any]]) -> list[int]:
    """One more step in each; how many each has now."""
    if states:
        torch._foreach_add_([state["step"] for state in states], 1)
    return [int(state["step"]) for state in states]


def rates_of(group: dict[str, Any], step: int) -> Rates:
    decay = group["weight_decay"]
    apart = {"decay": decay} if group["decoupled_weight_decay"] else {"pull": decay}
    return Rates(group["lr"], group["betas"], group["eps"], step, **apart)


# ── for the native part ───────────────────────────────────────────────────────────────────


def native_for(*lists: Many) -> ctypes.CDLL | None:
    """The library, where all of these are ordinary numbers of this process, side by side."""
    plain = all(
        type(x) in (Tensor, nn.Parameter) and x.dtype == torch.float32 and x.device.type == "cpu" and x.is_contiguous()
        for several in lists
        for x in several
    )
    return native.library() if plain and lists[0] else None


class Described(NamedTuple):
    """A struct, and the arrays that it points into."""

    struct: native.Tensors
    sizes: Any
    data: Any


def describe(tensors: Many) -> Described:
    sizes, data = np.array([x.numel() for x in tensors], dtype=np.int64), addresses(tensors)
    return Described(
        native.Tensors(torch.get_num_threads(), len(tensors), sizes.ctypes.data, data.ctypes.data), sizes, data
    )


def addresses(tensors: Many) -> Any:
    return np.array([x.data_ptr() for x in tensors], dtype=np.uint64)
