"""What may be asked of whoever chooses the next token. Importing this is quick: a mistake is answered at once."""

from pydantic import Field

from dragoman.config import Settings
from dragoman.errors import UsageError

MOST_BEAMS = 1000  # each is a row of the batch, and none so far down has ever come out first


class SampleConfig(Settings):
    temperature: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="below 1 prefers likely tokens, above 1 evens them out"
    )
    top_k: int = Field(0, ge=0, description="draw from this many likeliest tokens; 0: from all")
    top_p: float = Field(1.0, gt=0, le=1, description="draw from the fewest tokens that have this much probability")
    repetition: float = Field(1.0, ge=1, description="scores of tokens written before are divided by this; 1: not")
    tokens: int = Field(200, gt=0, description="how many to write, where nobody says")
    seed: int = Field(0, ge=0, description="the same seed draws the same text")


def refuse_wide(beam: int | None, nbest: int = 1) -> None:
    """A beam, or a list of the best, that no search can have."""
    for name, value in (("beam", beam), ("nbest", nbest)):
        if value is not None and not 1 <= value <= MOST_BEAMS:
            raise UsageError("E-USE-19", f"--{name} {value} cannot be; give 1 to {MOST_BEAMS:,}")
