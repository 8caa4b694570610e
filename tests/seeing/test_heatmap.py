"""The page is one file, loads nothing, and shows tokens as text."""

import re

import torch

from dragoman.decoding.maps import AttentionMap
from dragoman.seeing.heatmap import Shown, attention_page


def a_map(layer="decoder.blocks.0.source_attention"):
    weights = torch.tensor([[[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    return AttentionMap(layer, weights, ["<script>alert(1)</script>", "b"], ["x & y", '"z"'])


def test_tokens_are_text_and_never_markup():
    page = attention_page("A <title>", "note", [Shown("<b>source</b>", "out", [a_map()])])
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "x &amp; y" in page


def test_nothing_is_loaded_from_elsewhere():
    page = attention_page("t", "n", [Shown("s", "o", [a_map()])])
    assert not re.search(r"(src|href)=|https?:|url\(|@import", page)
    assert "default-src 'none'" in page


def test_every_weight_is_a_cell_with_its_number():
    page = attention_page("t", "n", [Shown("s", "o", [a_map(), a_map("decoder.blocks.1.source_attention")])])
    large = page.split("<details>")[0]
    assert re.findall(r"--w:([\d.]+)", large) == ["0.375", "0.625", "0.750", "0.250"]  # the mean of the two heads
    assert page.count('class="small"') == 4


def test_a_model_draws_its_page(reverser):
    text = "a b c"
    page = attention_page("t", "n", [Shown(text, "c b a", reverser.look(text, "c b a"))])
    assert page.count("<figure>") == 2 * 4
