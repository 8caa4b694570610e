"""One attention block worked through: what it computes, as stages of matrices in the order of the formula."""

import math
from itertools import product
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from dragoman.modules.attention import attention_weights, dot, merge_heads, split_heads
from dragoman.modules.block import Block
from dragoman.seeing.arithmetic.matrices import SHOWN, Matrix, Stage, StageName, Terms, as_short, matrix, numbered


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


# ── stages ────────────────────────────────────────────────────────────────────────────────


TITLES: dict[StageName, str] = {
    "patches": "Patches: pixels in a row",
    "input": "What goes in",
    "queries": "Queries",
    "keys": "Keys",
    "values": "Values",
    "scores": "Scores: every query with every key",
    "scaled": "Divided by the root of the width",
    "masked": "The mask",
    "weights": "Softmax: weights",
    "context": "Weights × values",
    "concat": "The heads side by side",
    "output": "Output projection",
    "residual": "Residual: the input comes back",
    "norm": "Layer norm",
    "cell": "One step of the decoder",
}


def stage(name: StageName, sentence: str, *matrices: Matrix, terms: Terms | None = None, title: str = "") -> Stage:
    return Stage(name=name, title=title or TITLES[name], sentence=sentence, matrices=matrices, terms=terms)


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
        found.append(matrix("+", f"b_{letter}", linear.bias.unflatten(0, (heads, -1))[:1], ["b"]))
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
        terms=terms_of(queries, keys, words, words),
    )


def terms_of(queries: Float[Tensor, "Q d"], keys: Float[Tensor, "K d"], rows: list[str], columns: list[str]) -> Terms:
    asked, found = queries[:SHOWN, :SHOWN], keys[:SHOWN, :SHOWN]
    return Terms(
        rows=tuple(rows[:SHOWN]),
        columns=tuple(columns[:SHOWN]),
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
        title="" if divided else "Not divided" + (", and a number for the distance" if bias is not None else ""),
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
        matrix("(" if centred else "", letter, given[0], case.words),
        *([matrix("−", "μ", mean[0], case.words, ["μ"])] if centred else []),
        matrix(") ÷" if centred else "÷", "σ", deviation[0], case.words, ["σ"]),
        matrix("×", "γ", norm.weight[None], ["γ"]),
        *([] if shift is None else [matrix("+", "β", shift[None], ["β"])]),
        matrix("=", "N", normed[0], case.words),
        title="" if centred else "RMSNorm",
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
