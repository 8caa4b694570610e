"""Bytes in, lines out: only a line feed ends a line, whatever else the bytes hold."""

import bz2
import gzip
import lzma
import os
import random
import re
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.text import reading
from dragoman.text.corpus import count_lines
from dragoman.text.reading import LONGEST_LINE, clean, read_lines

in_one_folder = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
HOSTILE = [
    "NUL \0 here",
    "U+2028 \u2028 and U+2029 \u2029",
    "next line \x85",
    "tab\tand \x0b \x0c \x1c",
    "👩‍👩‍👧 family",
    "a\rb",
    "",
]


def pack(data: bytes, ending: str) -> bytes:
    if ending == ".zst":
        return pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(data)
    return {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": bytes}[ending](data)


every_ending = pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst"])
every_packing = pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])


def write(folder: Path, data: bytes, name: str = "text.de") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def failure(path: Path, encoding: str = "utf-8") -> DragomanError:
    with pytest.raises(DragomanError) as caught:
        list(read_lines(path, encoding))
    return caught.value


# ---- lines


@in_one_folder
@given(lines=st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))))
def test_lines_written_are_lines_read(tmp_path, lines):
    path = write(tmp_path, "".join(f"{line}\n" for line in lines).encode())
    expected = [line.removesuffix("\r") for line in lines]
    if lines:
        expected[0] = lines[0].removeprefix("\ufeff").removesuffix("\r")
    assert list(read_lines(path)) == expected


@in_one_folder
@given(data=st.binary(max_size=200), block=st.integers(1, 40))
def test_only_the_byte_line_feed_ends_a_line(tmp_path, data, block):
    """Latin-1 can read any bytes; blocks of a few bytes put their borders everywhere."""
    path = write(tmp_path, data)
    expected = data.decode("latin-1").split("\n")
    expected = [line.removesuffix("\r") for line in (expected[:-1] if expected[-1] == "" else expected)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BLOCK", block)
        assert list(read_lines(path, "latin-1")) == expected
        assert count_lines(path) == len(expected)


@every_ending
def test_every_packing_gives_the_same_lines(tmp_path, ending):
    text = "".join(f"{line}\n" for line in HOSTILE * 3)
    path = write(tmp_path, pack(text.encode(), ending), f"text.de{ending}")
    assert list(read_lines(path)) == HOSTILE * 3
    assert count_lines(path) == len(HOSTILE) * 3


@every_packing
def test_packed_files_that_were_joined_are_read_to_the_end(tmp_path, ending):
    path = write(tmp_path, pack(b"one\n", ending) + pack(b"two\n", ending), f"text{ending}")
    assert list(read_lines(path)) == ["one", "two"]


def test_a_last_line_without_a_line_feed_is_a_line(tmp_path):
    assert list(read_lines(write(tmp_path, b"a\n\nb"))) == ["a", "", "b"]
    assert list(read_lines(write(tmp_path, b"\n"))) == [""]
    assert list(read_lines(write(tmp_path, b""))) == []


def test_a_byte_order_mark_and_carriage_returns_are_no_text(tmp_path):
    assert list(read_lines(write(tmp_path, b"\xef\xbb\xbfa\r\nb\r\r\nc\r"))) == ["a", "b\r", "c"]


def test_letters_on_the_border_of_two_blocks_stay_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 7)
    lines = ["äöü👩‍👧ß" * n for n in range(1, 9)]
    assert list(read_lines(write(tmp_path, "\n".join(lines).encode()))) == lines


def test_reading_holds_only_a_block(tmp_path):
    path = write(tmp_path, b"a short line\n" * 400_000)
    tracemalloc.start()
    assert sum(1 for _ in read_lines(path)) == 400_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6, "5.2 MB of text were read"


# ---- what cannot be read


def test_a_latin_1_byte_is_named_with_line_column_word_and_way_out(tmp_path):
    path = write(tmp_path, b"ein Hund\n" * 16 + b"Das ist M\xe4dchen Nr. 1\n")
    error = failure(path)
    assert (error.id, error.exit_code) == ("E-DATA-03", 3)
    assert error.sentence == (
        f"{path} is not UTF-8: byte 0xE4 at line 17, column 10 (“M\\xe4dchen”). It looks like Latin-1. "
        f"Convert: iconv -f latin1 -t utf-8 {path} > NEW, or pass --encoding latin-1."
    )
    assert list(read_lines(path, "latin-1"))[-1] == "Das ist Mädchen Nr. 1"


def test_lines_before_a_bad_byte_are_counted_over_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 64)
    assert "line 1,001, column 3 (“ab\\xff”)" in failure(write(tmp_path, b"0123456789\n" * 1000 + b"ab\xff\n")).sentence


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (b"\x93quoted\x94 caf\xe9\n", "It looks like Windows-1252"),
        ("ein Mädchen\n".encode("utf-16"), "It looks like UTF-16"),
        (gzip.compress(b"text", mtime=0), "It looks compressed"),
        ("größere Käfer, schöne Öfen ".encode() + b"\xe4\n", "so these bytes are damage"),
    ],
)
def test_what_the_bytes_look_like_is_told(tmp_path, data, advice):
    assert advice in failure(write(tmp_path, data)).sentence


