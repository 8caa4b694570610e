"""Batches: which pairs, in which order, laid out how."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.text.batches import BatchOrder, make_batch, pad, round_up
from dragoman.text.index import PairIndex, write_index
from dragoman.text.special import SpecialIds

lengths_of_pairs = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=300)


@given(pairs=lengths_of_pairs, budget=st.integers(100, 2000), epoch=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_an_epoch_holds_every_pair_exactly_once(pairs, budget, epoch):
    order = BatchOrder(np.array(pairs), budget, seed=3)
    rows = np.concatenate([order.rows(epoch, k) for k in range(len(order))])
    assert sorted(rows.tolist()) == list(range(len(pairs)))


@given(pairs=lengths_of_pairs, budget=st.integers(300, 2000))
@settings(max_examples=40, deadline=None)
def test_a_batch_keeps_to_its_budget(pairs, budget):
    """The padded rectangle may pass it by a last pair and by what a cell's border brings, not by more."""
    order, lengths = BatchOrder(np.array(pairs), budget, seed=0), np.array(pairs)
    for k in range(len(order)):
        sizes = round_up((lengths[order.rows(0, k)] + 1).flatten()).reshape(-1, 2)
        assert sizes.sum() / 2 <= budget + sizes.sum(axis=1).max() / 2


def test_little_of_a_batch_is_padding():
    random = np.random.default_rng(0)
    target = random.poisson(14, 20_000) + 1
    lengths = np.stack([np.maximum(1, target + random.integers(-4, 5, 20_000)), target], axis=1)
    order = BatchOrder(lengths, 2048, seed=0)
    real = padded = 0
    for k in range(len(order)):
        rows = lengths[order.rows(0, k)]
        real += rows.sum()
        padded += rows.max(axis=0).sum() * len(rows)
    assert real / padded > 0.9


def test_batch_k_is_a_function_of_seed_epoch_and_k():
    lengths = np.random.default_rng(0).integers(1, 40, (500, 2))
    forward, backward = BatchOrder(lengths, 256, seed=5), BatchOrder(lengths, 256, seed=5)
    wanted = [(epoch, k) for epoch in range(3) for k in range(len(forward))]
    seen = {place: forward.rows(*place).tolist() for place in wanted}
    assert {place: backward.rows(*place).tolist() for place in reversed(wanted)} == seen
    other = BatchOrder(lengths, 256, seed=6)
    assert [other.rows(0, k).tolist() for k in range(3)] != [seen[0, k] for k in range(3)]
    assert [seen[0, k] for k in range(len(forward))] != [seen[1, k] for k in range(len(forward))]


def test_batch_k_is_the_same_in_another_process():
    code = (
        "import numpy as np; from dragoman.text.batches import BatchOrder;"
        "print(BatchOrder(np.arange(400).reshape(-1, 2) % 37 + 1, 200, 9).rows(2, 4).tolist())"
    )
    here = BatchOrder(np.arange(400).reshape(-1, 2) % 37 + 1, 200, 9).rows(2, 4).tolist()
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(here)


def test_a_batch_is_laid_out_for_teacher_forcing():
    batch = make_batch([([7, 8], [9]), ([7], [5, 6, 4])], SpecialIds(pad=0, start=1, end=2, unknown=3))
    assert batch.source.tolist() == [[7, 8, 2], [7, 2, 0]]
    assert batch.source_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.target_in.tolist() == [[1, 9, 0, 0], [1, 5, 6, 4]]
    assert batch.target_out.tolist() == [[9, 2, 0, 0], [5, 6, 4, 2]]
    assert batch.target_mask.tolist() == [[True, True, False, False], [True, True, True, True]]


def test_the_start_token_is_a_setting():
    batch = make_batch([([7], [9])], SpecialIds(pad=0, start=0, end=2, unknown=3))
    assert batch.target_in.tolist() == [[0, 9]]
    assert batch.target_mask.all()  # a start token that looks like padding is still real


def test_padding_is_told_by_place_not_by_value():
    ids, real = pad([[0, 0], [5]], 0)
    assert ids.tolist() == [[0, 0], [5, 0]]
    assert real.tolist() == [[True, True], [True, False]]
    assert real.dtype == torch.bool


# ── the index ─────────────────────────────────────────────────────────────────────────────


@given(
    chunks=st.lists(
        st.lists(
            st.tuples(st.lists(st.integers(0, 69_999), max_size=5), st.lists(st.integers(0, 69_999), max_size=5)),
            max_size=6,
        ),
        max_size=4,
    ),
    vocabulary=st.sampled_from([70_000, 1 << 20]),
)
@settings(max_examples=30, deadline=None)
def test_what_is_written_to_an_index_comes_back(tmp_path_factory, chunks, vocabulary):
    folder = tmp_path_factory.mktemp("index")
    pairs = [pair for chunk in chunks for pair in chunk]
    index = write_index(folder, chunks, vocabulary, {"note": "ü"})
    assert len(index) == len(pairs)
    assert [(s.tolist(), t.tolist()) for s, t in (index[i] for i in range(len(index)))] == [(s, t) for s, t in pairs]
    assert index.lengths().tolist() == [[len(s), len(t)] for s, t in pairs]
    assert PairIndex(folder).about == {"note": "ü"}


def test_a_small_vocabulary_takes_two_bytes_an_id(tmp_path):
    write_index(tmp_path, [[([1, 2, 3], [4])]], 65_536, {})
    assert (tmp_path / "ids.bin").stat().st_size == 8


def test_an_index_cut_off_is_refused(tmp_path):
    write_index(tmp_path, [[([1, 2, 3], [4])]], 100, {})
    (tmp_path / "ids.bin").write_bytes(b"12")
    with pytest.raises(DataError, match="is damaged; begin anew with --fresh"):
        PairIndex(tmp_path)
