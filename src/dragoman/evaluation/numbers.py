"""How good a model is that tells numbers.

mean error   1/N Σ |y − ŷ|, in the number's own unit
R²           1 − Σ (y − ŷ)² / Σ (y − ȳ)²: the share of the variance that is explained; 0 for telling the mean always

Intervals are of 1,000 resamples of the images (Efron 1979): the middle 95 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

SAMPLES = 1000
MIDDLE = (2.5, 97.5)  # percentiles


@dataclass(frozen=True)
class NumberScore:
    name: str
    r2: float
    r2_interval: tuple[float, float]
    mean_error: float
    error_interval: tuple[float, float]


@dataclass(frozen=True)
class NumberScores:
    images: int
    each: list[NumberScore]
    r2_interval: tuple[float, float]  # of the mean over the numbers

    @property
    def r2(self) -> float:
        """The mean over the numbers."""
        return sum(one.r2 for one in self.each) / len(self.each)

    @property
    def mean_error(self) -> float:
        return sum(one.mean_error for one in self.each) / len(self.each)


def measure_numbers(
    names: Sequence[str], wanted: Float[np.ndarray, "N K"], told: Float[np.ndarray, "N K"], samples: int = SAMPLES
) -> NumberScores:
    random, images = np.random.default_rng(0), len(wanted)
    r2, errors = explained(wanted, told), abs(wanted - told).mean(axis=0)
    drawn = [random.integers(images, size=images) for _ in range(samples)]
    r2s = [explained(wanted[rows], told[rows]) for rows in drawn]
    r2_ends, [r2_whole] = ends(r2s), ends([one.mean(keepdims=True) for one in r2s])
    error_ends = ends([abs(wanted[rows] - told[rows]).mean(axis=0) for rows in drawn])
    each = [
        NumberScore(name, float(r2[k]), r2_ends[k], float(errors[k]), error_ends[k]) for k, name in enumerate(names)
    ]
    return NumberScores(images, each, r2_whole)


def explained(wanted: Float[np.ndarray, "N K"], told: Float[np.ndarray, "N K"]) -> Float[np.ndarray, " K"]:
    """R² of each number; where it never changes there is nothing to explain, and only being right is 1."""
    total = ((wanted - wanted.mean(axis=0)) ** 2).sum(axis=0)
    missed = ((wanted - told) ** 2).sum(axis=0)
    return 1 - missed / np.where(total > 0, total, np.where(missed > 0, 1e-300, 1.0))


def explained_more(
    wanted: Float[np.ndarray, "N K"], first: Float[np.ndarray, "N K"], second: Float[np.ndarray, "N K"]
) -> Float[np.ndarray, " N"]:
    """By how much the squared error of the second is less, in variances of each number: the mean over the images is the
    difference of R²."""
    variance = wanted.var(axis=0)
    less = (wanted - first) ** 2 - (wanted - second) ** 2
    return (less / np.where(variance > 0, variance, np.inf)).mean(axis=1)


def ends(found: list[Float[np.ndarray, " K"]]) -> list[tuple[float, float]]:
    """Of the middle 95 %, for each number."""
    low, high = np.percentile(np.stack(found), MIDDLE, axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))
