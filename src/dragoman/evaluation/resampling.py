"""The bootstrap over images: what a score would have been on other images of the same kind (Efron 1979).

interval      the middle 95 % of 1,000 resamples
significance  both models on the same resamples: p is how often their difference strays from its own mean by as much as
              it was found to be, in the same direction (Noreen 1989, as sacreBLEU does for sentences)
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

from dragoman.evaluation.numbers import MIDDLE, SAMPLES
from dragoman.evaluation.significance import Paired

Rows = Int[np.ndarray, " N"]


def resampled(images: int, of: Callable[[Rows], float], samples: int = SAMPLES) -> list[float]:
    """The same value of each resample; `of` is given the rows that were drawn."""
    random = np.random.default_rng(0)
    return [of(random.integers(images, size=images)) for _ in range(samples)]


def middle(found: Sequence[float]) -> tuple[float, float]:
    low, high = np.percentile(found, MIDDLE)
    return float(low), float(high)


def paired_images(
    metric: str, scores: tuple[float, float], images: int, gain_of: Callable[[Rows], float], samples: int = SAMPLES
) -> Paired:
    """Is the second model's gain more than luck of the images? One-sided; of one image nobody can tell."""
    gain = gain_of(np.arange(images))
    p = p_by_bootstrap(gain, resampled(images, gain_of, samples)) if images > 1 else None
    return Paired(metric, *scores, p, f"paired bootstrap over the images, {samples:,} resamples, one-sided")


def p_by_bootstrap(gain: float, found: Sequence[float]) -> float:
    if gain == 0:
        return 1.0
    strayed = np.sign(gain) * (np.asarray(found) - np.mean(found))
    return float((1 + (strayed >= abs(gain)).sum()) / (1 + len(found)))
