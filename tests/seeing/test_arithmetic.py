"""The arithmetic that is shown: each number the model's own, each formula true of what stands on the page."""

import json
import math
import re
from pathlib import Path

import pytest
import torch

from dragoman import models
from dragoman.decoding.classify import Classifier
from dragoman.decoding.fill import Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.translate import Translator
from dragoman.decoding.watch import watch_translation
from dragoman.models.bag import BagConfig
from dragoman.models.bert import BertConfig
from dragoman.models.bert_classifier import BertClassifierConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.marian import MarianConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.modules.attention import merge_heads, watching
from dragoman.modules.positions import sinusoids
from dragoman.seeing.arithmetic import CAT, Arithmetic, model_arithmetic, slides_arithmetic, toy_arithmetic
from dragoman.seeing.arithmetic.block import work_through
from dragoman.seeing.arithmetic.matrices import SHOWN
from dragoman.seeing.arithmetic.own import enter, reading_of
from dragoman.seeing.arithmetic.slides import SLIDE_PLACES, SLIDE_SUMS, SLIDE_VECTORS, SLIDE_WEIGHTS
from dragoman.seeing.look import look
from dragoman.text.batches import make_batch
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers

CONTRACT = (Path(__file__).parents[2] / "web" / "src" / "data.ts").read_text(encoding="utf-8")
TEXT = "your cat is lovely"
TOKENIZERS = learn_tokenizers(
    TokenizerConfig(kind="words", special=SpecialIds(mask=4)), [("your cat is a lovely cat", "to be or not to be")]
)
V = len(TOKENIZERS.source)
BOTH = {"source_vocabulary": V, "target_vocabulary": V}
SIZES = {"width": 8, "heads": 2, "layers": 2, "hidden": 16, "dropout": 0.0}
CONFIGS = {
    "transformer": TransformerConfig(**BOTH, **SIZES),
    "transformer-norm-first": TransformerConfig(**BOTH, **SIZES, norm_first=True),
    "transformer-learned": TransformerConfig(**BOTH, **SIZES, positions="learned", longest=6),
    "marian": MarianConfig(**BOTH, **SIZES),
    "t5": T5Config(**BOTH, **SIZES, head_width=3, buckets=8, furthest=12),
    "t5-scaled": T5Config(**BOTH, **SIZES, head_width=4, scaled=True),
    "gpt": GptConfig(vocabulary=V, **SIZES, longest=12),
    "gpt-without-biases": GptConfig(vocabulary=V, **SIZES, longest=12, biases=False),
    "bert": BertConfig(vocabulary=V, **SIZES, longest=12),
    "bert-norm-first": BertConfig(vocabulary=V, **SIZES, longest=12, norm_first=True),
    "bert-classifier": BertClassifierConfig(vocabulary=V, **SIZES, longest=12, classes=("a", "b")),
}


def learned(config):
    torch.manual_seed(0)
    model = models.build(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)  # biases and norms that can be told from none
    kinds = {"translate": Translator, "write": TextWriter, "fill": Filler, "classify": Classifier}
    kind = kinds[models.task_and_family_of(config)[0]]
    return kind(model, TOKENIZERS, {"longest": 64}) if kind is Translator else kind(model, TOKENIZERS)


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS, scope="module")
def trained(request):
    return learned(request.param)


@pytest.fixture(scope="module")
def found(trained):
    return model_arithmetic(trained, TEXT)


def shown(arithmetic, stage, name=None):
    """A matrix as it stands on the page; the last one of its stage, which is the result."""
    matrices = next(one for one in arithmetic.stages if one.name == stage).matrices
    return matrices[-1].values.unpack() if name is None else named(matrices)[name]


def named(matrices):
    return {matrix.name: matrix.values.unpack() for matrix in matrices}


# ── the model's own numbers ───────────────────────────────────────────────────────────────


