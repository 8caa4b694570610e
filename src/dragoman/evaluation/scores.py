"""How good a translation is, by the field's own yardstick: sacreBLEU, with the signature that says how it was taken."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF, TER

from dragoman.errors import DataError

SAMPLES = 1000  # of the bootstrap
BOUNDS = (10, 20, 30, 40)  # of the length buckets, in source words


class Score(NamedTuple):
    name: str
    value: float
    margin: float | None  # half of the 95 % interval, by bootstrap over the sentences
    signature: str


class Bucket(NamedTuple):
    words: str  # "1–10"
    sentences: int
    bleu: float
    chrf: float


def score(hypotheses: Sequence[str], references: Sequence[str], *, samples: int = SAMPLES) -> list[Score]:
    """BLEU, chrF and TER over the corpus, with intervals where `samples` are drawn."""
    if not references:
        raise DataError("E-DATA-10", "there is no sentence to score; give a corpus that is not empty")
    return [measure(metric, hypotheses, references, samples) for metric in (BLEU, CHRF, TER)]


def measure(metric: type, hypotheses: Sequence[str], references: Sequence[str], samples: int) -> Score:
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


def by_length(sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]) -> list[Bucket]:
    """Scores apart for short and long sources: where a model without attention falls off."""
    buckets: dict[int, list[int]] = {}
    for i, source in enumerate(sources):
        place = sum(len(source.split()) > bound for bound in BOUNDS)
        buckets.setdefault(place, []).append(i)
    found = []
    for place in sorted(buckets):
        rows = buckets[place]
        h, r = [hypotheses[i] for i in rows], [references[i] for i in rows]
        found.append(Bucket(bucket_name(place), len(rows), bleu(h, r), chrf(h, r)))
    return found


def bucket_name(place: int) -> str:
    if place == len(BOUNDS):
        return f"over {BOUNDS[-1]}"
    return f"{BOUNDS[place - 1] + 1 if place else 1}–{BOUNDS[place]}"
