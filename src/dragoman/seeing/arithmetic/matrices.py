"""What the arithmetic is told in: matrices with their names, shapes and signs, stage by stage."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from jaxtyping import Float
from pydantic import model_serializer
from torch import Tensor

from dragoman.config import Settings
from dragoman.seeing.packed import Packed, pack

CAT = ("YOUR", "CAT", "IS", "A", "LOVELY", "CAT")
SHOWN = 8  # words, rows and columns of each matrix
EXACT = 1e-9

StageName = Literal[
    "patches", "input", "queries", "keys", "values", "scores", "scaled", "masked", "weights", "context", "concat",
    "output", "residual", "norm", "cell",
]  # fmt: skip


class Matrix(Settings):
    name: str
    sign: str  # what stands before it in the formula; "" where nothing does
    shape: tuple[int, ...]  # its true one
    rows: tuple[str, ...]  # labels of those shown
    columns: tuple[str, ...]
    values: Packed


class Terms(Settings):
    """Every q·k as a sum of products, or every v·tanh(q + k); the first ones, where there are many."""

    rows: tuple[str, ...]  # who looks
    columns: tuple[str, ...]  # at whom
    products: Packed  # rows × columns × numbers
    queries: Packed
    keys: Packed
    sums: Packed  # of all terms
    left_out: int
    hidden: Packed | None = None  # tanh(q + k), rows × columns × numbers, where scores are additive
    v: Packed | None = None  # what these are then multiplied by


class Stage(Settings):
    name: StageName
    title: str
    sentence: str
    matrices: tuple[Matrix, ...]  # left to right as in the formula
    terms: Terms | None = None


class Compared(Settings):
    """Attention weights of the words in their order and in another; how much they differ once that is undone."""

    before: Packed
    after: Packed
    difference: float


class Shuffle(Settings):
    order: tuple[int, ...]  # word i of the shuffled sentence is words[order[i]]
    words: tuple[str, ...]  # shuffled
    without: Compared  # positions
    with_positions: Compared
    sentence: str

    @model_serializer(mode="wrap")
    def name_with(self, usual: Callable[["Shuffle"], dict[str, Any]]) -> dict[str, Any]:
        """As the page knows it: `with`, which Python keeps for itself."""
        found = usual(self)
        return {("with" if key == "with_positions" else key): value for key, value in found.items()}


class Arithmetic(Settings):
    source: Literal["slides", "toy", "model"]
    title: str
    note: str  # what these numbers are
    words: tuple[str, ...]  # those shown
    counted: str = "words"  # what they are, after their number: "tokens", "of 10 tokens"
    heads: int
    width: int
    head_width: int
    stages: tuple[Stage, ...]
    shuffle: Shuffle | None = None


def counted(tokens: Sequence[str]) -> str:
    return f"of {len(tokens)} tokens" if len(tokens) > SHOWN else "tokens"


def matrix(
    sign: str,
    name: str,
    values: Float[Tensor, "R C"],
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
) -> Matrix:
    """The first rows and columns of a matrix; columns without names are numbered."""
    return Matrix(
        name=name,
        sign=sign,
        shape=tuple(values.shape),
        rows=tuple(rows[:SHOWN]),
        columns=tuple((columns or numbered(values.shape[1]))[:SHOWN]),
        values=as_short(values[:SHOWN, :SHOWN]),
    )


def as_short(values: Float[Tensor, "*shape"]) -> Packed:
    """Packed with no more digits than it takes: 0.5 and not 0.5000."""
    packed = pack(values)
    finite = values[values.isfinite()].double()
    enough = (n for n in range(packed.digits) if ((finite - finite.round(decimals=n)).abs() < EXACT).all())
    fewer = next(enough, None)
    return packed if fewer is None else pack(values, fewer)


def numbered(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]
