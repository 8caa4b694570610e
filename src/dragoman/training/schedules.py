"""The learning rate of each step, as a share of its peak: a warm-up, then a way down."""

import math
from typing import Literal

Name = Literal["inverse-sqrt", "linear", "cosine", "constant"]


def share_of_peak(name: Name, step: int, warmup: int, steps: int) -> float:
    """Step counts from 1. Up in a line over `warmup` steps, then

    inverse-sqrt   √(warmup / step)                       2017; never ends
    linear         from 1 to 0, which the step after the last would have
    cosine         half a wave from 1 to 0, likewise
    constant       1
    """
    if step < warmup:
        return step / warmup
    left = (steps + 1 - step) / max(1, steps + 1 - warmup)  # 1 after the warm-up, still above 0 at the last step
    match name:
        case "inverse-sqrt":
            return math.sqrt(max(1, warmup) / step)
        case "linear":
            return max(0.0, left)
        case "cosine":
            return (1 - math.cos(math.pi * min(1.0, max(0.0, left)))) / 2
        case "constant":
            return 1.0
