"""What every family that only reads promises. A family added to FAMILIES is tested here with one more line in SMALL."""

import pytest
import torch

from dragoman import models
from dragoman.models import FAMILIES
from dragoman.models.bert import BertConfig
from dragoman.modules.attention import watching
from dragoman.text.batches import make_reading
from dragoman.text.special import SpecialIds

V = 12
SPECIAL = SpecialIds(mask=4)
SMALL = {
    "bert": BertConfig(vocabulary=V, width=16, heads=2, layers=2, hidden=32, longest=10, dropout=0.0),
    "bert-norm-first": BertConfig(
        vocabulary=V, width=16, heads=4, layers=1, hidden=32, longest=10, dropout=0.0, norm_first=True,
        activation="relu",
    ),
}  # fmt: skip
TEXTS = [[5, 6, 4, 8], [9, 4], [4, 10, 11, 5, 6, 7]]
READING = make_reading(TEXTS, SPECIAL)


@pytest.fixture(params=SMALL.values(), ids=SMALL)
def model(request):
    return models.build(request.param).eval().double()


def test_every_family_is_tested(model):
    assert {type(config) for config in SMALL.values()} == {family.config for family in FAMILIES["fill"].values()}
    assert models.from_dict(models.to_dict(model.config)) == model.config


def test_a_text_alone_equals_itself_in_a_batch(model):
    together = model(*READING)
    for row, text in enumerate(TEXTS):
        alone = model(*make_reading([text], SPECIAL))
        torch.testing.assert_close(together[row, : len(text) + 2], alone[0], atol=1e-10, rtol=0)


def test_what_stands_in_the_padding_changes_nothing(model):
    garbage = READING._replace(tokens=READING.tokens.masked_fill(~READING.real, 7))
    a, b = model(*READING), model(*garbage)
    torch.testing.assert_close(a[READING.real], b[READING.real], atol=1e-10, rtol=0)


def test_it_sees_in_both_directions_and_nothing_of_the_padding(model):
    caught = []
    handle = model.reader.embedding.register_forward_hook(lambda _m, _i, out: caught.append(out) or out)
    logits = model(*READING)
    handle.remove()
    (gradient,) = torch.autograd.grad(logits[0, 2].sum(), caught[0])
    seen = gradient[0].abs().amax(dim=1)
    assert (seen[READING.real[0]] > 0).all()
    assert (seen[~READING.real[0]] == 0).all()  # exactly


def test_a_second_segment_is_another_text(model):
    kinds = torch.zeros_like(READING.tokens)
    torch.testing.assert_close(model(*READING, kinds), model(*READING))
    kinds[:, 2:] = 1
    assert not torch.allclose(model(*READING, kinds), model(*READING))


def test_the_states_that_are_asked_for_score_as_the_whole_does(model):
    asked = READING.tokens == SPECIAL.mask
    states = model.states(*READING, asked)
    torch.testing.assert_close(model.scores(states), model(*READING)[asked])


def test_a_text_beyond_the_last_position_is_refused(model):
    with pytest.raises(ValueError, match="learned 10 positions and was asked for 11"):
        model(*make_reading([[5] * 9], SPECIAL))


def test_attention_maps_are_distributions(model):
    with watching(model) as maps:
        model(*READING)
    assert len(maps) == model.config.layers
    for [looked] in maps.values():
        weights = looked.weights
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1], dtype=weights.dtype))
