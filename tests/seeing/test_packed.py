"""Packed numbers come back as they would have been printed."""

import base64
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dragoman.errors import DataError
from dragoman.seeing.packed import LARGEST, Packed, pack, pack_each

numbers = arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, max_dims=3), elements=st.floats(-32767, 32767))
fast = settings(max_examples=60, deadline=None)


@given(numbers)
@fast
def test_a_round_trip_loses_half_a_unit_of_the_last_digit_at_most(values):
    packed = pack(torch.tensor(values))
    assert packed.shape == values.shape
    torch.testing.assert_close(
        packed.unpack(), torch.tensor(values), atol=0.5 * 10**-packed.digits * (1 + 1e-9), rtol=0
    )


@given(st.lists(st.floats(-8, 8, width=32), min_size=1), st.integers(0, 3))
@fast
def test_what_is_unpacked_prints_as_the_number_itself(values, digits):
    for value, found in zip(values, pack(torch.tensor(values), digits).unpack().tolist(), strict=True):
        assert f"{found:z.{digits}f}" == f"{value:z.{digits}f}"  # z: a whole number knows no −0


@given(st.integers(-30000, 30000), st.integers(0, 4))
@fast
def test_halves_are_rounded_as_python_prints_them(whole, digits):
    value = (whole + 0.5) / 10**digits
    found = pack(torch.tensor(value, dtype=torch.float64), digits).unpack().item()
    assert f"{found:z.{digits}f}" == f"{value:z.{digits}f}"


@pytest.mark.parametrize(
    ("largest", "digits"),
    [(0.0, 4), (1.0, 4), (3.2767, 4), (3.27674, 4), (3.2768, 3), (32.768, 2), (400.0, 1), (4e3, 0)],
)
def test_as_many_digits_as_fit(largest, digits):
    assert pack(torch.tensor([-largest, 0.5], dtype=torch.float64)).digits == digits


def test_the_bytes_are_what_the_page_reads():
    packed = pack(torch.tensor([[1.0, -0.25], [-math.inf, 0.5]]), 2)
    assert base64.b64decode(packed.data) == bytes([100, 0, 0xE7, 0xFF, 0x00, 0x80, 50, 0])
    assert json.loads(packed.model_dump_json()) == {"shape": [2, 2], "digits": 2, "data": packed.data}
    assert Packed.model_validate_json(packed.model_dump_json()) == packed


def test_what_may_not_be_seen_stays_hidden():
    values = torch.tensor([0.5, -math.inf, 2.0])
    assert torch.equal(pack(values).unpack(), values.double())
    assert pack(torch.zeros(0, 3)).unpack().shape == (0, 3)


@pytest.mark.parametrize("value", [math.nan, math.inf, LARGEST + 1.0])
def test_what_has_no_number_is_refused(value):
    with pytest.raises(DataError) as problem:
        pack(torch.tensor([1.0, value]))
    assert problem.value.id == "E-EXP-04"


def test_more_digits_than_fit_are_refused():
    with pytest.raises(DataError, match="too large to be packed"):
        pack(torch.tensor([40.0]), 3)


def test_many_packed_together_are_as_each_packed_alone():
    stack = torch.rand(3, 2, 4, 5, dtype=torch.float64)
    assert pack_each(stack, 4) == [pack(one, 4) for one in stack]
