"""YOUR CAT IS A LOVELY CAT as lecture 001 prints it: its own numbers, and no others."""

from collections.abc import Sequence

import torch

from dragoman.seeing.arithmetic.block import stage
from dragoman.seeing.arithmetic.matrices import CAT, Arithmetic, Matrix, Stage, as_short, numbered

SLIDE_WEIGHTS = [
    [0.268, 0.119, 0.134, 0.148, 0.179, 0.152],
    [0.124, 0.278, 0.201, 0.128, 0.154, 0.115],
    [0.147, 0.132, 0.262, 0.097, 0.218, 0.145],
    [0.210, 0.128, 0.206, 0.212, 0.119, 0.125],
    [0.146, 0.158, 0.152, 0.143, 0.227, 0.174],
    [0.195, 0.114, 0.203, 0.103, 0.157, 0.229],
]
SLIDE_VECTORS = [
    [952.207, 5450.840, 1853.448, 1.658, 2671.529],
    [171.411, 3276.350, 9192.819, 3633.421, 8390.473],
    [621.659, 1304.051, 0.565, 7679.805, 4506.025],
    [776.562, 5567.288, 58.942, 2716.194, 5119.949],
    [6422.693, 6315.080, 9358.778, 2141.081, 735.147],
    [171.411, 3276.350, 9192.819, 3633.421, 8390.473],
]
SLIDE_PLACES = [  # of words 2 and 6
    [1664.068, 8080.133, 2620.399, 9386.405, 3120.159],
    [1281.458, 7902.890, 912.970, 1659.217, 7018.620],
]
SLIDE_SUMS = [
    [1835.479, 11356.483, 11813.218, 13019.826, 11510.632],
    [1452.869, 11179.240, 10105.789, 5292.638, 15409.093],
]
SLIDE_WAVES = [[0.0, 1.0, 0.0, 1.0, 0.0, 1.0], [0.8414, 0.5403, 0.8218, 0.5696, 0.0001, 0.9999]]
SLIDE_WIDTH = 512


def slides_arithmetic() -> Arithmetic:
    """Only what the slides print; the words about it are ours."""
    return Arithmetic(
        source="slides",
        title="YOUR CAT IS A LOVELY CAT, as lecture 001 prints it",
        note="These are the slides' own numbers, and all that they give: a few of the 512 numbers a word, and the "
        "weights of one head with d = 512. They are random, as the slides say: no formula leads from one to the other.",
        words=CAT,
        heads=1,
        width=SLIDE_WIDTH,
        head_width=SLIDE_WIDTH,
        stages=(slides_input(), slides_weights()),
    )


def slides_input() -> Stage:
    cats, five, whole = ["CAT (2)", "CAT (6)"], numbered(5), (len(CAT), SLIDE_WIDTH)
    return stage(
        "input",
        "A word's vector E plus that of its place P, number by number: for word 2, 171.411 + 1664.068 = 1835.479. So "
        "CAT, twice the same E, enters as two different X. Five of 512 numbers are printed, here without decimals, and "
        "P for the two CATs alone. Real positions are sines and cosines, which never pass 1: PE, which the slides "
        "compute for places 0 and 1 and cut off after four digits (sin 1 = 0.84147 would be rounded to 0.8415).",
        printed("", "E", SLIDE_VECTORS, whole, CAT, five),
        printed("+", "P", SLIDE_PLACES, whole, cats, five),
        printed("=", "X", SLIDE_SUMS, whole, cats, five),
        printed("", "PE", SLIDE_WAVES, (2, SLIDE_WIDTH), ["PE(0)", "PE(1)"], ["1", "2", "3", "4", "511", "512"]),
    )


def slides_weights() -> Stage:
    return stage(
        "weights",
        "A = softmax(Q Kᵀ / √512): who looks (row) at whom (column). The slides put 1 beside each row; as they are "
        "rounded, the rows of IS (3) and of the last CAT (6) sum to 1.001. Two rows of one word differ in a model by "
        "their places alone. The diagonal is the largest of each row, as the slides expect, since Q = K = X; once W_Q "
        "and W_K differ it need not be.",
        printed("softmax(…) =", "A", SLIDE_WEIGHTS, (len(CAT), len(CAT)), CAT, CAT),
        printed("row by row", "Σ", [[sum(row)] for row in SLIDE_WEIGHTS], (len(CAT), 1), CAT, ["Σ"]),
    )


def printed(
    sign: str,
    name: str,
    values: list[list[float]],
    shape: tuple[int, int],
    rows: Sequence[str],
    columns: Sequence[str],
) -> Matrix:
    """Of a matrix of this shape, what stands on a slide."""
    packed = as_short(torch.tensor(values, dtype=torch.float64))
    return Matrix(name=name, sign=sign, shape=shape, rows=tuple(rows), columns=tuple(columns), values=packed)