def outputs_of(modules, run):
    """What each module gave out, call by call, and what it was given first."""
    caught = {name: [] for name in modules}
    handles = [
        module.register_forward_hook(lambda _, given, found, name=name: caught[name].append((given[0], found)))
        for name, module in modules.items()
    ]
    run()
    for handle in handles:
        handle.remove()
    return caught


@torch.inference_mode()
def test_every_number_is_the_one_that_the_model_computes(trained):
    reading = reading_of(trained, TEXT)
    block = reading.block
    attention, around = block.self_attention, block.around_self
    modules = {"q": attention.to_query, "k": attention.to_key, "v": attention.to_value, "o": attention.to_output}
    modules |= {
        "attention": attention,
        "norm": around.norm,
        "next": block.feedforward,
        "after": block.around_feedforward.norm,
    }
    tokens = torch.tensor([reading.ids])
    seen = outputs_of(modules, lambda: reading.run(tokens))
    with watching(reading.model) as looked:
        reading.run(tokens)
    states, mask, bias, _ = enter(reading, reading.ids)
    worked = work_through(block, states, mask, bias)
    name = next(name for name, module in reading.model.named_modules() if module is attention)

    def same(a, b):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)

    same(worked.weights, looked[name][0].weights)
    for letter, made in zip("qkv", (worked.queries, worked.keys, worked.values), strict=True):
        same(merge_heads(made), seen[letter][0][1])
    same(worked.merged, seen["o"][0][0])
    same(worked.output, seen["attention"][0][1])
    same(worked.read if around.norm_first else worked.left, seen["norm"][0][1])
    same(worked.left, seen["after"][0][0] if around.norm_first else seen["next"][0][0])


def test_what_is_shown_is_that_to_its_digits(trained, found):
    reading = reading_of(trained, TEXT)
    with torch.inference_mode():
        states, mask, bias, _ = enter(reading, reading.ids)
        worked = work_through(reading.block, states, mask, bias)
    expected = {
        "queries": worked.queries[0, 0], "keys": worked.keys[0, 0], "values": worked.values[0, 0],
        "context": worked.contexts[0, 0], "output": worked.output[0], "residual": (worked.states + worked.output)[0],
        "norm": worked.read[0] if reading.block.around_self.norm_first else worked.left[0],
    }  # fmt: skip
    for name, values in expected.items():
        packed = next(one for one in found.stages if one.name == name).matrices[-1].values
        torch.testing.assert_close(packed.unpack(), values.double(), atol=0.51 * 10**-packed.digits, rtol=0)


def near(a, b):
    torch.testing.assert_close(a, b, atol=0.02, rtol=0.02)  # a few digits each, and their products


def test_each_formula_holds_for_what_is_shown(trained):
    """X W + b, S = Q Kᵀ, softmax, A V, … computed again from the page alone."""
    found = model_arithmetic(trained, TEXT)
    read = shown(found, "norm") if found.stages[1].name == "norm" else shown(found, "input")
    for stage, letter in (("queries", "Q"), ("keys", "K"), ("values", "V")):
        parts = named(next(one for one in found.stages if one.name == stage).matrices)
        near(read @ parts[f"W_{letter}"] + parts.get(f"b_{letter}", 0.0), parts[letter])
    queries, keys, values = (shown(found, name) for name in ("queries", "keys", "values"))
    near(queries @ keys.T, shown(found, "scores"))
    masked = shown(found, "masked")
    torch.testing.assert_close(masked.softmax(dim=-1), shown(found, "weights", "A"), atol=2e-3, rtol=0)
    near(shown(found, "weights", "A") @ values, shown(found, "context"))
    parts = named(next(one for one in found.stages if one.name == "output").matrices)
    near(shown(found, "concat") @ parts["W_O"] + parts.get("b_O", 0.0), parts["O"])
    near(shown(found, "input") + parts["O"], shown(found, "residual"))


