"""Scores of numbers and of masks, by their definitions."""

import numpy as np
import pytest

from dragoman.evaluation.numbers import explained_more, measure_numbers
from dragoman.evaluation.overlap import measure_masks, overlap_of
from dragoman.evaluation.resampling import paired_images


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


def test_image_by_image_the_gains_are_on_average_the_difference_of_r2():
    random = np.random.default_rng(1)
    wanted, one, other = (random.normal(size=(40, 3)) for _ in range(3))
    r2 = [measure_numbers(("x", "y", "z"), wanted, told, samples=1).r2 for told in (one, other)]
    assert explained_more(wanted, one, other).mean() == pytest.approx(r2[1] - r2[0])
    wanted[:, 2] = 1  # never changes, so there is nothing of it to explain
    assert np.isfinite(explained_more(wanted, one, other)).all()


def test_the_interval_of_all_numbers_is_that_of_one_where_there_is_one():
    wanted, told = np.random.default_rng(1).normal(size=(2, 40, 1))
    found = measure_numbers(("x",), wanted, told)
    assert found.r2_interval == pytest.approx(found.each[0].r2_interval)


def test_overlaps_of_single_images_make_that_of_all():
    random = np.random.default_rng(1)
    wanted, told = random.integers(0, 3, (2, 9, 4, 5))
    whole = overlap_of(("a", "b", "c", "d"), wanted, told)  # nobody has a d
    summed, each, (low, high) = measure_masks(whole.classes, zip(wanted, told, strict=True))
    assert (summed.counts == whole.counts).all()
    assert summed.images == 9
    assert each.mean_iou() == pytest.approx(whole.mean_iou)
    assert each.mean_iou(np.arange(9).repeat(2)) == pytest.approx(whole.mean_iou)
    singles = [overlap_of(whole.classes, wanted[n : n + 1], told[n : n + 1]).mean_iou for n in range(9)]
    assert each.of_each().tolist() == pytest.approx(singles)
    assert low < whole.mean_iou < high
    assert measure_masks(("a", "b"), []).whole.images == 0


def test_a_gain_is_luck_where_there_is_none_and_hardly_luck_where_every_image_has_it():
    random = np.random.default_rng(1)

    def p_of(gains):
        return paired_images("R²", (0.0, 0.0), len(gains), lambda rows: float(gains[rows].mean())).p

    assert p_of(np.zeros(30)) == 1
    assert p_of(random.normal(0.5, 0.1, 30)) == p_of(random.normal(-0.5, 0.1, 30)) == 1 / 1001
    assert p_of(np.ones(1)) is None  # every resample of one image is that image
    chances = [p_of(random.normal(size=40)) for _ in range(60)]
    assert np.mean(np.array(chances) < 0.25) == pytest.approx(0.5, abs=0.2)  # one-sided, on the side that was found
