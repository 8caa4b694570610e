"""Where a run stands: what changes as it goes on and is saved with it, besides weights and optimizer."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dragoman.errors import DataError

MOST = 10**15  # of steps and of seconds
FAR = 1e300  # of a loss; a whole number of JSON may be beyond what a float can tell


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
    """Of the same kind and of a size that can be, NaN excepted; a whole number may stand for any other."""
    if isinstance(usual, str):
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, (int, float) if isinstance(usual, float) else int):
        return False
    if usual == float("inf"):  # a loss, which none has been yet where it is infinite
        return value == usual or -FAR < value < FAR
    return (1 if usual == 1 and isinstance(usual, int) else 0) <= value < MOST