def test_the_norm_is_written_out(found):
    stage = next(one for one in found.stages if one.name == "norm")
    parts = named(stage.matrices)
    given = parts["X" if found.stages[1].name == "norm" else "R"]
    near((given - parts.get("μ", 0.0)) / parts["σ"] * parts["γ"] + parts.get("β", 0.0), parts["N"])
    if "RMSNorm" in stage.sentence:
        assert not {"μ", "β"} & parts.keys()
        near(given.square().mean(-1, keepdim=True).sqrt(), parts["σ"])
    else:
        near(given.mean(-1, keepdim=True), parts["μ"])


def test_stages_come_in_the_order_of_the_block(trained, found):
    names = [stage.name for stage in found.stages]
    assert sorted(names) == sorted(one.name for one in toy_arithmetic().stages)
    first = reading_of(trained, TEXT).block.around_self.norm_first
    assert names.index("norm") == (1 if first else len(names) - 1)
    assert names[-1] == ("residual" if first else "norm")


def test_the_input_is_the_sum_of_its_parts(trained, found):
    *parts, x = found.stages[0].matrices
    total = sum(part.values.unpack() for part in parts)
    if "normalised" in found.stages[0].sentence:  # BERT
        assert [part.name for part in parts] == ["E", "P", "G"]
        norm = reading_of(trained, TEXT).model.reader.norm
        total = norm(total.float()).detach().double()
    near(total, x.values.unpack())


def test_every_term_of_every_score_is_there(found):
    stage = next(one for one in found.stages if one.name == "scores")
    terms = stage.terms
    assert terms.left_out == 0
    near(terms.products.unpack().sum(-1), terms.sums.unpack())
    assert torch.equal(terms.sums.unpack(), stage.matrices[-1].values.unpack())
    near(terms.queries.unpack()[:, None] * terms.keys.unpack()[None], terms.products.unpack())
    assert [one for one in found.stages if one.terms] == [stage]


def test_signs_make_a_formula_of_the_matrices(found):
    formulas = {one.name: " ".join(f"{m.sign} {m.name}".strip() for m in one.matrices) for one in found.stages}
    assert formulas["scores"] == "Q × Kᵀ = S"
    assert formulas["context"] == "A × V = C"
    assert formulas["residual"] == "X + O = R"
    assert formulas["masked"] == "S′ + mask = S″"
    assert formulas["concat"] == "head 1 | head 2 = concat"
    assert re.fullmatch(r"[XN] × W_Q( \+ b_Q)? = Q", formulas["queries"])
    assert re.fullmatch(r"(\( [XR] − μ \)|[XR]) ÷ σ × γ( \+ β)? = N", formulas["norm"])
    assert re.fullmatch(r"S (÷ √\d )?(\+ B )?= S′", formulas["scaled"])
    assert re.fullmatch(r"E(·√D)?( \+ P)?( \+ G norm → X| = X)", formulas["input"])


def test_t5_says_that_it_does_not_divide_and_shows_its_bias():
    found = model_arithmetic(learned(CONFIGS["t5"]), TEXT)
    stage = next(one for one in found.stages if one.name == "scaled")
    assert "does not divide" in stage.sentence
    parts = named(stage.matrices)
    near(parts["S"] + parts["B"], parts["S′"])
    scaled = next(one for one in model_arithmetic(learned(CONFIGS["t5-scaled"]), TEXT).stages if one.name == "scaled")
    parts = named(scaled.matrices)
    near(parts["S"] / 2 + parts["B"], parts["S′"])


def test_only_a_decoder_hides():
    gpt, bert = model_arithmetic(learned(CONFIGS["gpt"]), TEXT), model_arithmetic(learned(CONFIGS["bert"]), TEXT)
    future = torch.ones_like(shown(gpt, "masked")).triu(1).bool()
    assert torch.equal(shown(gpt, "masked").isneginf(), future)
    assert (shown(gpt, "weights", "A")[future] == 0).all()
    assert shown(bert, "masked").isfinite().all()
    assert "decoder" in gpt.title
    assert "encoder" in bert.title


