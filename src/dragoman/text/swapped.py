"""Are the sides of one corpus those of another, or the other way round? Told by names, else by how the text is spelled.

    straight = cos(source, source') + cos(target, target')      of counts of three letters in a row
    crossed  = cos(source, target') + cos(target, source')      turned where this is larger by CLEARLY

Two texts of one language are alike by 0.9 and those of German and English by 0.3, however few sentences there are of
each: what is rare hardly counts.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from math import sqrt

from dragoman.errors import DataError
from dragoman.text.corpus import Corpus, Pair

CLEARLY = 0.5  # of 2
LOOKED_AT = 1000  # pairs of each


def refuse_turned(valid: Corpus, train: Corpus) -> None:
    """What the names of the files tell, before any is read."""
    theirs, ours = valid.guess_languages(valid.parts[0]), train.guess_languages(train.parts[0])
    if all(ours) and ours[0] != ours[1] and theirs == ours[::-1]:
        raise turned(valid, train)


def refuse_turned_text(valid: Corpus, train: Corpus, sample: Sequence[Pair]) -> None:
    ours = profiles(sample[:: max(1, len(sample) // LOOKED_AT)])
    theirs = profiles(islice(valid.pairs(), LOOKED_AT))
    straight = alike(theirs[0], ours[0]) + alike(theirs[1], ours[1])
    crossed = alike(theirs[0], ours[1]) + alike(theirs[1], ours[0])
    if crossed - straight > CLEARLY:
        raise turned(valid, train)


def turned(valid: Corpus, train: Corpus) -> DataError:
    given, known = (", ".join(str(path) for path in corpus.paths) for corpus in (valid, train))
    return DataError(
        "E-DATA-13",
        f"the validation data ({given}) is the other way round than the training data ({known}, "
        f"{' → '.join(train.sides)}); give both in the same order",
    )


def profiles(pairs: Iterable[Pair]) -> tuple[Counter[str], Counter[str]]:
    counts = Counter[str](), Counter[str]()
    for pair in pairs:
        for side, count in zip(pair, counts, strict=True):
            text = f" {side.lower()} "
            count.update(text[i : i + 3] for i in range(len(text) - 2))
    return counts


def alike(one: Counter[str], other: Counter[str]) -> float:
    """The cosine: 1 for the same shares of everything, 0 for nothing in common."""
    product = sum(count * other[letters] for letters, count in one.items())
    sizes = sqrt(sum(count**2 for count in one.values()) * sum(count**2 for count in other.values()))
    return product / sizes if sizes else 0.0
