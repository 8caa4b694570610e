"""What every translating family promises. A family added to FAMILIES is tested here with one more line in SMALL."""

from itertools import chain, pairwise, product

import pytest
import torch

from dragoman import models
from dragoman.decoding.beam import SearchConfig, beam_search
from dragoman.decoding.watch import watching_turns
from dragoman.models import FAMILIES
from dragoman.models.marian import MarianConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.state import select_rows
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.modules.attention import watching
from dragoman.text.batches import make_batch
from dragoman.text.special import SpecialIds
from dragoman.training.loop import train
from dragoman.training.objectives import translation_loss
from dragoman.training.optimizers import make_optimizer

V = 11
SPECIAL = SpecialIds()
SMALL = {
    "transformer": TransformerConfig(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=2, layers=2, hidden=32, dropout=0.0
    ),
    "transformer-norm-first": TransformerConfig(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=2, layers=2, hidden=32, dropout=0.0, norm_first=True
    ),
    "transformer-deep": TransformerConfig(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=2, layers=2, decoder_layers=1, hidden=32,
        dropout=0.0, norm_first=True,
    ),
    "transformer-learned-gelu-untied": TransformerConfig(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=4, layers=1, hidden=32, dropout=0.0,
        positions="learned", longest=32, activation="gelu", tied="none",
    ),
    "t5": T5Config(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=2, head_width=8, layers=2, hidden=32, dropout=0.0,
        buckets=8, furthest=12,
    ),
    "t5-gated-untied": T5Config(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=4, head_width=6, layers=2, decoder_layers=1,
        hidden=24, dropout=0.0, gated=True, activation="gelu-tanh", tied="inputs", scaled=True,
    ),
    "marian": MarianConfig(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=2, layers=2, hidden=32, dropout=0.0,
    ),
    "marian-apart": MarianConfig(
        source_vocabulary=V, target_vocabulary=V, width=16, heads=2, decoder_heads=4, layers=1, decoder_layers=2,
        hidden=32, decoder_hidden=24, dropout=0.0, activation="relu", scaled=False, tied="target",
    ),
    **{
        f"{cell}-{attention}": RnnConfig(
            source_vocabulary=V, target_vocabulary=V, cell=cell, attention=attention,
            width=16 if attention != "none" else 40, embedding=16,  # one vector must hold the sentence
            dropout=0.0, rank=4,
        )
        for cell in ("rnn", "gru", "lstm")
        for attention in ("none", "additive", "dot", "bilinear", "low-rank", "scaled")
    },
    "lstm-fed-two-layers": RnnConfig(
        source_vocabulary=V, target_vocabulary=V, attention="dot", input_feeding=True, layers=2, width=16,
        embedding=12, dropout=0.0, tied="none",
    ),
    "gru-one-way-additive-two-layers": RnnConfig(
        source_vocabulary=V, target_vocabulary=V, cell="gru", attention="additive", two_way=False, layers=2, width=16,
        embedding=12, dropout=0.0, tied="target",
    ),
}  # fmt: skip
PAIRS = [([4, 5, 6], [7, 8]), ([9, 10], [4, 5, 6, 7]), ([10, 4, 5, 6], [9])]
BATCH = make_batch(PAIRS, SPECIAL)


@pytest.fixture(params=SMALL.values(), ids=SMALL)
def model(request):
    return models.build(request.param).eval()


@pytest.fixture
def exact(model):
    return model.double()


def begin(model, batch=BATCH):
    return model.encode(batch.source, batch.source_mask)


def search(model, state, longest, config):
    return beam_search(model, state, longest, SPECIAL, config)


def test_every_family_is_tested():
    assert {type(config) for config in SMALL.values()} == {family.config for family in FAMILIES["translate"].values()}


def test_a_config_survives_a_round_trip(model):
    assert models.from_dict(models.to_dict(model.config)) == model.config


@pytest.mark.parametrize("cuts", [[0, 1, 2, 3, 4, 5], [0, 2, 3, 5], [0, 4, 5], [0, 5]], ids=str)
def test_writing_in_any_chunks_equals_writing_at_once(exact, cuts):
    whole = exact.decode(BATCH.target_in, begin(exact)).logits
    state, parts = begin(exact), []
    for a, b in pairwise(cuts):
        logits, state = exact.decode(BATCH.target_in[:, a:b], state)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-10, rtol=0)


def test_forward_is_decode_after_encode(exact):
    whole = exact(BATCH.source, BATCH.source_mask, BATCH.target_in)
    torch.testing.assert_close(exact.decode(BATCH.target_in, begin(exact)).logits, whole, atol=0, rtol=0)
    states = exact.states(BATCH.source, BATCH.source_mask, BATCH.target_in)
    torch.testing.assert_close(exact.scores(states), whole, atol=0, rtol=0)


