"""The arithmetic of one attention block, number by number, in the order of the formula.

    input      X = E + P                  a vector for each word, and one for its place
    queries    Q = X W_Q                  keys and values likewise; those of head 1
    scores     S = Q Kᵀ                   every q·k, term by term
    scaled     S / √d
    masked     −∞ where a word may not look
    weights    A = softmax(S), row by row
    context    C = A V
    concat     the results of all heads side by side
    output     O = concat W_O
    residual   R = X + O
    norm       (R − μ) / σ · γ + β        after the sum (2017, BERT), or of X before the queries (GPT, T5)

The numbers have three sources: what the slides of lecture 001 print, a toy that is small enough to follow by hand, or
a model that someone trained. The last two go through the parts of a real block (modules/block.py), so what is shown is
what a model computes.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from pydantic import model_serializer
from torch import Tensor, nn

from dragoman import models
from dragoman.config import Settings
from dragoman.decoding.classify import Classifier
from dragoman.decoding.embed import Embedder
from dragoman.decoding.fill import MASK, Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.translate import Translator
from dragoman.jobs.open import Learned
from dragoman.models.bert import BertReader
from dragoman.modules.attention import Attention, attention_weights, dot, merge_heads, scaled_dot, split_heads
from dragoman.modules.block import Block, Stack
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.modules.masks import hide_future
from dragoman.modules.positions import LearnedPositions, RelativePositions, SinusoidalPositions, sinusoids
from dragoman.seeing.packed import Packed, pack
from dragoman.text.reading import clean
from dragoman.text.tokenizer import Tokenizer

CAT = ("YOUR", "CAT", "IS", "A", "LOVELY", "CAT")
SHOWN = 8  # words, rows and columns of each matrix
EXACT = 1e-9

StageName = Literal[
    "input", "queries", "keys", "values", "scores", "scaled", "masked", "weights", "context", "concat", "output",
    "residual", "norm",
]  # fmt: skip


class Matrix(Settings):
    name: str
    sign: str  # what stands before it in the formula; "" where nothing does
    shape: tuple[int, ...]  # its true one
    rows: tuple[str, ...]  # labels of those shown
    columns: tuple[str, ...]
    values: Packed


class Terms(Settings):
    """Every q·k as a sum of products; the first ones, where there are many."""

    products: Packed  # words × words × numbers
    queries: Packed
    keys: Packed
    sums: Packed  # of all terms
    left_out: int


class Stage(Settings):
    name: StageName
    sentence: str
    matrices: tuple[Matrix, ...]  # left to right as in the formula
    terms: Terms | None = None


class Compared(Settings):
    """Attention weights of the words in their order and in another; how much they differ once that is undone."""

    before: Packed
    after: Packed
    difference: float


class Shuffle(Settings):
    order: tuple[int, ...]  # word i of the shuffled sentence is words[order[i]]
    words: tuple[str, ...]  # shuffled
    without: Compared  # positions
    with_positions: Compared
    sentence: str

    @model_serializer(mode="wrap")
    def name_with(self, usual: Callable[["Shuffle"], dict[str, Any]]) -> dict[str, Any]:
        """As the page knows it: `with`, which Python keeps for itself."""
        found = usual(self)
        return {("with" if key == "with_positions" else key): value for key, value in found.items()}


class Arithmetic(Settings):
    source: Literal["slides", "toy", "model"]
    title: str
    note: str  # what these numbers are
    words: tuple[str, ...]  # those shown
    heads: int
    width: int
    head_width: int
    stages: tuple[Stage, ...]
    shuffle: Shuffle | None = None


# ── what a block computes ─────────────────────────────────────────────────────────────────


class Worked(NamedTuple):
    """All numbers on the way through the attention of a block, as its own parts compute them."""

    states: Float[Tensor, "1 T D"]  # X
    read: Float[Tensor, "1 T D"]  # what attention reads: X, or X normalised
    queries: Float[Tensor, "1 H T d"]
    keys: Float[Tensor, "1 H T d"]
    values: Float[Tensor, "1 H T e"]
    scores: Float[Tensor, "1 H T T"]  # scaled, a bias added, nothing hidden yet
    weights: Float[Tensor, "1 H T T"]
    contexts: Float[Tensor, "1 H T e"]
    merged: Float[Tensor, "1 T E"]
    output: Float[Tensor, "1 T D"]
    left: Float[Tensor, "1 T D"]  # what goes on to the next part of the block


def work_through(
    block: Block,
    states: Float[Tensor, "1 T D"],
    mask: Bool[Tensor, "1 1 #T T"] | None,
    bias: Float[Tensor, "1 H T T"] | None,
) -> Worked:
    attention, around = block.self_attention, block.around_self
    read = around.enter(states)
    queries = split_heads(attention.to_query(read), attention.heads)
    keys, values = attention.remember(read)
    scores = attention.score(queries, keys)
    scores = scores if bias is None else scores + bias
    weights = attention_weights(scores, mask)
    contexts = weights @ values
    merged = merge_heads(contexts)
    output = attention.to_output(merged)
    left = around.leave(states, output)
    return Worked(states, read, queries, keys, values, scores, weights, contexts, merged, output, left)


class Case(NamedTuple):
    """One text on its way through one block: all that the stages tell about."""

    words: list[str]
    block: Block
    worked: Worked
    mask: Bool[Tensor, "1 1 #T T"] | None
    bias: Float[Tensor, "1 H T T"] | None

    @property
    def heads(self) -> int:
        return self.block.self_attention.heads

    @property
    def norm_first(self) -> bool:
        return self.block.around_self.norm_first

    @property
    def read_as(self) -> str:
        return "N" if self.norm_first else "X"

    @property
    def hides(self) -> bool:
        return self.mask is not None and not bool(self.mask.all())


# ── matrices ──────────────────────────────────────────────────────────────────────────────


def matrix(
    sign: str,
    name: str,
    values: Float[Tensor, "R C"],
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
) -> Matrix:
    """The first rows and columns of a matrix; columns without names are numbered."""
    return Matrix(
        name=name,
        sign=sign,
        shape=tuple(values.shape),
        rows=tuple(rows[:SHOWN]),
        columns=tuple((columns or numbered(values.shape[1]))[:SHOWN]),
        values=as_short(values[:SHOWN, :SHOWN]),
    )


def as_short(values: Float[Tensor, "*shape"]) -> Packed:
    """Packed with no more digits than it takes: 0.5 and not 0.5000."""
    packed = pack(values)
    finite = values[values.isfinite()].double()
    enough = (n for n in range(packed.digits) if ((finite - finite.round(decimals=n)).abs() < EXACT).all())
    fewer = next(enough, None)
    return packed if fewer is None else pack(values, fewer)


def numbered(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


# ── stages ────────────────────────────────────────────────────────────────────────────────


def stage(name: StageName, sentence: str, *matrices: Matrix, terms: Terms | None = None) -> Stage:
    return Stage(name=name, sentence=sentence, matrices=matrices, terms=terms)


def stages_of(case: Case, entered: Stage) -> tuple[Stage, ...]:
    """In the order in which this block does it."""
    worked = case.worked
    attention = [
        *projections(case),
        *(tell(case) for tell in (scores_stage, scaled_stage, masked_stage, weights_stage, context_stage)),
        *(tell(case) for tell in (concat_stage, output_stage, residual_stage)),
    ]
    if case.norm_first:
        return (entered, norm_stage(case, "X", worked.states, worked.read), *attention)
    return (entered, *attention, norm_stage(case, "R", worked.states + worked.output, worked.left))


def projections(case: Case) -> list[Stage]:
    attention, worked = case.block.self_attention, case.worked
    share = worked.queries.shape[-1]
    queries = (
        f"Each row of {case.read_as} times W_Q is that word's query: what it looks for. W_Q here is head 1's part, "
    )
    queries += f"{share} columns of {attention.heads * share}."
    keys = "The same rows times W_K: what each word is found by. K is as wide as Q."
    values = "And times W_V: what each word has to tell to those that look at it."
    return [
        project(case, "queries", queries, "Q", attention.to_query, worked.queries),
        project(case, "keys", keys, "K", attention.to_key, worked.keys),
        project(case, "values", values, "V", attention.to_value, worked.values),
    ]


def project(
    case: Case, name: StageName, sentence: str, letter: str, linear: nn.Module, made: Float[Tensor, "1 H T d"]
) -> Stage:
    used = weights_of(linear, letter, case.block.self_attention.heads)
    read = matrix("", case.read_as, case.worked.read[0], case.words)
    return stage(name, sentence, read, *used, matrix("=", letter, made[0, 0], case.words))


def weights_of(linear: nn.Module, letter: str, heads: int) -> list[Matrix]:
    """W and b of a projection x W + b, of them head 1's columns; torch keeps W transposed."""
    assert isinstance(linear, nn.Linear)
    weight = linear.weight.T.unflatten(1, (heads, -1))[:, 0]
    found = [matrix("×", f"W_{letter}", weight, numbered(len(weight)))]
    if linear.bias is not None:
        found.append(matrix("+", f"b_{letter}", linear.bias.unflatten(0, (heads, -1))[:1], [""]))
    return found


