"""Where a run stands: what changes as it goes on and is saved with it, besides weights and optimizer."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dragoman.errors import DataError


@dataclass
class Progress:
    step: int = 0
    seconds: float = 0.0
    best_nats: float = float("inf")
    validations_since_best: int = 0
    stopped: str = ""  # why it ended before its last step
    steps: int = 0  # how many were planned when this was saved
    refused: int = 0  # steps in a row, up to now, without a finite gradient
    slowed: float = 1.0  # share of the rate, since the run was sent back
    parts: int = 1  # that each micro-batch is cut into, since one did not fit into memory

    @classmethod
    def read(cls, state: dict[str, Any], checkpoint: Path) -> "Progress":
        """As a checkpoint has it, which anyone may have made, and a newer version too."""
        unknown = sorted(state.keys() - {field.name for field in fields(cls)})
        if unknown:
            raise DataError(
                "E-RUN-05",
                f"{checkpoint} says what this version does not know ({unknown[0]:.40}); go on with the newer dragoman "
                "that wrote it",
            )
        odd = [name for name, usual in vars(cls()).items() if not is_like(usual, state.get(name, usual))]
        if odd or "step" not in state:
            name = odd[0] if odd else "step"
            raise DataError("E-RUN-02", f"{checkpoint} is damaged: its state.json has no {name} that can be")
        return cls(**state)


def is_like(usual: Any, value: Any) -> bool:
    """Of the same kind, not negative where it is a number, and not NaN; a whole number may stand for any other."""
    if isinstance(usual, str):
        return isinstance(value, str)
    kinds = (int, float) if isinstance(usual, float) else (int,)
    return isinstance(value, kinds) and not isinstance(value, bool) and not math.isnan(value) and is_above(usual, value)


def is_above(usual: Any, value: Any) -> bool:
    """Only a loss may be below zero, as that of pictures whose sizes are learned."""
    return value >= 0 or usual == float("inf")
