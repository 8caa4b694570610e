"""The arithmetic of a recurrent translator's attention: how each step of its decoder looks at the source.

    input      A                                 a state for each source token, which are keys and values alike
    cell       s_i = cell(y_i−1, s_i−1)          one step; with additive attention after the context, which it reads
    queries    Q = s_i (additive: s_i−1 W_Q)     what asks: the state after the step, or the one before it
    keys       K = A, or A W_K
    scores     e = q·k, or v·tanh(q + k)         one number for each step and each source token, term by term
    weights    α = softmax(e), row by row
    context    c_i = Σ α a
    concat     [c_i; s_i]
    output     t_i = tanh([c_i; s_i] W_T + b_T)  the readout, from which the next token is scored

models/rnn.py says who asks when. The numbers are caught as the model writes its own translation.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dragoman.decoding.translate import Translator
from dragoman.models.rnn import Rnn
from dragoman.modules.activations import tanh
from dragoman.modules.attention import AdditiveScore, Attention, scaled_dot, watching
from dragoman.seeing.arithmetic.block import stage, terms_of, weights_of
from dragoman.seeing.arithmetic.matrices import (
    SHOWN,
    Arithmetic,
    Matrix,
    Stage,
    Terms,
    as_short,
    counted,
    matrix,
    numbered,
)
from dragoman.text.batches import make_batch
from dragoman.text.reading import clean


class Written(NamedTuple):
    """All numbers on the way from a state to a readout, as the model computed them."""

    vectors: Float[Tensor, "S I"]  # of the source tokens
    states: Float[Tensor, "S D"]  # A
    given: Float[Tensor, "T I"]  # y_i−1
    before: Float[Tensor, "T D"]  # s_i−1
    after: Float[Tensor, "T D"]  # s_i
    fed: Float[Tensor, "T I"] | None  # t_i−1, where the cell reads it
    queries: Float[Tensor, "T d"]
    keys: Float[Tensor, "S d"]
    scores: Float[Tensor, "T S"]
    weights: Float[Tensor, "T S"]
    merged: Float[Tensor, "T 2*D"]  # [c_i; s_i]
    readouts: Float[Tensor, "T I"]  # t_i

    @property
    def contexts(self) -> Float[Tensor, "T D"]:
        return self.merged[:, : self.after.shape[1]]


class Case(NamedTuple):
    """One translation in the making: all that the stages tell about."""

    model: Rnn
    source: list[str]  # tokens read
    given: list[str]  # the token before each step
    written: list[str]  # the token that each step writes
    numbers: Written

    @property
    def attention(self) -> Attention:
        assert self.model.source_attention is not None
        return self.model.source_attention

    @property
    def asks_first(self) -> bool:
        return self.model.config.attention == "additive"

    @property
    def asked(self) -> Matrix:
        """The states that ask."""
        found = self.numbers
        return matrix("", *(("s_i−1", found.before) if self.asks_first else ("s_i", found.after)), self.written)


def recurrent_arithmetic(translator: Translator, text: str) -> Arithmetic:
    """Of a translator whose model is an `Rnn` with attention, as it writes what its own search found."""
    model, tokenizers = translator.model, translator.tokenizers
    [source] = tokenizers.source.encode([clean(text)])
    [target] = translator.write_ids([source], beam=translator.search.beam)
    batch = make_batch([(source, target)], tokenizers.special)
    case = Case(
        model,
        tokenizers.source.pieces(batch.source[0].tolist()),
        tokenizers.target.pieces(batch.target_in[0].tolist()),
        tokenizers.target.pieces(batch.target_out[0].tolist()),
        write_along(model, batch.source, batch.target_in),
    )
    kind = model.config.attention
    return Arithmetic(
        source="model",
        title=f"{kind.capitalize()} attention of this rnn: how its decoder looks at the source",
        note=note_on(case),
        words=tuple(case.source[:SHOWN]),
        counted=counted(case.source),
        heads=1,
        width=case.numbers.states.shape[1],
        head_width=case.numbers.queries.shape[1],
        stages=stages_of(case),
    )


def note_on(case: Case) -> str:
    shown = " and ".join(
        f"the first {SHOWN} of {len(tokens)} {name}" if len(tokens) > SHOWN else f"all {len(tokens)} {name}"
        for name, tokens in (("tokens that it reads", case.source), ("tokens that it writes", case.written))
    )
    return (
        f"Numbers of this model as it writes its translation of this text: {shown}, and up to {SHOWN} columns of each "
        "matrix. A row of a step is named by the token that the step writes. The shape beside a matrix is its whole "
        "one."
    )


def write_along(model: Rnn, source: Int[Tensor, "1 S"], given: Int[Tensor, "1 T"]) -> Written:
    """One pass over both texts, as in training; what goes into the readout is caught on its way."""
    attention, merged = model.source_attention, list[Tensor]()
    assert attention is not None
    handle = model.to_readout.register_forward_pre_hook(lambda _, inputs: merged.append(inputs[0]))
    try:
        with watching(model) as seen:
            start = model.encode(source, torch.ones_like(source, dtype=torch.bool))
            readouts = model.write(given, start)[0][0]
    finally:
        handle.remove()
    [looks] = seen.values()
    both = torch.cat(merged, dim=1)[0]
    after = both[:, model.config.width :]
    before = torch.cat([start.cells[-1][0], after[:-1]])
    memory = start.source[0]
    return Written(
        vectors=model.source_embedding(source)[0],
        states=memory.values[0, 0],
        given=model.target_embedding(given)[0],
        before=before,
        after=after,
        fed=torch.cat([start.readout, readouts[:-1]]) if model.config.input_feeding else None,
        queries=attention.to_query(before if model.config.attention == "additive" else after),
        keys=memory.keys[0, 0],
        scores=torch.cat([one.scores for one in looks], dim=2)[0, 0],
        weights=torch.cat([one.weights for one in looks], dim=2)[0, 0],
        merged=both,
        readouts=readouts,
    )


# ── stages ────────────────────────────────────────────────────────────────────────────────


def stages_of(case: Case) -> tuple[Stage, ...]:
    """In the order in which this decoder does it: additive attention is asked before the step, others after it."""
    looking = [queries_stage(case), keys_stage(case), scores_stage(case)]
    if case.attention.score is scaled_dot:
        looking.append(scaled_stage(case))
    looking += [weights_stage(case), context_stage(case)]
    order = [*looking, cell_stage(case)] if case.asks_first else [cell_stage(case), *looking]
    return (input_stage(case), *order, concat_stage(case), output_stage(case))


def input_stage(case: Case) -> Stage:
    config, numbers = case.model.config, case.numbers
    ways = (
        "forwards and backwards, half of the width each, so a state tells of the token within its whole sentence"
        if config.two_way
        else "forwards, so a state tells of the token and of all before it"
    )
    return stage(
        "input",
        f"The encoder reads the vectors E of the source tokens {ways}. A has a state a for each of them: what the "
        "decoder can look at.",
        matrix("", "E", numbers.vectors, case.source),
        matrix(
            f"{config.cell} both ways →" if config.two_way else f"{config.cell} →", "A", numbers.states, case.source
        ),
    )


def cell_stage(case: Case) -> Stage:
    config, numbers = case.model.config, case.numbers
    read = [matrix("", "y_i−1", numbers.given, case.given)]
    told = "reads y, the vector of the token before"
    if case.asks_first:
        read.append(matrix(";", "c_i", numbers.contexts, case.written))
        told += ", together with the context c that it has just found"
    if numbers.fed is not None:
        read.append(matrix(";", "t_i−1", numbers.fed, case.written))
        told += ", together with the readout t of the step before (input feeding)"
    bracket, closed = ("[", "]") if len(read) > 1 else ("", "")
    read[0] = read[0].model_copy(update={"sign": f"{config.cell}( {bracket}".strip()})
    layers = f" Of its {config.layers} layers the state of the last is shown." if config.layers > 1 else ""
    memory = " What an LSTM keeps in its cell beside its state is not shown." if config.cell == "lstm" else ""
    return stage(
        "cell",
        f"Each step {told}, and the state s of the step before; the first of those comes from the encoder.{layers}"
        f"{memory}",
        *read,
        matrix(f"{closed},", "s_i−1", numbers.before, case.written),
        matrix(") =", "s_i", numbers.after, case.written),
    )


def queries_stage(case: Case) -> Stage:
    when = "before the step: what was written so far asks where to look" if case.asks_first else "after the step"
    return projected(
        case.asked, case.attention.to_query, "Q", case.numbers.queries, f"The state {when}. Each row of it", "query"
    )


def keys_stage(case: Case) -> Stage:
    states = matrix("", "A", case.numbers.states, case.source)
    return projected(
        states, case.attention.to_key, "K", case.numbers.keys, "Each row of A, a state of the encoder,", "key"
    )


def projected(given: Matrix, linear: nn.Module, letter: str, made: Float[Tensor, "N d"], row: str, role: str) -> Stage:
    """Through a linear layer, or as it is, where this kind of attention has none there."""
    plain = not isinstance(linear, nn.Linear)
    added = "" if getattr(linear, "bias", None) is None else f", plus b_{letter},"
    sentence = f"{row} is a {role} as it is." if plain else f"{row} times W_{letter}{added} is a {role}."
    result = matrix(f"{given.name} =" if plain else "=", letter, made, given.rows)
    parts = [] if plain else [given, *weights_of(linear, letter, 1)]
    return stage("queries" if letter == "Q" else "keys", sentence, *parts, result)


def scores_stage(case: Case) -> Stage:
    queries, keys, score = case.numbers.queries, case.numbers.keys, case.attention.score
    rows, columns = case.written, case.source
    if isinstance(score, AdditiveScore):
        v = score.v.weight[0]
        return stage(
            "scores",
            "Every query with every key: both are added, tanh is taken of each number, and the sum of these, weighted "
            "by v, is the score e = v·tanh(q + k): a network with one hidden layer. A row for each step, a column for "
            "each source token.",
            matrix("", "v", v[None], ["v"]),
            matrix("· tanh(", "Q", queries, rows),
            matrix("+", "K", keys, columns),
            matrix(") =", "e", case.numbers.scores, rows, columns),
            terms=additive_terms(queries, keys, v, rows, columns),
            title="Scores: a small network compares every query with every key",
        )
    products = queries @ keys.T
    return stage(
        "scores",
        f"Every query with every key: {queries.shape[1]} products, added up. e = Q Kᵀ has a row for each step and a "
        "column for each source token.",
        matrix("", "Q", queries, rows),
        matrix("×", "Kᵀ", keys.T, numbered(keys.shape[1]), columns),
        matrix("=", "e", products, rows, columns),
        terms=terms_of(queries, keys, rows, columns),
    )


def additive_terms(
    queries: Float[Tensor, "T d"],
    keys: Float[Tensor, "S d"],
    v: Float[Tensor, " d"],
    rows: list[str],
    columns: list[str],
) -> Terms:
    hidden = tanh(queries[:SHOWN, None] + keys[None, :SHOWN])  # (T S d)
    products = v * hidden
    return Terms(
        rows=tuple(rows[:SHOWN]),
        columns=tuple(columns[:SHOWN]),
        products=as_short(products[..., :SHOWN]),
        queries=as_short(queries[:SHOWN, :SHOWN]),
        keys=as_short(keys[:SHOWN, :SHOWN]),
        sums=as_short(products.sum(dim=-1)),
        left_out=max(0, len(v) - SHOWN),
        hidden=as_short(hidden[..., :SHOWN]),
        v=as_short(v[:SHOWN]),
    )


def scaled_stage(case: Case) -> Stage:
    numbers, share = case.numbers, case.numbers.queries.shape[1]
    return stage(
        "scaled",
        f"Divided by √{share} = {math.sqrt(share):.4f}: a sum of more products is larger, and softmax of large scores "
        "looks at one token alone.",
        matrix("", "e", numbers.queries @ numbers.keys.T, case.written, case.source),
        matrix(f"÷ √{share} =", "e′", numbers.scores, case.written, case.source),
    )


def weights_stage(case: Case) -> Stage:
    weights, scores = case.numbers.weights, "e′" if case.attention.score is scaled_dot else "e"
    sums, columns = weights.sum(dim=-1, keepdim=True), ["Σ"]
    sentence = (
        f"softmax makes shares of each row: exp({scores}) over the sum of all exp({scores}) in the row. Every row sums "
        "to 1; nothing of the source is hidden."
    )
    if len(case.source) > SHOWN:
        sums, columns = torch.cat([weights[:, :SHOWN].sum(dim=-1, keepdim=True), sums], dim=-1), ["shown", "Σ"]
        sentence += f" {SHOWN} of {len(case.source)} columns are shown."
    rows = matrix(f"softmax({scores}) =", "α", weights, case.written, case.source)
    return stage("weights", sentence, rows, matrix("row by row", "Σ", sums, case.written, columns))


def context_stage(case: Case) -> Stage:
    return stage(
        "context",
        "Each step takes a mean of the encoder's states, weighted by its row of α: c_i = Σ α a.",
        matrix("", "α", case.numbers.weights, case.written, case.source),
        matrix("×", "A", case.numbers.states, case.source),
        matrix("=", "c_i", case.numbers.contexts, case.written),
        title="Weights × states: the context",
    )


def concat_stage(case: Case) -> Stage:
    width = case.numbers.after.shape[1]
    return stage(
        "concat",
        f"What the step found and what it is stand side by side: {width} + {width} = {2 * width} numbers.",
        matrix("", "c_i", case.numbers.contexts, case.written),
        matrix("|", "s_i", case.numbers.after, case.written),
        matrix("=", "[c; s]", case.numbers.merged, case.written, columns_of(case)),
        title="Context and state side by side",
    )


def columns_of(case: Case) -> list[str]:
    """Of [c; s]."""
    width = case.numbers.after.shape[1]
    return [f"{letter}.{number}" for letter in "cs" for number in range(1, width + 1)]


def output_stage(case: Case) -> Stage:
    return stage(
        "output",
        "The readout t = tanh([c; s] W_T + b_T), as wide as a token's vector: t times the vector of each token is that "
        "token's score.",
        matrix("tanh(", "[c; s]", case.numbers.merged, case.written, columns_of(case)),
        *weights_of(case.model.to_readout, "T", 1),
        matrix(") =", "t_i", case.numbers.readouts, case.written),
        title="Readout",
    )
