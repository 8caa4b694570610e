"""Is the difference between two systems more than luck of the test set? Paired bootstrap, by sacreBLEU's own test.

Both systems are scored on the same thousand resamples of the test set; p is how often chance alone makes a difference
as large as the one that was found, in the same direction: one-sided, as sacreBLEU has it (Koehn 2004). It speaks of
the sentences that were drawn, not of the seed: another run of the same model is not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest, Result

SAMPLES = 1000


@dataclass(frozen=True)
class Paired:
    metric: str
    first: float
    second: float
    p: float | None  # None where there are too few sentences to ask
    signature: str


def paired_bootstrap(
    first: Sequence[str], second: Sequence[str], references: Sequence[str], *, samples: int = SAMPLES
) -> list[Paired]:
    """BLEU and chrF of both, and the p-value of their difference."""
    systems: Any = [("first", list(first)), ("second", list(second))]
    metrics = {"BLEU": BLEU(), "chrF2": CHRF()}
    test = PairedTest(systems, metrics, [list(references)], test_type="bs", n_samples=samples)
    signatures, found = test()
    paired = []
    for name in metrics:
        ours, theirs = cast(list[Result], found[name])
        p = p_value(ours.score, theirs.score, theirs.p_value, len(references))
        paired.append(Paired(name, float(ours.score), float(theirs.score), p, str(signatures[name])))
    return paired


def p_value(first: float, second: float, theirs: float | None, sentences: int) -> float | None:
    """sacreBLEU's, save where it counts wrongly: only greater differences count there, so none at all seems rare."""
    if sentences < 2 or theirs is None:
        return None  # every resample of one sentence is that sentence
    return 1.0 if first == second else float(theirs)
