"""Scores of numbers and of masks, by their definitions."""

import numpy as np
import pytest

from dragoman.evaluation.numbers import measure_numbers
from dragoman.evaluation.overlap import overlap_of


def test_r2_and_mean_error_by_hand():
    wanted, told = np.array([[1.0], [2.0], [3.0], [6.0]]), np.array([[1.0], [2.5], [2.0], [6.0]])
    found = measure_numbers(("x",), wanted, told)
    assert found.r2 == pytest.approx(1 - 1.25 / 14)
    assert found.mean_error == pytest.approx(1.5 / 4)
    assert found.images == 4


def test_telling_the_mean_always_explains_nothing_and_being_right_all():
    wanted = np.random.default_rng(0).normal(size=(50, 2))
    mean = np.repeat(wanted.mean(axis=0, keepdims=True), 50, axis=0)
    assert [one.r2 for one in measure_numbers(("x", "y"), wanted, mean).each] == pytest.approx([0, 0], abs=1e-12)
    assert measure_numbers(("x", "y"), wanted, wanted).r2 == 1
    constant = np.ones((5, 1))
    assert measure_numbers(("x",), constant, constant).r2 == 1


def test_an_interval_holds_its_score_and_shrinks_with_more_images():
    random = np.random.default_rng(0)

    def width(images):
        wanted = random.normal(size=(images, 1))
        [one] = measure_numbers(("x",), wanted, wanted + 0.3 * random.normal(size=(images, 1))).each
        low, high = one.r2_interval
        assert low < one.r2 < high
        assert one.error_interval[0] < one.mean_error < one.error_interval[1]
        return high - low

    assert width(2000) < width(100) / 2


def test_iou_by_hand():
    wanted = np.array([[[0, 0, 1], [1, 1, 2]]])
    told = np.array([[[0, 1, 1], [1, 0, 2]]])
    found = overlap_of(("a", "b", "c", "never"), wanted, told)
    assert found.iou == pytest.approx({"a": 1 / 3, "b": 2 / 4, "c": 1.0})
    assert found.mean_iou == pytest.approx((1 / 3 + 1 / 2 + 1) / 3)
    assert found.accuracy == pytest.approx(4 / 6)
    both = found + found
    assert (both.images, both.accuracy, both.iou) == (2, found.accuracy, found.iou)
