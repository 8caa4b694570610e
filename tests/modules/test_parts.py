"""Positions, embeddings, dropout and blocks."""

import pytest
import torch

from dragoman.modules.dropout import Dropout
from dragoman.modules.embeddings import TokenEmbedding, TokenScores
from dragoman.modules.positions import LearnedPositions, SinusoidalPositions, sinusoids


def test_sinusoidal_positions_go_on_for_any_length():
    positions = SinusoidalPositions(16, ready=4)
    whole = positions(0, 50).clone()
    torch.testing.assert_close(whole, sinusoids(50, 16).float())
    torch.testing.assert_close(positions(20, 30), whole[20:])


def test_sinusoidal_positions_are_exact_in_float64():
    positions = SinusoidalPositions(16, ready=8).double()
    assert torch.equal(positions(0, 8), sinusoids(8, 16))
    assert torch.equal(positions(6, 20), sinusoids(26, 16)[6:])


def test_sinusoidal_positions_cost_no_parameter():
    assert list(SinusoidalPositions(16).parameters()) == []
    assert SinusoidalPositions(16).state_dict() == {}


def test_learned_positions_end_with_a_clear_word():
    positions = LearnedPositions(8, 4)
    assert positions(3, 5).shape == (5, 4)
    with pytest.raises(ValueError, match="learned 8 positions and was asked for 9; shorten the text or train with"):
        positions(3, 6)


def test_embeddings_are_scaled_as_they_are_read_and_not_as_they_score():
    embedding = TokenEmbedding(11, 16)
    scores = TokenScores(11, 16, tied_to=embedding)
    ids = torch.tensor([[3]])
    torch.testing.assert_close(embedding(ids)[0, 0], 4 * embedding.table.weight[3])
    torch.testing.assert_close(scores(embedding(ids))[0, 0], 4 * embedding.table.weight @ embedding.table.weight[3])
    assert scores.table is embedding.table


def test_scaled_embeddings_are_as_large_as_positions():
    torch.manual_seed(0)
    vectors = TokenEmbedding(1000, 512)(torch.arange(1000)[None])
    assert vectors.norm(dim=-1).mean().item() == pytest.approx(512**0.5, rel=0.05)
    assert sinusoids(100, 512).norm(dim=-1).mean().item() == pytest.approx(256**0.5, rel=1e-6)


def test_dropout_zeroes_its_share_and_keeps_the_mean():
    dropout, x = Dropout(0.25), torch.ones(400, 500)
    y = dropout(x)
    assert (y == 0).float().mean() == pytest.approx(0.25, abs=0.005)
    assert y.mean() == pytest.approx(1.0, abs=0.01)
    assert y.unique().numel() == 2


def test_dropout_is_off_outside_training():
    x = torch.randn(3, 4)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_dropout_is_decided_by_the_seed():
    dropout, x = Dropout(0.5), torch.ones(64)
    torch.manual_seed(7)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)


def test_dropout_scales_the_gradient_as_it_scales_the_value():
    x = torch.ones(1000, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
