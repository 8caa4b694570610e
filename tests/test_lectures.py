"""The lectures' own numbers, and what they claim of them."""

import math

import pytest
import torch

from dragoman.models.transformer import PRESETS, Transformer, TransformerConfig
from dragoman.modules.attention import Attention, scaled_dot
from dragoman.modules.positions import sinusoids


def test_the_first_position_is_zero_one_zero_one():
    assert torch.equal(sinusoids(1, 512)[0], torch.tensor([0.0, 1.0] * 256, dtype=torch.float64))


def test_the_second_position_has_the_numbers_of_lecture_001():
    second = sinusoids(2, 512)[1]
    lecture = torch.tensor([0.8414, 0.5403, 0.8218, 0.5696], dtype=torch.float64)
    torch.testing.assert_close(second[:4], lecture, atol=1e-4, rtol=0)  # the lecture cuts off after four digits
    torch.testing.assert_close(second[-2:], torch.tensor([0.0001, 0.9999], dtype=torch.float64), atol=1e-4, rtol=0)
    exact = torch.tensor([0.841471, 0.540302, 0.821856, 0.569695], dtype=torch.float64)
    torch.testing.assert_close(second[:4], exact, atol=1e-6, rtol=0)


@pytest.mark.parametrize("shift", [1, 7, 100])
def test_a_shift_rotates_every_pair_of_numbers(shift):
    """PE(pos + k) = R(k) PE(pos): relative positions are a linear map, the same everywhere."""
    table = sinusoids(300, 64)
    rates = 10000.0 ** (-torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    sine, cosine = (shift * rates).sin(), (shift * rates).cos()
    s, c = table[:-shift, 0::2], table[:-shift, 1::2]
    rotated = torch.stack([s * cosine + c * sine, c * cosine - s * sine], dim=-1).flatten(-2)
    torch.testing.assert_close(rotated, table[shift:], atol=1e-6, rtol=0)


def test_no_two_positions_are_alike_and_all_are_bounded():
    table = sinusoids(2000, 128)
    assert table.abs().max() <= 1
    distances = torch.cdist(table, table) + torch.eye(2000, dtype=torch.float64) * 9
    assert distances.min() > 0.1


def test_dividing_by_the_root_keeps_the_variance_at_one():
    """q·k of parts with variance 1 has variance d; divided by √d it has variance 1."""
    for d in (16, 256):
        q, k = torch.randn(1, 1, 200, d), torch.randn(1, 1, 400, d)
        assert (q @ k.mT).var().item() == pytest.approx(d, rel=0.1)
        assert scaled_dot(q, k).var().item() == pytest.approx(1, rel=0.1)


def test_self_attention_without_positions_is_equivariant_not_invariant():
    """Permute the words and the outputs are permuted with them; only their mean stays."""
    attention, x = Attention(score=scaled_dot), torch.randn(1, 6, 16, dtype=torch.float64)
    shuffle = torch.randperm(6)
    y, shuffled = attention(x, attention.remember(x)), attention(x[:, shuffle], attention.remember(x[:, shuffle]))
    torch.testing.assert_close(shuffled, y[:, shuffle])
    assert not torch.allclose(shuffled, y)
    torch.testing.assert_close(shuffled.mean(1), y.mean(1))


def test_parameter_free_attention_has_no_parameter():
    assert list(Attention(score=scaled_dot).parameters()) == []


def test_base_is_the_papers_size_to_the_digit():
    """Counted by hand from the paper: 512 wide, 6+6 blocks, 2048 inside, one table of 37,000 for all three uses."""
    d, f, vocabulary = 512, 2048, 37_000
    attention, feedforward, norm = 4 * (d * d + d), (d * f + f) + (f * d + d), 2 * d
    encoder, decoder = attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm
    expected = 6 * encoder + 6 * decoder + vocabulary * d
    with torch.device("meta"):
        model = Transformer(
            TransformerConfig(source_vocabulary=vocabulary, target_vocabulary=vocabulary, **PRESETS["base"])
        )
    assert sum(p.numel() for p in model.parameters()) == expected == 63_082_496  # "65 × 10⁶" in the paper's table 3
    assert (model.config.width, model.config.layers, model.config.heads, model.config.hidden) == (512, 6, 8, 2048)
    assert model.config.dropout == 0.1
    assert not model.config.norm_first


def test_softmax_needs_the_largest_score_subtracted():
    scores = torch.tensor([1000.0, 999.0])
    assert (scores.exp() / scores.exp().sum()).isnan().all()
    assert scores.softmax(0)[0] == pytest.approx(1 / (1 + math.exp(-1)))
