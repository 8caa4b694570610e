"""How parameters follow their gradients. One table names them all; what torch has is taken from torch.

name       direction of a step, g the gradient
sgd        g
momentum   v ← 0.9 v + g
adagrad    g / √Σg²                      the sum grows: rates only fall
rmsprop    g / √mean g²                  an exponential mean: it forgets
adam       m̂ / √v̂                        both means, corrected for starting at zero
adamw      the same, with weight decay apart from the gradient
muon       m made orthogonal             for matrices; AdamW for tables, norms and biases
"""

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, Optimizer, RMSprop

from dragoman.modules.products import product
from dragoman.training.parallel import ALONE, Workers
from dragoman.training.settings import OptimizerName
from dragoman.training.team import MOST, Team, team_size
from dragoman.training.updates import Adam, Rates, adam, called, count_up, no_steps


def make_optimizer(
    name: OptimizerName, model: nn.Module, rate: float, weight_decay: float = 0.0, workers: Workers = ALONE
) -> Optimizer:
    parameters = list(model.parameters())
    match name:
        case "sgd":
            return SGD(parameters, rate, weight_decay=weight_decay)
        case "momentum":
            return SGD(parameters, rate, momentum=0.9, weight_decay=weight_decay)
        case "adagrad":
            return Adagrad(parameters, rate, weight_decay=weight_decay)
        case "rmsprop":
            return RMSprop(parameters, rate, alpha=0.98, weight_decay=weight_decay)
        case "adam" | "adamw":
            apart = name == "adamw"
            settings = (rate, (0.9, 0.98), 1e-9, weight_decay)  # and its betas and ε
            return Adam(parameters, *settings, decoupled_weight_decay=apart)
        case "muon":
            parts = matrices_and_rest(model)
            shared = workers.share_out(orthogonal_together(Team(team_size())))
            return Muon(*parts, rate, weight_decay=weight_decay, make_orthogonal=shared)