def test_a_later_token_changes_no_earlier_logit(model):
    changed = BATCH.target_in.clone()
    changed[:, 3] = 10
    a = model.decode(BATCH.target_in, begin(model)).logits
    b = model.decode(changed, begin(model)).logits
    assert torch.equal(a[:, :3], b[:, :3])
    assert not torch.allclose(a[:, 3:], b[:, 3:])


def test_the_future_has_exactly_no_gradient(model):
    """∂ logits at place 1 / ∂ embedding of the token at place 3 is zero, not nearly."""
    caught = []
    handle = model.target_embedding.register_forward_hook(lambda _m, _i, out: caught.append(out) or out)
    logits = model.decode(BATCH.target_in, begin(model)).logits
    handle.remove()
    (gradient,) = torch.autograd.grad(logits[:, 1].sum(), caught[-1])
    assert gradient[:, 2:].abs().max() == 0
    assert gradient[:, :2].abs().max() > 0


def test_a_sentence_alone_equals_itself_in_a_batch(exact):
    together = exact(BATCH.source, BATCH.source_mask, BATCH.target_in)
    for row, pair in enumerate(PAIRS):
        one = make_batch([pair], SPECIAL)
        alone = exact(one.source, one.source_mask, one.target_in)
        torch.testing.assert_close(together[row, : one.target_in.shape[1]], alone[0], atol=1e-10, rtol=0)


def test_what_stands_in_the_padding_changes_nothing(exact):
    garbage = BATCH._replace(source=BATCH.source.masked_fill(~BATCH.source_mask, 7))
    torch.testing.assert_close(
        exact(garbage.source, garbage.source_mask, garbage.target_in),
        exact(BATCH.source, BATCH.source_mask, BATCH.target_in),
        atol=1e-10,
        rtol=0,
    )


def test_a_nan_in_the_padding_changes_nothing(exact):
    whole = exact(BATCH.source, BATCH.source_mask, BATCH.target_in)
    with torch.no_grad():
        exact.source_embedding.table.weight[10] = torch.nan
    spoiled = BATCH.source.masked_fill(~BATCH.source_mask, 10)
    rows = [1]  # the one row that is padded and does not hold the token itself
    state = exact.encode(spoiled[rows].masked_fill(BATCH.source[rows] == 10, 9), BATCH.source_mask[rows])
    clean = exact.encode(BATCH.source[rows].masked_fill(BATCH.source[rows] == 10, 9), BATCH.source_mask[rows])
    real = BATCH.source_mask[rows][0]
    assert whole.isfinite().all()
    for spoiled_memory, clean_memory in zip(state.source, clean.source, strict=True):
        assert torch.equal(spoiled_memory.values[:, :, real], clean_memory.values[:, :, real])
        assert spoiled_memory.values.isfinite().all()


def test_state_rows_can_be_reordered(exact):
    rows = torch.tensor([2, 0, 1, 1])
    _, state = exact.decode(BATCH.target_in[:, :2], begin(exact))
    a = exact.decode(BATCH.target_in[:, 2:3], state).logits[rows]
    b = exact.decode(BATCH.target_in[rows, 2:3], select_rows(state, rows)).logits
    torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


def score(model, batch, tokens):
    [found] = scores(model, batch, [tokens])
    return found


def scores(model, batch, texts):
    """log p of each text; all are equally long, and translate the one sentence of the batch."""
    rows = len(texts)
    written = torch.tensor([[SPECIAL.start, *tokens] for tokens in texts])
    right = torch.tensor([[*tokens, SPECIAL.end] for tokens in texts])
    logits = model(batch.source.expand(rows, -1), batch.source_mask.expand(rows, -1), written)
    return logits.log_softmax(-1).gather(2, right[..., None]).sum(dim=(1, 2)).tolist()


def test_a_beam_of_the_whole_vocabulary_finds_the_argmax(exact):
    """With beam width V and at most two tokens the search is exhaustive: nothing may beat what it found."""
    one = make_batch([([4, 5, 6], [6])], SPECIAL)
    words = [w for w in range(V) if w != SPECIAL.end and w not in SPECIAL.never_written()]
    found = search(exact, begin(exact, one), [2], SearchConfig(beam=V, nbest=5, length_penalty=0.0))[0]
    texts = [[list(text) for text in product(words, repeat=length)] for length in range(3)]
    scored = [zip(scores(exact, one, equally_long), equally_long, strict=True) for equally_long in texts]
    best = sorted(chain(*scored), reverse=True)[:5]
    assert [h.tokens for h in found] == [tokens for _, tokens in best]
    assert [h.log_prob for h in found] == pytest.approx([log_prob for log_prob, _ in best], abs=1e-9)