def scores_stage(case: Case) -> Stage:
    queries, keys, words = case.worked.queries[0, 0], case.worked.keys[0, 0], case.words
    return stage(
        "scores",
        f"Every query with every key: {queries.shape[1]} products, added up. S = Q Kᵀ has a row for each word that "
        "looks and a column for each word looked at.",
        matrix("", "Q", queries, words),
        matrix("×", "Kᵀ", keys.T, numbered(keys.shape[1]), words),
        matrix("=", "S", queries @ keys.T, words, words),
        terms=terms_of(queries, keys),
    )


def terms_of(queries: Float[Tensor, "T d"], keys: Float[Tensor, "T d"]) -> Terms:
    asked, found = queries[:SHOWN, :SHOWN], keys[:SHOWN, :SHOWN]
    return Terms(
        products=as_short(asked[:, None] * found[None, :]),
        queries=as_short(asked),
        keys=as_short(found),
        sums=as_short(queries[:SHOWN] @ keys[:SHOWN].T),
        left_out=max(0, queries.shape[1] - SHOWN),
    )


def scaled_stage(case: Case) -> Stage:
    """S / √d; T5 need not divide, and adds what it learned for each distance."""
    worked, words, bias = case.worked, case.words, case.bias
    share, divided = worked.queries.shape[-1], case.block.self_attention.score is not dot
    sentence = (
        f"Divided by √{share} = {math.sqrt(share):.4f}: a sum of more products is larger, and softmax of large scores "
        "looks at one word alone."
        if divided
        else f"This model does not divide by √{share}; its queries started out smaller instead."
    )
    if bias is not None:
        sentence += " Head 1 then adds B, a number learned for each distance between two words: all it knows of order."
    shares = f"÷ √{share} " if divided else ""
    return stage(
        "scaled",
        sentence,
        matrix("", "S", dot(worked.queries, worked.keys)[0, 0], words, words),
        *([] if bias is None else [matrix(f"{shares}+", "B", bias[0, 0], words, words)]),
        matrix("=" if bias is not None else f"{shares}=", "S′", worked.scores[0, 0], words, words),
    )