def test_a_long_text_and_a_wide_model_are_shown_in_part():
    config = TransformerConfig(**BOTH, width=32, heads=2, layers=1, hidden=16, dropout=0.0)
    found = model_arithmetic(learned(config), " ".join(["your cat is a lovely cat"] * 3))
    assert len(found.words) == SHOWN
    stages = {stage.name: stage for stage in found.stages}
    x, w, q = stages["queries"].matrices[0], stages["queries"].matrices[1], stages["queries"].matrices[-1]
    assert (x.shape, w.shape, q.shape) == ((19, 32), (32, 16), (19, 16))
    assert all(one.values.shape == (SHOWN, SHOWN) == (len(one.rows), len(one.columns)) for one in (x, w, q))
    assert stages["scores"].terms.left_out == 16 - SHOWN
    sums = stages["weights"].matrices[1]
    torch.testing.assert_close(sums.values.unpack()[:, 1], torch.ones(SHOWN).double())
    assert (sums.values.unpack()[:, 0] < 0.99).any()
    assert "8 of 19" in stages["weights"].sentence


def test_a_text_beyond_the_last_position_is_cut():
    found = model_arithmetic(learned(CONFIGS["transformer-learned"]), " ".join(["cat"] * 20))
    assert found.stages[0].matrices[-1].shape == (6, 8)


def test_a_mask_is_a_word_to_fill_in():
    assert "<mask>" in model_arithmetic(learned(CONFIGS["bert"]), "your [MASK] is lovely").words


def test_a_model_without_attention_has_no_such_arithmetic():
    assert model_arithmetic(learned(RnnConfig(**BOTH, width=8, embedding=8)), TEXT) is None
    assert model_arithmetic(learned(BagConfig(vocabulary=V, width=8, classes=("a", "b"))), TEXT) is None


# ── recurrent attention ───────────────────────────────────────────────────────────────────

RNN = {"width": 8, "embedding": 6, "rank": 3, "dropout": 0.0}
RECURRENT = {
    kind: RnnConfig(**BOTH, **RNN, attention=kind) for kind in ("additive", "dot", "bilinear", "low-rank", "scaled")
} | {
    "additive-two-layers": RnnConfig(**BOTH, **RNN, attention="additive", cell="gru", layers=2, two_way=False),
    "fed": RnnConfig(**BOTH, **RNN, attention="dot", cell="rnn", input_feeding=True, tied="none"),
}


def writes(config):
    """A translator that writes three words, whatever it reads: one that has not learned may end at once."""
    translator = learned(config)
    translator.write_ids = lambda sources, **_: [[7, 5, 6] for _ in sources]
    return translator


@pytest.fixture(params=RECURRENT.values(), ids=RECURRENT, scope="module")
def recurrent(request):
    return writes(request.param)


@torch.inference_mode()
def score_by_the_lecture(model, state, source):
    """One number of attention, by the formula of its kind and the model's own weights."""
    attention, kind = model.source_attention, model.config.attention
    match kind:
        case "additive":
            mixed = attention.to_query.weight @ state + attention.to_key.weight @ source + attention.to_key.bias
            return attention.score.v.weight[0] @ torch.tanh(mixed)
        case "bilinear":
            return state @ attention.to_key.weight @ source
        case "low-rank":
            return (attention.to_query.weight @ state) @ (attention.to_key.weight @ source)
        case _:
            return state @ source / (math.sqrt(len(state)) if kind == "scaled" else 1.0)