def test_every_hypothesis_has_the_score_the_model_itself_gives_it(exact):
    """Search keeps books on states, rows and scores; scoring the finished text afresh audits them all."""
    config = SearchConfig(beam=5, nbest=5, length_penalty=4.0)  # long outputs, many reorderings
    for row, hypotheses in enumerate(search(exact, begin(exact), [3, 6, 9], config)):
        one = make_batch([(PAIRS[row][0], [])], SPECIAL)
        assert len(hypotheses) == len({tuple(h.tokens) for h in hypotheses}) == 5  # no text twice
        assert hypotheses == sorted(hypotheses, key=lambda h: -h.score)
        for h in hypotheses:
            assert h.log_prob == pytest.approx(score(exact, one, h.tokens), abs=1e-9)
            assert len(h.tokens) <= [3, 6, 9][row]


def test_two_half_batches_give_the_gradient_of_one(exact):
    gradients = []
    for split in [[BATCH], [make_batch(PAIRS[:1], SPECIAL), make_batch(PAIRS[1:], SPECIAL)]]:
        optimizer = torch.optim.SGD(exact.parameters(), lr=0.0)
        next(train(exact, [split], translation_loss, optimizer, rate=lambda _: 0.0, clip=1e9))
        gradients.append([p.grad.clone() for p in exact.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-10, rtol=0)


def test_watching_changes_nothing(exact):
    """Watched, every part takes its written-out path: attention without the fused kernel, cells step by step."""
    plain = exact.decode(BATCH.target_in, begin(exact)).logits
    with watching(exact), watching_turns(exact):
        watched = exact.decode(BATCH.target_in, begin(exact)).logits
    torch.testing.assert_close(watched, plain, atol=1e-10, rtol=0)


def test_attention_maps_have_the_names_of_the_modules(model):
    with watching(model) as maps:
        model.decode(BATCH.target_in, begin(model))
    if isinstance(model.config, RnnConfig):
        assert set(maps) == (set() if model.config.attention == "none" else {"source_attention"})
        steps = sum(looked.weights.shape[2] for looked in maps.get("source_attention", []))
        assert steps == (0 if model.config.attention == "none" else BATCH.target_in.shape[1])
        return
    layers = model.config.layers
    written = getattr(model.config, "decoder_layers", None) or layers
    expected = {f"encoder.blocks.{i}.self_attention" for i in range(layers)}
    expected |= {f"decoder.blocks.{i}.{kind}_attention" for i in range(written) for kind in ("self", "source")}
    assert set(maps) == expected
    for [looked] in maps.values():
        torch.testing.assert_close(looked.weights.sum(-1), torch.ones(looked.weights.shape[:-1]))


@pytest.mark.parametrize("order", [1, -1], ids=["copy", "reverse"])
def test_it_learns_to_copy_and_to_reverse(model, order, unchecked):
    if order == 1 and getattr(model.config, "attention", "none") != "none":
        pytest.skip("to attention over recurrent states, copying is reversing")
    generator = torch.Generator().manual_seed(1)
    words = [torch.randint(4, V, (n % 5 + 1,), generator=generator).tolist() for n in range(240)]
    batches = [[make_batch([(w, w[::order]) for w in words[k::12]], SPECIAL)] for k in range(12)] * 30
    optimizer = make_optimizer("adam", model, 8e-3)
    steps = train(model, batches, translation_loss, optimizer, rate=lambda n: 1e-2 * (1 - n / (len(batches) + 1)))
    losses = [next(steps).nats_per_token for _ in range(12)]
    with unchecked():  # the other epochs are of the same batches
        while sum(losses[-12:]) / 12 > 0.03 * losses[0] and (step := next(steps, None)):  # some learn in half the time
            losses.append(step.nats_per_token)
    assert losses[-1] < 0.35 * losses[0]
    model.eval()
    seen = make_batch([(w, []) for w in words[:24]], SPECIAL)
    found = search(model, model.encode(seen.source, seen.source_mask), [8] * 24, SearchConfig(beam=2))
    right = sum(hypotheses[0].tokens == w[::order] for hypotheses, w in zip(found, words, strict=False))
    assert right >= 18


def test_the_first_target_token_depends_on_every_source_token(model):
    for position in range(3):
        changed = BATCH.source.clone()
        changed[0, position] = 10
        a = model(BATCH.source, BATCH.source_mask, BATCH.target_in)[0, 0]
        b = model(changed, BATCH.source_mask, BATCH.target_in)[0, 0]
        assert not torch.allclose(a, b)


def test_encoder_states_see_in_both_directions(model):
    if isinstance(model.config, RnnConfig) and (model.config.attention == "none" or not model.config.two_way):
        pytest.skip("has no states of the source's words, or was asked to read forwards only")
    changed = BATCH.source.clone()
    changed[0, 2] = 10  # a later word …
    a, b = (model.encode(source, BATCH.source_mask).source[0].keys[0, :, 0] for source in (BATCH.source, changed))
    assert not torch.allclose(a, b)  # … changes what is known of the first
