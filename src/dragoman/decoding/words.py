"""Words as vectors: which are near to each other, and what is to one as another is to a third.

    dot product    x·y                        grows with the lengths of both, and frequent words are long
    cosine         x·y / (|x| |y|)            the angle alone, from −1 to 1; what is called near is near by this

A text of several words is the mean of their vectors.
"""

import difflib
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from torch import nn

from dragoman.errors import DataError, UsageError
from dragoman.text.reading import as_strings, clean
from dragoman.text.tokenizer import Tokenizers

AT_ONCE = 1 << 24  # numbers compared at a time


class Near(NamedTuple):
    word: str
    cosine: float
    dot: float


class WordVectors:
    """What `dragoman.load` gives for word2vec and glove: `words`, and the row of each in `vectors`."""

    def __init__(self, model: nn.Module, tokenizers: Tokenizers) -> None:
        learned: Any = model  # a module with `vectors`
        self.tokenizer = tokenizers.target
        silent = self.tokenizer.special.pieces()
        self.ids = np.array([i for i in range(len(self.tokenizer)) if i not in silent])
        self.words = self.tokenizer.pieces(self.ids.tolist())
        self.vectors: Float[np.ndarray, "V D"] = learned.vectors().numpy()[self.ids]
        self.rows = {int(i): row for row, i in enumerate(self.ids)}

    @cached_property
    def directions(self) -> Float[np.ndarray, "V D"]:
        """Every vector at length 1."""
        return unit(self.vectors)

    def row_of(self, word: str) -> int | None:
        """The row of one word, or of how it is written small; None where the model does not know it."""
        for spelling in (word, word.lower()):
            ids = self.tokenizer.encode([clean(spelling)])[0]
            if len(ids) == 1 and ids[0] in self.rows:
                return self.rows[ids[0]]
        return None

    def rows_of(self, text: str) -> list[int]:
        """The rows of a text's words; a word that is not known is refused."""
        ids = self.tokenizer.encode([clean(text)])[0]
        if not ids:
            raise DataError("E-WORD-01", f"{text!r} holds no word; give one or more")
        if any(i not in self.rows for i in ids):
            raise DataError("E-WORD-01", self.explain_unknown(text, ids))
        return [self.rows[i] for i in ids]

    def explain_unknown(self, text: str, ids: Sequence[int]) -> str:
        split = getattr(self.tokenizer, "split", str.split)
        word = next(word for word, i in zip(split(clean(text)), ids, strict=True) if i not in self.rows)
        alike = [other for other in self.words if abs(len(other) - len(word)) < 3 and other[0] == word[0]]
        close = difflib.get_close_matches(word, alike, n=3, cutoff=0.7)
        hint = f"did you mean {' or '.join(close)}?" if close else "it was not in the text, or too seldom"
        return f"the word {word!r} is none of the {len(self.words):,} that this model knows; {hint}"

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """A row for each text: the mean of its words' vectors, at the length it has."""
        found = [self.vectors[self.rows_of(text)].mean(axis=0) for text in as_strings("texts", texts)]
        return np.stack(found) if found else np.zeros((0, self.vectors.shape[1]), np.float32)

    def near(self, texts: Sequence[str], count: int) -> list[list[Near]]:
        """For each text the words nearest to it, itself left out."""
        refuse_none(count)
        rows = [self.rows_of(text) for text in as_strings("texts", texts)]
        best = self.nearest_rows(self.embed(texts), rows, count)
        return [self.told(self.vectors[of].mean(axis=0), found) for of, found in zip(rows, best, strict=True)]

    def analogy(self, a: str, b: str, c: str, count: int) -> list[Near]:
        """a is to b as c is to …: the words nearest to b − a + c, each at length 1, these three left out (3CosAdd)."""
        refuse_none(count)
        rows = [self.rows_of(text) for text in (a, b, c)]
        first, second, third = (unit(self.vectors[row].mean(axis=0)[None]) for row in rows)
        wanted = second - first + third
        [found] = self.nearest_rows(wanted, [[row for of in rows for row in of]], count)
        return self.told(wanted[0], found)

    def told(self, vector: Float[np.ndarray, " D"], rows: Int[np.ndarray, " N"]) -> list[Near]:
        cosines = self.directions[rows] @ unit(vector[None])[0]
        dots = self.vectors[rows] @ vector
        return [Near(self.words[r], float(c), float(d)) for r, c, d in zip(rows, cosines, dots, strict=True)]

    def nearest_rows(
        self, vectors: Float[np.ndarray, "N D"], without: Sequence[Collection[int]], count: int
    ) -> list[Int[np.ndarray, " M"]]:
        """For each vector the rows with the largest cosines, those `without` left out; the largest first."""
        found, step = list[Any](), max(1, AT_ONCE // len(self.words))
        for start in range(0, len(vectors), step):
            cosines = vectors[start : start + step] @ self.directions.T  # up to each vector's length
            for row, left_out in zip(cosines, without[start : start + step], strict=True):
                row[list(left_out)] = -np.inf
                most = min(count, len(row) - len(set(left_out)))
                best = np.argpartition(-row, min(most, len(row) - 1))[:most]
                found.append(best[np.lexsort((best, -row[best]))])  # equal ones in the order of the vocabulary
        return found


def refuse_none(count: int) -> None:
    if count < 1:
        raise UsageError("E-USE-12", f"{count} of the nearest words were asked for; ask for 1 or more")


def unit(vectors: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
    """At length 1; a vector of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
