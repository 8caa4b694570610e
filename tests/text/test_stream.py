"""Texts as streams of ids: nothing is lost, and every window is where it should be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.text.special import SpecialIds
from dragoman.text.stream import TextStream, WindowOrder, windows_over, write_stream
from dragoman.text.tokenizer import learn


def test_a_text_comes_back_as_it_was(tmp_path):
    lines = ["To be, or not to be:", "", "  that is the question.", "tab\there"]
    tokenizer = learn("characters", lines, 100, SpecialIds())
    stream = write_stream(tmp_path, iter(lines), tokenizer)
    ends = np.flatnonzero(stream.ids == SpecialIds().end)
    starts = [0, *(ends[:-1] + 1)]
    assert [tokenizer.decode(stream.ids[a:b].tolist()) for a, b in zip(starts, ends, strict=True)] == lines
    assert stream.about == {"characters": sum(map(len, lines)) + 4, "unknown": 0}


def test_a_damaged_stream_is_refused(tmp_path):
    tokenizer = learn("characters", ["abc"], 100, SpecialIds())
    write_stream(tmp_path, ["abc"] * 10, tokenizer)
    (tmp_path / "ids.bin").write_bytes(b"\0\0")
    with pytest.raises(DataError, match="damaged"):
        TextStream(tmp_path)


@settings(max_examples=50, deadline=None)
@given(
    tokens=st.integers(2, 300), rows=st.integers(1, 12), length=st.integers(1, 40),
    seed=st.integers(0, 5), epoch=st.integers(0, 3),
)  # fmt: skip
def test_windows_go_on_where_the_last_one_ended(tokens, rows, length, seed, epoch):
    ids = np.arange(tokens)
    order = WindowOrder(ids, rows, length, seed)
    before = None
    for k in range(len(order)):
        window = order.batch(epoch, k)
        assert window.first == (k == 0)
        assert (window.wanted - window.tokens == 1).all()  # one further, everywhere
        if before is not None:
            steps = window.tokens[:, 0] - before.tokens[:, -1]
            wrapped = steps != 1
            assert (window.tokens[wrapped, 0] < window.tokens.shape[1]).all()  # … or at the text's beginning again
        before = window
    again = WindowOrder(ids, rows, length, seed).batch(epoch, len(order) - 1)
    assert (again.tokens == before.tokens).all()  # a function of (seed, epoch, k)


@settings(max_examples=50, deadline=None)
@given(tokens=st.integers(2, 300), rows=st.integers(1, 12), length=st.integers(1, 40))
def test_measuring_reads_everything_once(tokens, rows, length):
    seen = np.concatenate([w.wanted.numpy().ravel() for w in windows_over(np.arange(tokens), rows, length)])
    assert len(set(seen.tolist())) == len(seen)
    assert len(seen) > tokens - 1 - rows  # all but the few that do not fill a row
