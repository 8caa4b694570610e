"""What every classifier promises. A new family is held to it by one more line in SMALL."""

import pytest
import torch

from dragoman import models
from dragoman.models import FAMILIES
from dragoman.models.bag import BagConfig, PairEmbedding
from dragoman.models.bert_classifier import BertClassifierConfig
from dragoman.models.rnn_classifier import RnnClassifierConfig
from dragoman.modules.attention import watching
from dragoman.modules.pooling import AttentionPool, mean_pool
from dragoman.text.batches import LabelledBatch, pad
from dragoman.training.loop import train
from dragoman.training.objectives import ClassifyingLoss
from dragoman.training.optimizers import make_optimizer

V, CLASSES = 11, ("bad", "good", "neither")
COMMON = {"vocabulary": V, "classes": CLASSES, "width": 16, "dropout": 0.0}
BERT = {**COMMON, "heads": 2, "layers": 2, "hidden": 32, "longest": 12}
BARE = {"word_dropout": 0.0}
SMALL = {
    "bag-mean": BagConfig(**COMMON, **BARE, pooling="mean"),
    "bag-attention": BagConfig(**COMMON, **BARE, pooling="attention"),
    "bag-heads": BagConfig(**COMMON, **BARE, pooling="attention", heads=4),
    "bag-pairs": BagConfig(**COMMON, **BARE, pooling="attention", pairs=64, pair_dropout=0.0),
    "bag-hidden": BagConfig(**COMMON, **BARE, hidden=8),
    "rnn-last": RnnClassifierConfig(**COMMON, **BARE, embedding=12, pooling="last"),
    "gru-mean": RnnClassifierConfig(**COMMON, **BARE, embedding=12, cell="gru", layers=2, pooling="mean"),
    "plain-attention": RnnClassifierConfig(**COMMON, **BARE, embedding=12, cell="rnn", pooling="attention"),
    "bert-first": BertClassifierConfig(**BERT),
    "bert-mean": BertClassifierConfig(**BERT, pooling="mean"),
}
TEXTS = [[1, 4, 5, 6, 2], [1, 10, 9, 2, 8, 7, 6, 2], [1, 2]]
TOKENS, REAL = pad(TEXTS, 0)


@pytest.fixture(params=SMALL.values(), ids=SMALL)
def model(request):
    return models.build(request.param).eval()


@pytest.fixture
def exact(model):
    return stirred(model).double()


def stirred(model):
    """Away from where training starts: a query of zero, and biases of zero, would hide mistakes."""
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return model


READ_TEXTS = {name: family for name, family in FAMILIES["classify"].items() if family.reads == "text"}


def test_every_family_is_tested(model):
    assert {type(config) for config in SMALL.values()} == {family.config for family in READ_TEXTS.values()}
    assert models.from_dict(models.to_dict(model.config)) == model.config
    assert all(field.description for field in type(model.config).model_fields.values())
    assert model.config.products_per_token() > 0
    assert "3 classes" in model.config.shape()


@pytest.mark.parametrize("family", READ_TEXTS.values(), ids=READ_TEXTS)
def test_presets_can_be_built(family):
    assert set(family.presets) == {"tiny", "small", "base"}
    for preset in family.presets.values():
        family.config(vocabulary=V, classes=CLASSES, **preset)


def test_a_score_for_every_class(model):
    assert model(TOKENS, REAL).shape == (3, 3)


def test_a_text_alone_equals_itself_beside_others(exact):
    together = exact(TOKENS, REAL)
    for row, text in enumerate(TEXTS):
        alone = exact(*pad([text], 0))
        torch.testing.assert_close(alone[0], together[row], atol=1e-10, rtol=0)


def test_padding_is_never_looked_at(exact):
    others = TOKENS.masked_fill(~REAL, 5)
    longer, real = torch.cat([others, torch.full((3, 3), 7)], dim=1), torch.cat([REAL, torch.zeros(3, 3).bool()], dim=1)
    torch.testing.assert_close(exact(longer, real), exact(TOKENS, REAL), atol=1e-10, rtol=0)


def test_every_token_is_looked_at(exact):
    """Both ways: no token of a text is without effect on its class."""
    caught = []
    table = exact.reader.embedding if hasattr(exact, "reader") else exact.embedding
    handle = table.register_forward_hook(lambda _m, _i, out: caught.append(out) or out)
    scores = exact(TOKENS, REAL)
    handle.remove()
    (gradient,) = torch.autograd.grad(scores[1].sum(), caught[-1])
    assert (gradient[1].abs().amax(dim=-1) > 0).all()
    assert gradient[[0, 2]].abs().max() == 0