def masked_stage(case: Case) -> Stage:
    scores = case.worked.scores[:, :1]
    visible = torch.ones_like(scores, dtype=torch.bool) if case.mask is None else case.mask.expand_as(scores)
    added = torch.zeros_like(scores).masked_fill(~visible, -math.inf)
    return stage(
        "masked",
        "A word may look at itself and at what stands before it. To all other scores −∞ is added: e^−∞ is 0."
        if case.hides
        else "An encoder hides nothing: every word may look at every word, itself included, so 0 is added.",
        matrix("", "S′", scores[0, 0], case.words, case.words),
        matrix("+", "mask", added[0, 0], case.words, case.words),
        matrix("=", "S″", (scores + added)[0, 0], case.words, case.words),
    )


def weights_stage(case: Case) -> Stage:
    weights = case.worked.weights[0, 0]
    sums, columns = weights.sum(dim=-1, keepdim=True), ["Σ"]
    sentence = "softmax makes shares of each row: e^s over the sum of all e^s in the row. Every row sums to 1."
    if len(case.words) > SHOWN:
        sums, columns = torch.cat([weights[:, :SHOWN].sum(dim=-1, keepdim=True), sums], dim=-1), ["shown", "Σ"]
        sentence += f" {SHOWN} of {len(case.words)} columns are shown."
    rows = matrix("softmax(S″) =", "A", weights, case.words, case.words)
    return stage("weights", sentence, rows, matrix("row by row", "Σ", sums, case.words, columns))