def test_packed_text_must_be_unpacked_before_it_is_converted(tmp_path):
    path = write(tmp_path, gzip.compress(b"M\xe4dchen\n"), "a.de.gz")
    assert f"Unpack it and convert: iconv -f latin1 -t utf-8 {path.with_suffix('')} > NEW" in failure(path).sentence


def test_another_encoding_that_does_not_fit_is_named(tmp_path):
    error = failure(write(tmp_path, "Mädchen\n".encode()), "ascii")
    assert error.id == "E-DATA-03"
    assert "is not ascii: byte 0xC3 at line 1, column 2" in error.sentence


@pytest.mark.parametrize("encoding", ["latin-one", "utf-16"])
def test_an_encoding_that_does_not_exist_or_hides_line_ends_is_refused(tmp_path, encoding):
    error = failure(write(tmp_path, b"a\n"), encoding)
    assert isinstance(error, UsageError)
    assert (error.id, error.exit_code) == ("E-USE-05", 2)


def test_a_missing_file_is_told_with_the_nearest_names(tmp_path):
    write(tmp_path, b"", "train.de")
    write(tmp_path, b"", "train.en")
    error = failure(tmp_path / "tran.de")
    assert (error.id, error.exit_code) == ("E-DATA-04", 3)
    assert error.sentence == f"{tmp_path / 'tran.de'} does not exist. Nearest in {tmp_path}: train.de, train.en."


def test_folders_pipes_and_files_in_missing_folders_are_told_apart(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is a folder" in failure(tmp_path).sentence
    assert "is a pipe or a device" in failure(tmp_path / "pipe").sentence
    assert "nor does the folder" in failure(tmp_path / "no" / "text").sentence
    assert {failure(path).id for path in (tmp_path, tmp_path / "pipe", tmp_path / "no" / "text")} == {"E-DATA-04"}


@every_packing
@pytest.mark.parametrize("harm", ["cut off", "not packed", "overwritten"])
def test_a_damaged_packed_file_is_told(tmp_path, ending, harm):
    data = pack(random.Random(0).randbytes(5000).hex().encode() + b"\n", ending)
    overwritten = data[:400] + b"?" * 50 + data[450:]
    harmed = {"cut off": data[:-20], "not packed": b"ein Hund\n", "overwritten": overwritten}[harm]
    error = failure(write(tmp_path, harmed, f"text.de{ending}"))
    assert isinstance(error, DataError)
    assert error.id == "E-DATA-06"
    assert f"text.de{ending} is damaged or not {ending[1:]} at all" in error.sentence


# ---- long lines


@every_ending
def test_a_line_over_one_mebibyte_is_refused_without_reading_it_all(tmp_path, ending):
    """A bomb is a small file that unfolds to one endless line."""
    path = write(tmp_path, pack(b"short\n" + b"a" * 40_000_000, ending), f"bomb{ending}")
    tracemalloc.start()
    error = failure(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (error.id, error.exit_code) == ("E-DATA-07", 3)
    assert f"{path} has a line of more than 1,048,576 bytes (line 2)" in error.sentence
    assert peak < 30e6


def test_a_line_of_exactly_one_mebibyte_is_read(tmp_path):
    longest = b"a" * LONGEST_LINE
    assert [len(line) for line in read_lines(write(tmp_path, b"b\n" + longest + b"\nc\n"))] == [1, LONGEST_LINE, 1]
    assert [len(line) for line in read_lines(write(tmp_path, longest))] == [LONGEST_LINE]
    assert failure(write(tmp_path, b"b\n" + longest + b"a\nc\n")).id == "E-DATA-07"


# ---- clean


@given(st.text(st.characters()))
def test_clean_text_is_composed_has_single_spaces_and_nothing_unseen(text):
    cleaned = clean(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert re.search(r"[^\S ]|  |^ | $", cleaned) is None
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in cleaned)
    cleaned.encode("utf-8")


@given(st.text(st.characters()))
def test_cleaning_twice_is_cleaning_once(text):
    assert clean(clean(text)) == clean(text)


@given(st.text(st.sampled_from(" abc.")))
def test_plain_text_takes_the_fast_path_to_the_same_end(text):
    assert clean(text) == clean(text + "\0")


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("  two  words \t", "two words"),
        ("a\u2028b\x85c\u00a0d\u3000e\x0bf", "a b c d e f"),
        ("NUL\0 and \x7f and \x1b", "NUL and and"),
        ("e\u0301", "é"),
        ("e\0\u0301", "é"),
        ("half \ud83d a pair", "half a pair"),
        ("\ufeffjoined", "joined"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        (" \u200a ", ""),
    ],
)
def test_clean(raw, cleaned):
    assert clean(raw) == cleaned


def test_a_large_file_whose_lines_end_in_cr_alone_is_called_that(tmp_path):
    path = write(tmp_path, b"ein Hund\r" * 200_000, "mac.de")
    assert f"lines that end in CR alone. Convert: tr '\\r' '\\n' < {path} > NEW" in failure(path).sentence