def test_its_weights_are_shown_and_sum_to_one(model):
    with watching(stirred(model)) as seen:
        model(TOKENS, REAL)
    shown = [looked.weights for found in seen.values() for looked in found]
    assert bool(shown) == (getattr(model.config, "pooling", "") == "attention" or hasattr(model, "reader"))
    for weights in shown:
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))
        assert (weights.masked_select(~REAL[:, None, None, :].expand_as(weights)) == 0).all()


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_with_a_zero_query_is_the_mean(heads):
    """Lecture 004: mean pooling is the special case where all weights are equal. It is where training starts."""
    states = torch.randn(3, 8, 16, dtype=torch.float64)
    pool = AttentionPool(16, heads).double()
    torch.testing.assert_close(pool(states, REAL), mean_pool(states, REAL), atol=1e-10, rtol=0)
    pool.query.data.normal_()
    assert (pool(states, REAL) - mean_pool(states, REAL)).abs().max() > 0.1


def test_each_head_weighs_its_own_part_of_the_states():
    states = torch.randn(3, 8, 16, dtype=torch.float64)
    pool = AttentionPool(16, 2).double()
    pool.query.data[:8].normal_()  # the second half of the query stays zero: its head takes the mean
    assert (pool(states, REAL) - mean_pool(states, REAL))[:, :8].abs().max() > 0.1
    torch.testing.assert_close(pool(states, REAL)[:, 8:], mean_pool(states, REAL)[:, 8:], atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["bag-mean", "bag-attention", "bag-heads"])
def test_a_bag_knows_no_order_of_words(name):
    model = stirred(models.build(SMALL[name])).double()
    torch.testing.assert_close(model(TOKENS[:1], REAL[:1]), model(TOKENS[:1].flip(1), REAL[:1].flip(1)))


def test_with_pairs_a_bag_knows_neighbours_and_no_more():
    """Runs that meet at the same tokens may change places: the same pairs stand in both texts."""
    model = stirred(models.build(SMALL["bag-pairs"])).double()
    one, same_pairs, others = torch.tensor([[1, 4, 5, 4, 6, 4, 2], [1, 4, 6, 4, 5, 4, 2], [1, 4, 4, 5, 4, 6, 2]])
    all_real = torch.ones(1, 7, dtype=torch.bool)
    torch.testing.assert_close(model(one[None], all_real), model(same_pairs[None], all_real))
    assert (model(one[None], all_real) - model(others[None], all_real)).abs().max() > 1e-3


def test_pairs_begin_by_saying_nothing():
    plain, paired = (models.build(SMALL[name]).eval() for name in ("bag-attention", "bag-pairs"))
    paired.load_state_dict(plain.state_dict(), strict=False)
    torch.testing.assert_close(plain(TOKENS, REAL), paired(TOKENS, REAL))


def test_the_second_text_is_another_segment():
    model = stirred(models.build(SMALL["bert-first"]))
    expected = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    assert torch.equal(model.segments(TOKENS[1:2]), expected)
    own = model(TOKENS[1:2], REAL[1:2])
    torch.testing.assert_close(own, model(TOKENS[1:2], REAL[1:2], expected))
    assert (own - model(TOKENS[1:2], REAL[1:2], torch.zeros_like(expected))).abs().max() > 1e-3


def test_it_learns_a_rule(model):
    """Texts that hold a 4 are of the first class, those with a 5 of the second, the others of the third."""
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(6, V, (192, 7), generator=random)
    wanted = torch.arange(192) % 3
    places = torch.randint(0, 7, (192,), generator=random)
    marked = wanted < 2
    tokens[marked, places[marked]] = 4 + wanted[marked]
    batch = LabelledBatch(tokens, torch.ones_like(tokens, dtype=torch.bool), wanted)
    optimizer = make_optimizer("adam", model, 1e-2)
    steps = train(model, [[batch]] * 100, ClassifyingLoss(), optimizer, rate=lambda n: 1e-2 * min(1, n / 10))
    losses = [step.nats_per_token for step in steps]
    assert losses[-1] < 0.4 < losses[0]


def test_two_half_batches_give_the_gradient_of_one(exact):
    def gradient(batches):
        exact.zero_grad()
        for tokens, real, wanted in batches:
            ClassifyingLoss(0.1)(exact, LabelledBatch(tokens, real, wanted)).nats.backward()
        return [p.grad.clone() for p in exact.parameters() if p.grad is not None]

    wanted = torch.tensor([0, 2, 1])
    whole = gradient([(TOKENS, REAL, wanted)])
    halves = gradient([(TOKENS[:1], REAL[:1], wanted[:1]), (TOKENS[1:], REAL[1:], wanted[1:])])
    for a, b in zip(whole, halves, strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=0)


@pytest.mark.parametrize("rows", [4000, 5000, 12_000, 16_000, 32_000])
def test_pairs_of_frequent_tokens_spread_over_the_vectors(rows):
    """Frequent tokens have small ids. 10,000 pairs thrown at random would hit so many of the vectors."""
    pairs = PairEmbedding(rows, 1)
    with torch.no_grad():
        pairs.table.weight.copy_(torch.arange(rows)[:, None])
    first, second = torch.meshgrid(torch.arange(100), torch.arange(100), indexing="ij")
    hit = len(pairs(torch.stack([first.flatten(), second.flatten()], dim=1))[:, 1].unique())
    assert hit > 0.9 * rows * (1 - (1 - 1 / rows) ** 10_000)