def context_stage(case: Case) -> Stage:
    return stage(
        "context",
        "Each word takes a mean of all values, weighted by its row of A: what it found. C = A V.",
        matrix("", "A", case.worked.weights[0, 0], case.words, case.words),
        matrix("×", "V", case.worked.values[0, 0], case.words),
        matrix("=", "C", case.worked.contexts[0, 0], case.words),
    )


def concat_stage(case: Case) -> Stage:
    heads, share = case.worked.contexts.shape[1], case.worked.contexts.shape[3]
    columns = [f"{head}.{number}" for head, number in product(range(1, heads + 1), range(1, share + 1))]
    return stage(
        "concat",
        f"All {heads} heads do this, each with weights of its own, and their results stand side by side: {heads} × "
        f"{share} = {heads * share} numbers a word."
        if heads > 1
        else "There is one head, so its result is all there is.",
        *(matrix("|"[: n - 1], f"head {n}", one, case.words) for n, one in enumerate(case.worked.contexts[0, :2], 1)),
        matrix("| … =" if heads > 2 else "=", "concat", case.worked.merged[0], case.words, columns),
    )


def output_stage(case: Case) -> Stage:
    return stage(
        "output",
        "W_O mixes what the heads found, back to the width of X.",
        matrix("", "concat", case.worked.merged[0], case.words),
        *weights_of(case.block.self_attention.to_output, "O", 1),
        matrix("=", "O", case.worked.output[0], case.words),
    )


def residual_stage(case: Case) -> Stage:
    states, output = case.worked.states[0], case.worked.output[0]
    return stage(
        "residual",
        "What the word was stays, and what it found is added: R = X + O.",
        matrix("", "X", states, case.words),
        matrix("+", "O", output, case.words),
        matrix("=", "R", states + output, case.words),
    )