def matrices_and_rest(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices that map states to states, and everything else: tables of vectors, norms, biases."""
    tables = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in tables]
    chosen = {id(p) for p in matrices}
    return matrices, [p for p in model.parameters() if id(p) not in chosen]


class Muon(Optimizer):
    """Momentum made orthogonal (Jordan et al. 2024): every direction of a matrix learns at the same speed.

        m ← μ m + g;   W ← W − rate · 0.2 √max(rows, columns) · orthogonal(g + μ m)

    The factor gives the update the size of Adam's (Liu et al. 2025), so both parts share one rate. Computed in
    float32: bfloat16, as torch.optim.Muon has it, is several times slower on a CPU without its instructions.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        rest: Iterable[nn.Parameter],
        lr: float,
        *,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.98),
        weight_decay: float = 0.0,
        make_orthogonal: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        """`make_orthogonal` may be one that workers share out: a third of a small step is in it."""
        groups = [{"params": list(matrices), "orthogonal": True}, {"params": list(rest), "orthogonal": False}]
        super().__init__(groups, {"lr": lr, "momentum": momentum, "betas": betas, "weight_decay": weight_decay})
        self.make_orthogonal = make_orthogonal or orthogonal_together(Team(team_size()))
        self.stacked: dict[tuple[int, ...], tuple[Tensor, list[Tensor]]] = {}

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = called(closure)
        for group in self.param_groups:
            learning = [p for p in group["params"] if p.grad is not None]
            if learning and group["weight_decay"]:
                torch._foreach_mul_(learning, 1 - group["lr"] * group["weight_decay"])
            if learning and group["orthogonal"]:
                self.step_matrices(learning, group)
            elif learning:
                self.step_rest(learning, group)
        return loss

    def step_matrices(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        by_shape: dict[tuple[int, ...], list[Tensor]] = {}
        for matrix in matrices:
            by_shape.setdefault(tuple(matrix.shape), []).append(matrix)
        for (rows, columns), alike in by_shape.items():  # one batched product for all of a shape
            gradients = torch.stack([p.grad for p in alike if p.grad is not None])
            momenta = self.momenta_of(alike)
            momenta.mul_(group["momentum"]).add_(gradients)
            updates = self.make_orthogonal(gradients.add_(momenta, alpha=group["momentum"]))
            size = 0.2 * math.sqrt(max(rows, columns))
            torch._foreach_add_(alike, list(updates.unbind()), alpha=-group["lr"] * size)

    def momenta_of(self, alike: list[Tensor]) -> Float[Tensor, "N R C"]:
        """The momenta of matrices of one shape, in one tensor; each matrix's own state is a view of it."""
        shape = tuple(alike[0].shape)
        views = [self.state[p].get("momentum") for p in alike]
        known = self.stacked.get(shape)
        if known is None or len(views) != len(known[1]) or any(map(operator.is_not, views, known[1])):
            whole = torch.stack(
                [torch.zeros_like(p) if view is None else view for p, view in zip(alike, views, strict=True)]
            )
            known = self.stacked[shape] = (whole, list(whole.unbind()))
            for p, view in zip(alike, known[1], strict=True):
                self.state[p]["momentum"] = view
        return known[0]

    def step_rest(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """m ← β₁ m + (1−β₁) g;  v ← β₂ v + (1−β₂) g²;  p ← p − rate · m̂ / (√v̂ + ε)."""
        states = [self.state[p] for p in parameters]
        for p, state in zip(parameters, states, strict=True):
            if not state:
                state.update(step=no_steps(), mean=torch.zeros_like(p), square=torch.zeros_like(p))
        done = count_up(states)
        for step in dict.fromkeys(done):  # all alike, but for those that have learned nothing in some steps
            some = [i for i, its in enumerate(done) if its == step]
            adam(
                [parameters[i] for i in some],
                [grad for i in some if (grad := parameters[i].grad) is not None],
                [states[i]["mean"] for i in some],
                [states[i]["square"] for i in some],
                Rates(group["lr"], group["betas"], 1e-9, step),
            )


def orthogonal_together(team: Team) -> Callable[[Tensor], Tensor]:
    """`orthogonal`, each thread with matrices of its own. As many pieces for any number of threads: the same bits."""

    def work(matrices: Float[Tensor, "N R C"]) -> Float[Tensor, "N R C"]:
        pieces = matrices.tensor_split(min(MOST, len(matrices)))
        shares = [range(first, len(pieces), team.size) for first in range(min(team.size, len(pieces)))]
        found = team.each(lambda share: {i: orthogonal(pieces[i]) for i in share}, shares)
        made = {i: piece for share in found for i, piece in share.items()}
        return torch.cat([made[i] for i in range(len(pieces))])

    return work


# For each round a polynomial a x + b x³ + c x⁵: the one that comes closest to 1 on the interval that the round before
# left singular values in, from [0.03, 1] to [0.96, 1.04] in three (each by linear programming; Amsel et al. 2025).
# From 0.01 on they would end between 0.73 and 1.27, on steeper waves, and magnify last digits of sums in another order.
ROUNDS = ((7.3625, -20.7434, 15.1606), (2.9175, -2.1824, 0.4755), (2.0463, -1.4295, 0.3934))


def orthogonal(matrices: Float[Tensor, "N R C"]) -> Float[Tensor, "N R C"]:
    """About U Vᵀ of each matrix U Σ Vᵀ, by Newton and Schulz: x ← (a I + b x xᵀ + c (x xᵀ)²) x, three times.

    Singular values must be at most 1. ‖(x xᵀ)²‖^¼ is a bound on the largest that costs nothing, since the first round
    needs that product; it is several times closer than ‖x‖, which spares two of five rounds.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices  # the smaller square is the cheaper one
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-30)
    square = product(x, x.mT)
    fourth = product(square, square)
    bound = fourth.norm(dim=(-2, -1), keepdim=True).pow_(0.25).clamp_(min=1e-4)
    x, square, fourth = x.div_(bound), square.div_(bound**2), fourth.div_(bound**4)
    wide = x.shape[-1] >= 2 * x.shape[-2]  # then the factors are multiplied with each other first
    factor, factors = square, None
    for number, (a, b, c) in enumerate(ROUNDS):
        if number:
            square = product(product(factor, square), factor) if wide else product(x, x.mT)
            fourth = product(square, square)
        factor = fourth.mul_(c).add_(square, alpha=b)
        factor.diagonal(dim1=-2, dim2=-1).add_(a)
        if wide:
            factors = factor if factors is None else product(factor, factors)
        else:
            x = product(factor, x)
    x = x if factors is None else product(factors, x)
    return x.mT if tall else x