@torch.inference_mode()
def test_recurrent_attention_is_what_the_model_computes_when_it_is_watched(recurrent):
    model, found = recurrent.model, model_arithmetic(recurrent, TEXT)
    [source] = recurrent.tokenizers.source.encode([TEXT])
    [target] = recurrent.write_ids([source], beam=recurrent.search.beam)
    watched = watch_translation(model, recurrent.tokenizers, source, target)
    [seen] = watched.maps
    stages = {one.name: named(one.matrices) for one in found.stages}

    def same(shown, wanted):
        torch.testing.assert_close(
            shown, wanted.double(), atol=6e-4, rtol=0
        )  # three digits, where there are large ones

    assert stages["weights"]["α"].shape == (4, 5)
    same(stages["weights"]["α"], seen.weights[0])
    same(stages["scaled"]["e′"] if "scaled" in stages else stages["scores"]["e"], seen.scores[0])
    same(stages["cell"]["s_i"], torch.cat([turn.state for turn in watched.turns[-1]]))
    batch = make_batch([(source, target)], recurrent.tokenizers.special)
    start = model.encode(batch.source, batch.source_mask)
    same(stages["cell"]["s_i−1"][:1], start.cells[-1][0])
    same(stages["output"]["t_i"], model.write(batch.target_in, start)[0][0])
    same(model.scores(stages["output"]["t_i"].float()).log_softmax(-1).double(), watched.log_probs)


@torch.inference_mode()
def test_every_recurrent_score_is_the_lectures_formula(recurrent):
    found = model_arithmetic(recurrent, TEXT)
    model = recurrent.model
    asked = shown(found, "cell", "s_i−1" if model.config.attention == "additive" else "s_i").float()
    states = shown(found, "input", "A").float()
    wanted = torch.stack([torch.stack([score_by_the_lecture(model, s, a) for a in states]) for s in asked])
    near(shown(found, "scaled" if model.config.attention == "scaled" else "scores"), wanted.double())


def test_recurrent_formulas_hold_for_what_is_shown(recurrent):
    found = model_arithmetic(recurrent, TEXT)
    states, alpha = shown(found, "input", "A"), shown(found, "weights", "α")
    near(alpha @ states, shown(found, "context"))
    last = "scaled" if recurrent.model.config.attention == "scaled" else "scores"
    torch.testing.assert_close(shown(found, last).softmax(-1), alpha, atol=2e-3, rtol=0)
    for stage, letter in (("queries", "Q"), ("keys", "K")):
        given, *others = next(one for one in found.stages if one.name == stage).matrices
        parts = named(others)
        if parts:
            near(given.values.unpack() @ parts[f"W_{letter}"] + parts.get(f"b_{letter}", 0.0), parts[letter])
    both = torch.cat([shown(found, "context"), shown(found, "cell", "s_i")], dim=-1)
    layer = recurrent.model.to_readout
    near(torch.tanh(both @ layer.weight.T.double() + layer.bias.double()).detach(), shown(found, "output"))


def test_every_term_of_every_recurrent_score_is_there(recurrent):
    found = model_arithmetic(recurrent, TEXT)
    [stage] = [one for one in found.stages if one.terms]
    terms = stage.terms
    assert (terms.rows, terms.columns) == (stage.matrices[-1].rows, stage.matrices[-1].columns)
    assert terms.columns == found.words
    assert terms.left_out == 0
    near(terms.products.unpack().sum(-1), terms.sums.unpack())
    near(terms.sums.unpack(), stage.matrices[-1].values.unpack())
    queries, keys = terms.queries.unpack()[:, None], terms.keys.unpack()[None]
    if recurrent.model.config.attention == "additive":
        near(torch.tanh(queries + keys), terms.hidden.unpack())
        near(terms.v.unpack() * terms.hidden.unpack(), terms.products.unpack())
    else:
        assert terms.v is terms.hidden is None
        near(queries * keys, terms.products.unpack())


def test_the_steps_shown_are_those_of_the_models_own_output():
    translator = learned(RECURRENT["bilinear"])
    found, seen = model_arithmetic(translator, TEXT), look(translator, TEXT)
    scores = next(one for one in found.stages if one.name == "scores").matrices[-1]
    assert scores.shape == (len(seen.written.pieces), len(seen.source.pieces))
    assert [*scores.rows] == seen.written.pieces[:SHOWN]
    assert [*found.words] == seen.source.pieces[:SHOWN]