def norm_stage(case: Case, letter: str, given: Float[Tensor, "1 T D"], normed: Float[Tensor, "1 T D"]) -> Stage:
    """LayerNorm (x − μ) / σ · γ + β, or RMSNorm x / σ · γ, whose σ is the root of the mean square."""
    norm: Any = case.block.around_self.norm
    centred, shift = isinstance(norm, nn.LayerNorm), getattr(norm, "bias", None)
    mean = given.mean(dim=-1, keepdim=True) if centred else torch.zeros_like(given[..., :1])
    deviation = ((given - mean).square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
    return stage(
        "norm",
        norm_sentence(letter, centred, shift is not None, case.norm_first),
        matrix("", letter, given[0], case.words),
        *([matrix("−", "μ", mean[0], case.words, ["μ"])] if centred else []),
        matrix("÷", "σ", deviation[0], case.words, ["σ"]),
        matrix("×", "γ", norm.weight[None], [""]),
        *([] if shift is None else [matrix("+", "β", shift[None], [""])]),
        matrix("=", "N", normed[0], case.words),
    )


def norm_sentence(letter: str, centred: bool, shifted: bool, first: bool) -> str:
    told = (
        f"Each word on its own: N = ({letter} − μ) / σ · γ{' + β' if shifted else ''}, with μ the mean of its numbers "
        "and σ their deviation. Afterwards they lie about 0, not between 0 and 1."
        if centred
        else f"RMSNorm, each word on its own: N = {letter} / σ · γ, with σ the root of its mean square. No mean μ is "
        "taken off and no β is added."
    )
    return told + (" This block normalises before it attends; X itself goes on to the residual." if first else "")


# ── another order ─────────────────────────────────────────────────────────────────────────

Weigh = Callable[[list[int], bool], Tensor]  # (order of the words, whether positions are told) -> weights (T T)


def shuffle_words(words: Sequence[str], weigh: Weigh) -> Shuffle | None:
    """Every second word first. Nothing is hidden here: which words may not be seen would tell the order, too."""
    if len(words) < 2:
        return None
    order = [*range(1, len(words), 2), *range(0, len(words), 2)]
    without, told = compare(weigh, order, told=False), compare(weigh, order, told=True)
    return Shuffle(
        order=tuple(order),
        words=tuple(words[i] for i in order),
        without=without,
        with_positions=told,
        sentence="Without positions the weights move with their words, rows and columns: put back in order they differ "
        f"by {without.difference:.4f} at most. That is equivariant, not invariant. With positions the same words in "
        f"another order look elsewhere: up to {told.difference:.4f} differs. (Nothing is hidden here: a mask tells "
        "order, too.)",
    )


def compare(weigh: Weigh, order: list[int], *, told: bool) -> Compared:
    before, after = weigh(sorted(order), told), weigh(order, told)
    back = torch.tensor(order).argsort()
    difference = (after[back][:, back] - before).abs().max().item()
    return Compared(before=pack(before), after=pack(after), difference=difference)


# ── the slides ────────────────────────────────────────────────────────────────────────────

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


# ── the toy ───────────────────────────────────────────────────────────────────────────────

TOY_WIDTH, TOY_HEADS = 4, 2


def toy_arithmetic(words: Sequence[str] = CAT) -> Arithmetic:
    """A block of width 4 with two heads, on up to 8 words; the same word always has the same vector."""
    words = list(words[:SHOWN])
    block, vectors = toy_block(), toy_vectors(words)
    places = sinusoids(len(words), TOY_WIDTH)
    mask = hide_future(len(words), len(words))
    case = Case(words, block, work_through(block, (vectors + places)[None], mask, None), mask, None)

    def weigh(order: list[int], told: bool) -> Float[Tensor, "T T"]:
        states = vectors[order] + (places if told else 0.0)
        return work_through(block, states[None], None, None).weights[0, 0]

    return Arithmetic(
        source="toy",
        title=f"{' '.join(words)}, small enough to follow by hand",
        note="A toy: 4 numbers a word and 2 heads, made up to be easy to read, not learned. It is a decoder's block of "
        "2017: nobody looks ahead, and the norm comes last.",
        words=tuple(words),
        heads=TOY_HEADS,
        width=TOY_WIDTH,
        head_width=TOY_WIDTH // TOY_HEADS,
        stages=stages_of(case, toy_input(words, vectors, places)),
        shuffle=shuffle_words(words, weigh),
    )


def toy_input(words: list[str], vectors: Float[Tensor, "T D"], places: Float[Tensor, "T D"]) -> Stage:
    return stage(
        "input",
        "A vector for each word, the same wherever it stands, plus one for its place p, counted from 0: sin p, cos p, "
        "sin p/100, cos p/100. X = E + P.",
        matrix("", "E", vectors, words),
        matrix("+", "P", places, words),
        matrix("=", "X", vectors + places, words),
    )


def toy_vectors(words: list[str]) -> Float[Tensor, "T D"]:
    known = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return steps(SHOWN, TOY_WIDTH, (6, 10, 0), 19, 5)[[known[word] for word in words]]


@torch.no_grad()
def toy_block() -> Block:
    linears = []
    for shifts in ((15, 9, 12), (19, 6, 14), (4, 13, 9), (8, 5, 17)):  # W_Q, W_K, W_V, W_O
        linears.append(nn.Linear(TOY_WIDTH, TOY_WIDTH, bias=False, dtype=torch.float64))
        linears[-1].weight.copy_(steps(TOY_WIDTH, TOY_WIDTH, shifts, 21, 10).T)
    q, k, v, o = linears
    return Block(
        self_attention=Attention(score=scaled_dot, to_query=q, to_key=k, to_value=v, to_output=o, heads=TOY_HEADS),
        feedforward=nn.Identity(),
        norm=partial(nn.LayerNorm, TOY_WIDTH, dtype=torch.float64),
        norm_first=False,
    ).requires_grad_(False)


def steps(rows: int, columns: int, shifts: tuple[int, int, int], values: int, divisor: int) -> Float[Tensor, "R C"]:
    """((a i + b j + c) mod n − n/2) / divisor: readable, about 0, and no two rows alike."""
    down, across, start = shifts
    places = down * torch.arange(rows)[:, None] + across * torch.arange(columns) + start
    return (places % values - values // 2).double() / divisor


# ── a model ───────────────────────────────────────────────────────────────────────────────

Places = (SinusoidalPositions, LearnedPositions, RelativePositions)
Part = TypeVar("Part", bound=nn.Module)


class Reading(NamedTuple):
    """A text as a model's first block reads it."""

    model: Any
    run: Callable[[Int[Tensor, "1 T"]], Any]  # a pass that goes through the first block
    tokenizer: Tokenizer
    ids: list[int]

    @property
    def block(self) -> Block:
        return next(iter(part_of(self.model, Stack)))


class Entered(NamedTuple):
    """What the first block was given, and the vectors that were added up to it."""

    states: Float[Tensor, "1 T D"]
    mask: Bool[Tensor, "1 1 #T T"] | None
    bias: Float[Tensor, "1 H T T"] | None
    parts: dict[str, Tensor]


@torch.inference_mode()
def model_arithmetic(learned: Learned, text: str) -> Arithmetic | None:
    """The first block that reads the text, encoder or decoder; None for a model without self-attention over text."""
    reading = reading_of(learned, text)
    if reading is None:
        return None
    block, words = reading.block, reading.tokenizer.pieces(reading.ids)
    states, mask, bias, parts = enter(reading, reading.ids)
    case = Case(words, block, work_through(block, states, mask, bias), mask, bias)

    def weigh(order: list[int], told: bool) -> Float[Tensor, "T T"]:
        found = enter(reading, [reading.ids[i] for i in order], told=told)
        return work_through(block, found.states, None, found.bias).weights[0, 0]

    family = models.task_and_family_of(reading.model.config)[1]
    return Arithmetic(
        source="model",
        title=f"The first {'decoder' if case.hides else 'encoder'} block of this {family}, head 1 of {case.heads}",
        note=note_on(words),
        words=tuple(words[:SHOWN]),
        heads=case.heads,
        width=states.shape[-1],
        head_width=case.worked.queries.shape[-1],
        stages=stages_of(case, input_stage(reading.model, states, parts, words)),
        shuffle=shuffle_words(words[:SHOWN], weigh),
    )


def note_on(words: list[str]) -> str:
    shown = f"the first {SHOWN} of {len(words)} tokens" if len(words) > SHOWN else f"all {len(words)} tokens"
    return (
        f"Numbers of this model on this text, computed by its own parts: {shown}, and up to {SHOWN} columns of each "
        "matrix. The shape beside a matrix is its whole one."
    )


def part_of(model: nn.Module, kind: type[Part]) -> Part:
    """The first of its parts of this kind, which is the one that reads the text."""
    return next(part for part in model.modules() if isinstance(part, kind))


def reading_of(learned: Learned, text: str) -> Reading | None:
    model: Any = getattr(learned, "model", None)
    if model is None or not any(isinstance(part, Stack) for part in model.modules()):
        return None
    match learned:
        case Translator():
            tokenizer = learned.tokenizers.source
            ids = [*tokenizer.encode([clean(text)])[0], tokenizer.special.end]
            return Reading(model, lambda tokens: model.encode(tokens, tokens >= 0), tokenizer, cut(model, ids))
        case TextWriter():
            ids = cut(model, learned.read(text))
            return Reading(model, lambda tokens: model.write(tokens, model.begin(1)), learned.tokenizer, ids)
        case Filler() | Classifier() | Embedder():
            tokenizer = learned.tokenizer
            plain = tokenizer.encode([clean(text)])[0]
            if isinstance(learned, Filler) and MASK in text:
                plain = learned.read(text)
            ids = cut(model, [tokenizer.special.start, *plain, tokenizer.special.end])
            return Reading(model, lambda tokens: model.reader(tokens, tokens >= 0), tokenizer, ids)
        case _:
            return None


def cut(model: nn.Module, ids: list[int]) -> list[int]:
    """As many tokens as the model has learned positions for."""
    learned = [part for part in model.modules() if isinstance(part, LearnedPositions)]
    return ids[: learned[0].table.num_embeddings] if learned else ids


def enter(reading: Reading, ids: list[int], *, told: bool = True) -> Entered:
    """Read these tokens and catch what goes into the first block; with `told` off, as if no place had a vector."""
    given: list[tuple[Any, ...]] = []
    parts: dict[str, Tensor] = {}
    handles = [reading.block.register_forward_pre_hook(lambda _, inputs: given.append(inputs))]
    for name, part in added_parts(reading.model).items():
        handles.append(part.register_forward_hook(partial(keep, parts, name)))
        if isinstance(part, Places) and not told:
            handles.append(part.register_forward_hook(lambda _, __, found: torch.zeros_like(found)))
    try:
        reading.run(torch.tensor([ids]))
    finally:
        for handle in handles:
            handle.remove()
    states, mask, bias, *_ = given[0]
    return Entered(states, mask, bias, parts)


def keep(parts: dict[str, Tensor], name: str, _module: nn.Module, _inputs: Any, found: Tensor) -> None:
    parts[name] = found


def added_parts(model: nn.Module) -> dict[str, nn.Module]:
    """What makes the input of the first block: a token's vector, its place's, its segment's; T5's is added later."""
    embedding = part_of(model, TokenEmbedding)
    parts: dict[str, nn.Module] = {"E" if embedding.scale == 1.0 else "E·√D": embedding}
    parts["P"] = next(part for part in model.modules() if isinstance(part, Places))
    if any(isinstance(part, BertReader) for part in model.modules()):
        parts["G"] = part_of(model, BertReader).segments
    return parts


def input_stage(model: nn.Module, states: Float[Tensor, "1 T D"], parts: dict[str, Tensor], words: list[str]) -> Stage:
    width, places = states.shape[-1], added_parts(model)["P"]
    scaled = f", times √{width} = {math.sqrt(width):.4f}" if "E·√D" in parts else ""
    where = "plus that of its place, made of sines and cosines"
    if isinstance(places, LearnedPositions):
        where = "plus that of its place, which was learned, too"
    if isinstance(places, RelativePositions):
        where = "and nothing for its place: that comes with the scores"
    segment = ", plus that of its segment G; and the sum is normalised" if "G" in parts else ""
    added = {name: part for name, part in parts.items() if name != "P" or not isinstance(places, RelativePositions)}
    return stage(
        "input",
        f"Each token's vector from the table of embeddings{scaled}, {where}{segment}.",
        *(matrix("+" if n else "", name, added[name].reshape(-1, width), words) for n, name in enumerate(added)),
        matrix("norm →" if "G" in parts else "=", "X", states[0], words),
    )
