"""Numbers on their way to a page: as many digits as are printed, two bytes each, in base64.

    value = whole number / 10^digits        −32768 stands for −∞

A page of a few hundred thousand weights is a third as large as with numbers written out, and what it shows is what
Python prints: a number is rounded exactly as f"{x:.{digits}f}" rounds it.
"""

import base64
import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.config import Settings
from dragoman.errors import DataError

LARGEST = 32767
MINUS_INFINITY = -32768
MOST_DIGITS = 4
TIE = 1e-9  # how near to a half a product may be before its own rounding could decide the digit


class Packed(Settings):
    shape: tuple[int, ...]
    digits: int
    data: str  # int16, little-endian, row by row

    def unpack(self) -> Float[Tensor, "*shape"]:
        whole = torch.from_numpy(np.frombuffer(base64.b64decode(self.data), dtype="<i2").astype(np.float64))
        return (whole / 10**self.digits).masked_fill(whole == MINUS_INFINITY, -math.inf).reshape(self.shape)


def pack(tensor: Float[Tensor, "*shape"], digits: int | None = None) -> Packed:
    """With as many digits as fit, up to 4, or as many as asked for; what has no number is refused."""
    whole, chosen = whole_numbers(tensor, digits)
    return Packed(shape=tuple(tensor.shape), digits=chosen, data=base64.b64encode(whole.tobytes()).decode())


def pack_each(stack: Float[Tensor, " N *shape"], digits: int) -> list[Packed]:
    """Those along the first axis one by one, rounded together: a model has many small ones."""
    whole, _ = whole_numbers(stack, digits)
    shape = tuple(stack.shape[1:])
    return [
        Packed(shape=shape, digits=digits, data=base64.b64encode(one.tobytes()).decode())
        for one in whole.reshape(len(stack), -1)
    ]


def whole_numbers(tensor: Float[Tensor, "*shape"], digits: int | None) -> tuple[Int[np.ndarray, " N"], int]:
    """As they are stored, and with how many digits."""
    values = tensor.detach().double().flatten().numpy()
    hidden = np.isneginf(values)
    finite = np.where(hidden, 0.0, values)
    refuse_strange(finite)
    chosen = fitting_digits(finite) if digits is None else digits
    whole = round_as_printed(finite, chosen)
    if np.abs(whole).max(initial=0) > LARGEST:
        raise DataError("E-EXP-04", f"{np.abs(finite).max():,.0f} with {chosen} digits is too large to be packed")
    return np.where(hidden, MINUS_INFINITY, whole).astype("<i2"), chosen


def refuse_strange(values: Float[np.ndarray, " N"]) -> None:
    strange = values[~np.isfinite(values)]
    if strange.size:
        raise DataError("E-EXP-04", f"{strange[0]} is among the numbers to be shown; the model is damaged")


def fitting_digits(values: Float[np.ndarray, " N"]) -> int:
    """The most digits with which the largest magnitude still fits."""
    largest = np.abs(values).max(initial=0)
    fits = (digits for digits in range(MOST_DIGITS, 0, -1) if abs(as_printed(largest, digits)) <= LARGEST)
    return next(fits, 0)


def round_as_printed(values: Float[np.ndarray, " N"], digits: int) -> Int[np.ndarray, " N"]:
    """value · 10^digits as a whole number. Near a half, where the product itself is rounded, printing decides."""
    product = values * 10.0**digits
    whole = np.rint(product)
    near = np.abs(np.abs(product - whole) - 0.5) < TIE
    whole[near] = [as_printed(value, digits) for value in values[near]]
    return whole.astype(np.int64)


def as_printed(value: float, digits: int) -> int:
    return int(f"{value:.{digits}f}".replace(".", ""))