def test_who_asks_when_is_the_order_of_the_stages():
    asks_first, steps_first = (
        [one.name for one in model_arithmetic(writes(RECURRENT[kind]), TEXT).stages] for kind in ("additive", "scaled")
    )
    assert asks_first == ["input", "queries", "keys", "scores", "weights", "context", "cell", "concat", "output"]
    assert steps_first == [
        "input", "cell", "queries", "keys", "scores", "scaled", "weights", "context", "concat", "output",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "stage", "formula"),
    [
        ("additive", "queries", "s_i−1 × W_Q = Q"),
        ("additive", "keys", "A × W_K + b_K = K"),
        ("additive", "scores", "v · tanh( Q + K ) = e"),
        ("additive", "cell", "lstm( [ y_i−1 ; c_i ], s_i−1 ) = s_i"),
        ("fed", "cell", "rnn( [ y_i−1 ; t_i−1 ], s_i−1 ) = s_i"),
        ("dot", "cell", "lstm( y_i−1 , s_i−1 ) = s_i"),
        ("dot", "queries", "s_i = Q"),
        ("dot", "keys", "A = K"),
        ("scaled", "scaled", "e ÷ √8 = e′"),
        ("low-rank", "scores", "Q × Kᵀ = e"),
        ("dot", "context", "α × A = c_i"),
        ("dot", "concat", "c_i | s_i = [c; s]"),
        ("dot", "output", "tanh( [c; s] × W_T + b_T ) = t_i"),
    ],
)
def test_signs_make_a_formula_of_recurrent_matrices(kind, stage, formula):
    found = model_arithmetic(writes(RECURRENT[kind]), TEXT)
    matrices = next(one for one in found.stages if one.name == stage).matrices
    assert " ".join(f"{m.sign} {m.name}".strip() for m in matrices) == formula


# ── another order ─────────────────────────────────────────────────────────────────────────


def undone(shuffle, compared):
    back = torch.tensor(shuffle.order).argsort()
    return compared.after.unpack()[back][:, back]


def test_without_positions_the_weights_move_with_the_words(found):
    shuffle = found.shuffle
    assert shuffle.without.difference < 1e-5
    assert shuffle.with_positions.difference > 1e-3
    torch.testing.assert_close(undone(shuffle, shuffle.without), shuffle.without.before.unpack(), atol=2e-4, rtol=0)
    assert not torch.equal(shuffle.without.after.unpack(), shuffle.without.before.unpack())  # not invariant
    assert shuffle.words == tuple(found.words[i] for i in shuffle.order) != found.words


def test_watching_a_shuffled_text_leaves_the_model_as_it_was(trained, found):
    assert model_arithmetic(trained, TEXT) == found
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in trained.model.modules())


# ── the toy ───────────────────────────────────────────────────────────────────────────────


def test_the_toy_is_small_and_whole():
    toy = toy_arithmetic()
    assert (toy.words, toy.heads, toy.width, toy.head_width) == (CAT, 2, 4, 2)
    assert all(one.values.shape == one.shape for stage in toy.stages for one in stage.matrices)
    vectors, places, x = (matrix.values.unpack() for matrix in toy.stages[0].matrices)
    assert torch.equal(vectors[1], vectors[5])  # CAT is CAT …
    assert not torch.equal(x[1], x[5])  # … and stands elsewhere
    torch.testing.assert_close(places, sinusoids(6, 4), atol=5.1e-5, rtol=0)
    assert torch.equal((10 * vectors).round(), 10 * vectors)
    for stage, letter in (("queries", "Q"), ("keys", "K"), ("values", "V"), ("output", "O")):
        weight = shown(toy, stage, f"W_{letter}")
        assert torch.equal((10 * weight).round(), (10 * weight))
        assert weight.abs().max() <= 1


