"""How good vectors of words are: do their cosines rank pairs of words as people do, and are analogies lines in space?

Spearman's correlation is Pearson's of the ranks, equal values sharing the mean of their ranks; its interval is that of
a thousand resamples of the pairs. Analogies are right or wrong: Wilson's interval. What holds a word that the model
does not know is left out, and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dragoman.decoding.words import WordVectors
from dragoman.errors import DataError
from dragoman.evaluation.confusion import wilson
from dragoman.text.word_tests import Analogy, Judgement

SAMPLES = 1000


@dataclass(frozen=True)
class Correlation:
    pairs: int  # with both words known
    left_out: int
    spearman: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class SectionScore:
    name: str
    questions: int
    right: int
    left_out: int

    @property
    def accuracy(self) -> float:
        return self.right / max(1, self.questions)

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, self.questions)


def score_judgements(vectors: WordVectors, judgements: Sequence[Judgement], name: str) -> Correlation:
    rows = [(vectors.row_of(one.first), vectors.row_of(one.second)) for one in judgements]
    known = [(a, b, one.score) for (a, b), one in zip(rows, judgements, strict=True) if a is not None and b is not None]
    if len(known) < 3:
        raise DataError(
            "E-WORD-05",
            f"the model knows both words of {len(known)} of the {len(judgements):,} pairs in {name}, and three are the "
            "least; train on more text, or test on words of its language",
        )
    first, second, scores = (np.array(column) for column in zip(*known, strict=True))
    cosines = (vectors.directions[first] * vectors.directions[second]).sum(axis=1).astype(np.float64)
    random = np.random.default_rng(0)
    drawn = random.integers(len(known), size=(SAMPLES, len(known)))
    found = [spearman(cosines[sample], scores[sample]) for sample in drawn]
    low, high = np.quantile(found, [0.025, 0.975])
    left_out = len(judgements) - len(known)
    return Correlation(len(known), left_out, spearman(cosines, scores), (float(low), float(high)))


def spearman(a: Float[np.ndarray, " N"], b: Float[np.ndarray, " N"]) -> float:
    """Σ (r − r̄)(s − s̄) / √(Σ (r − r̄)² Σ (s − s̄)²) of the ranks r and s; 0 where all values of a side are equal."""
    r, s = (centred(ranks(values)) for values in (a, b))
    size = np.sqrt((r @ r) * (s @ s))
    return float(r @ s / size) if size else 0.0


def ranks(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """1 for the smallest; equal ones share the mean of their ranks."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(times)
    return (last - (times - 1) / 2)[place]


def centred(values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    return values - values.mean()


def score_analogies(vectors: WordVectors, questions: Sequence[Analogy], name: str) -> list[SectionScore]:
    """Every section in its order, and all of them together as the last."""
    rows = [[vectors.row_of(word) for word in question.words] for question in questions]
    known = [number for number, found in enumerate(rows) if None not in found]
    if not known:
        raise DataError(
            "E-WORD-05",
            f"the model knows all words of none of the {len(questions):,} questions in {name}; train on more text, or "
            "test on words of its language",
        )
    a, b, c, d = np.array([rows[number] for number in known], dtype=np.int64).T
    wanted = vectors.directions[b] - vectors.directions[a] + vectors.directions[c]
    best = vectors.nearest_rows(wanted, list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True)), 1)
    right = {number for number, found, answer in zip(known, best, d, strict=True) if found.tolist() == [answer]}
    return [
        *by_section(questions, {*known}, right),
        SectionScore("all", len(known), len(right), len(rows) - len(known)),
    ]


def by_section(questions: Sequence[Analogy], known: set[int], right: set[int]) -> list[SectionScore]:
    names = dict.fromkeys(question.section for question in questions)
    members = {name: {n for n, question in enumerate(questions) if question.section == name} for name in names}
    return [SectionScore(name, len(own & known), len(own & right), len(own - known)) for name, own in members.items()]
