"""How good a translation is, by the field's own yardstick: sacreBLEU, with the signature that says how it was taken."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sacrebleu.metrics import BLEU, CHRF, TER

from dragoman.errors import DataError

SAMPLES = 1000  # of the bootstrap
BOUNDS = (10, 20, 30, 40)  # of the length buckets, in source words
ENOUGH = 30  # sentences in every bucket, or the test set is cut into quarters instead


@dataclass(frozen=True)
class Score:
    name: str
    value: float
    margin: float | None  # half of the 95 % interval, by bootstrap over the sentences
    signature: str
    interval: tuple[float, float] | None = None  # where it is not as far to one side as to the other

    def ends(self) -> tuple[float, float]:
        """Of the 95 % interval; the value twice where there is none."""
        return self.interval or (self.value - (self.margin or 0.0), self.value + (self.margin or 0.0))


@dataclass(frozen=True)
class Bucket:
    words: str  # "1–10"
    sentences: int
    bleu: float
    chrf: float


class Chrf(CHRF):
    """sacreBLEU's own, in plain numbers: where outputs hardly match, it mixes two kinds and cannot take their mean."""

    def _compute_f_score(self, statistics: Any) -> float:
        return float(super()._compute_f_score(statistics))


def score(hypotheses: Sequence[str], references: Sequence[str], *, samples: int = SAMPLES) -> list[Score]:
    """BLEU, chrF and TER over the corpus, with intervals where `samples` are drawn."""
    if not references:
        raise DataError("E-DATA-10", "there is no sentence to score; give a corpus that is not empty")
    return [measure(metric, hypotheses, references, samples) for metric in (BLEU, Chrf, TER)]


def lowercased_bleu(hypotheses: Sequence[str], references: Sequence[str], *, samples: int = SAMPLES) -> Score:
    """BLEU of lower-cased text on 13a tokens: the nearest to the tokenised, lower-cased figures of many papers."""
    found = measure(partial(BLEU, lowercase=True), hypotheses, references, samples)
    return replace(found, name="BLEU lower-cased")


def measure(metric: Callable[..., Any], hypotheses: Sequence[str], references: Sequence[str], samples: int) -> Score:
    tool = metric(references=[list(references)])
    several = samples > 1 and len(hypotheses) > 1
    found = tool.corpus_score(list(hypotheses), None, n_bootstrap=samples if several else 1)
    margin = float(found._ci) if several else None
    return Score(found.name, float(found.score), margin, str(tool.get_signature()))


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return float(BLEU().corpus_score(list(hypotheses), [list(references)]).score)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return float(CHRF().corpus_score(list(hypotheses), [list(references)]).score)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The share of outputs that equal their reference, in percent."""
    same = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return 100 * same / max(1, len(references))


def length_bounds(sources: Sequence[str]) -> tuple[int, ...]:
    """The usual bounds where every bucket then holds enough sentences; else those of the quarters, by source words."""
    lengths = sorted(len(source.split()) for source in sources)
    counts = Counter(place_of(length, BOUNDS) for length in lengths)
    if all(counts[place] >= ENOUGH for place in range(len(BOUNDS) + 1)):
        return BOUNDS
    quarters = {lengths[len(lengths) * k // 4 - 1] for k in (1, 2, 3)} if len(lengths) >= 4 else set()
    return tuple(sorted(bound for bound in quarters if bound < lengths[-1]))


def by_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], bounds: Sequence[int] = BOUNDS
) -> list[Bucket]:
    """Scores apart for short and long sources: where a model without attention falls off."""
    buckets: dict[int, list[int]] = {}
    for i, source in enumerate(sources):
        buckets.setdefault(place_of(len(source.split()), bounds), []).append(i)
    found = []
    for place in sorted(buckets):
        rows = buckets[place]
        h, r = [hypotheses[i] for i in rows], [references[i] for i in rows]
        found.append(Bucket(bucket_name(place, bounds), len(rows), bleu(h, r), chrf(h, r)))
    return found


def place_of(length: int, bounds: Sequence[int]) -> int:
    return sum(length > bound for bound in bounds)


def bucket_name(place: int, bounds: Sequence[int] = BOUNDS) -> str:
    if not bounds:
        return "all"
    if place == len(bounds):
        return f"over {bounds[-1]}"
    return f"{bounds[place - 1] + 1 if place else 1}–{bounds[place]}"