def test_the_toy_can_be_followed_by_hand():
    toy = toy_arithmetic()
    queries, keys, values = (shown(toy, name) for name in ("queries", "keys", "values"))
    scores = (queries @ keys.T / math.sqrt(2)).masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf)
    torch.testing.assert_close(scores.softmax(-1), shown(toy, "weights", "A"), atol=2e-3, rtol=0)
    near(shown(toy, "weights", "A") @ values, shown(toy, "context"))
    assert toy.shuffle.without.difference < 1e-12
    assert toy.shuffle.with_positions.difference > 0.1


@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_the_toy_takes_other_words(count):
    toy = toy_arithmetic([f"w{number}" for number in range(count)])
    assert len(toy.words) == min(count, SHOWN)
    assert (toy.shuffle is None) == (count == 1)
    vectors = toy.stages[0].matrices[0].values.unpack()
    assert len(vectors.unique(dim=0)) == len(vectors)


# ── the slides ────────────────────────────────────────────────────────────────────────────


def test_the_slides_own_numbers_are_shown_as_printed():
    slides = slides_arithmetic()
    weights = shown(slides, "weights", "A")
    assert [[f"{value:.3f}" for value in row] for row in weights.tolist()] == [
        [f"{value:.3f}" for value in row] for row in SLIDE_WEIGHTS
    ]
    assert shown(slides, "weights", "Σ")[:, 0].tolist() == [1.0, 1.0, 1.001, 1.0, 1.0, 1.001]
    assert "1.001" in slides.stages[1].sentence
    assert (weights.argmax(-1) == torch.arange(6)).all()
    assert [stage.name for stage in slides.stages] == ["input", "weights"]
    assert slides.shuffle is None


def test_the_slides_sums_add_up():
    for row, cat in enumerate((1, 5)):
        sums = [e + p for e, p in zip(SLIDE_VECTORS[cat], SLIDE_PLACES[row], strict=True)]
        assert sums == pytest.approx(SLIDE_SUMS[row], abs=1e-9)
    assert SLIDE_VECTORS[1] == SLIDE_VECTORS[5]


def test_the_slides_waves_are_cut_off_not_rounded():
    waves = shown(slides_arithmetic(), "input", "PE")
    exact = sinusoids(2, 512)[:, [0, 1, 2, 3, 510, 511]]
    torch.testing.assert_close((exact * 1e4).trunc() / 1e4, waves, atol=1e-12, rtol=0)


# ── the contract ──────────────────────────────────────────────────────────────────────────


def fields_of(interface):
    body = re.search(rf"export interface {interface} {{\n(.*?)\n}}", CONTRACT, re.DOTALL)[1]
    return re.findall(r"^  (\w+):", body, re.MULTILINE)


@pytest.mark.parametrize("source", ["toy", "slides", "additive", "dot"])
def test_the_json_is_what_the_page_reads(source):
    found = {"toy": toy_arithmetic, "slides": slides_arithmetic}.get(
        source, lambda: model_arithmetic(writes(RECURRENT[source]), TEXT)
    )()
    whole = json.loads(found.model_dump_json())
    assert list(whole) == fields_of("Arithmetic")
    for stage in whole["stages"]:
        assert list(stage) == fields_of("Stage")
        for matrix in stage["matrices"]:
            assert list(matrix) == fields_of("Matrix")
            assert matrix["values"]["shape"] == [len(matrix["rows"]), len(matrix["columns"])]
        if stage["terms"]:
            assert list(stage["terms"]) == fields_of("Terms")
    if whole["shuffle"]:
        assert list(whole["shuffle"]) == fields_of("Shuffle")
        assert list(whole["shuffle"]["with"]) == ["before", "after", "difference"]
    names = re.search(r"export type StageName =(.*?);", CONTRACT, re.DOTALL)[1]
    assert {stage["name"] for stage in whole["stages"]} <= set(re.findall(r'"(\w+)"', names))


def test_python_gets_the_same_dictionary():
    assert "with" in Arithmetic.model_dump(toy_arithmetic())["shuffle"]
