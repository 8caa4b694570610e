"""A sentencepiece model is a message of Google's protocol buffers, and sentencepiece believes all of it: a damaged one
has crashed whole processes. So its form is looked at before.

    1  piece, many of them     1  its text    2  its score    3  its kind
    2  how it was trained
    3  how text is normalised  2  a table: the size of a trie, the trie, and what it leads to

The trie is an array in which every entry names the block of 256 entries where its children stand (Yata's darts-clone);
looking a letter up goes wherever it says, so wherever it says must be in the array.
"""

from collections.abc import Iterator
from math import isfinite
from struct import unpack

import numpy as np
import sentencepiece

MOST_PIECES = 2_000_000
PIECE, NORMALIZER = 1, 3  # numbers of fields, as above
TEXT, SCORE, TABLE = 1, 2, 2
BLOCK = 256


def open_sentencepiece(proto: bytes) -> sentencepiece.SentencePieceProcessor:
    refuse_malformed(proto)
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


def refuse_malformed(proto: bytes) -> None:
    """ValueError where this is no model that sentencepiece can be given."""
    texts: set[bytes] = set()
    for number, value in fields(proto):
        if number == PIECE:
            refuse_odd_piece(value, texts)
        elif number == NORMALIZER:
            for inner, table in fields(as_bytes(value)):
                if inner == TABLE and table:
                    refuse_odd_table(as_bytes(table))
    if not texts:
        raise ValueError("the sentencepiece model has no pieces")


def fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Number and value of each field: what has a length as bytes, all else as it stands."""
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        match key & 7:
            case 0:
                value, place = varint(message, place)
                yield key >> 3, value
            case 1 | 5:
                size = 8 if key & 7 == 1 else 4
                yield key >> 3, take(message, place, size)
                place += size
            case 2:
                size, place = varint(message, place)
                yield key >> 3, take(message, place, size)
                place += size
            case kind:
                raise ValueError(f"the sentencepiece model is damaged: there is no kind {kind} of field")


def varint(message: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and the place after it."""
    value = 0
    for shift in range(0, 64, 7):
        byte = take(message, place, 1)[0]
        value, place = value | (byte & 127) << shift, place + 1
        if byte < 128:
            return value, place
    raise ValueError("the sentencepiece model is damaged: a number has no end")


def take(message: bytes, place: int, size: int) -> bytes:
    if place + size > len(message):
        raise ValueError(f"the sentencepiece model is cut off: {size:,} bytes are promised at byte {place:,}")
    return message[place : place + size]


def as_bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise ValueError("the sentencepiece model is damaged: a number stands where a text belongs")
    return value


def refuse_odd_piece(value: bytes | int, texts: set[bytes]) -> None:
    """Each is a text of its own, with a score that is a number."""
    told = dict(fields(as_bytes(value)))
    text, score = as_bytes(told.get(TEXT, b"")), told.get(SCORE, b"\0\0\0\0")
    text.decode()
    if not text or text in texts or len(texts) >= MOST_PIECES:
        raise ValueError(f"the sentencepiece model is damaged: piece {len(texts) + 1:,} is empty or there twice")
    if isinstance(score, int) or len(score) != 4 or not isfinite(unpack("<f", score)[0]):
        raise ValueError(f"the sentencepiece model is damaged: piece {len(texts) + 1:,} has no score")
    texts.add(text)


def refuse_odd_table(table: bytes) -> None:
    size = int.from_bytes(take(table, 0, 4), "little")
    units = np.frombuffer(take(table, 4, size), "<u4").astype(np.int64) if size % 4 == 0 else np.zeros(0, np.int64)
    texts = table[4 + size :]
    leaf = units >> 31 == 1
    offset = (units >> 10) << ((units & 1 << 9) >> 6)
    children = (np.arange(len(units)) ^ offset) | (BLOCK - 1)
    inside = (children < len(units)) | leaf
    led_to = (units & 0x7FFFFFFF < len(texts)) | ~leaf
    if not len(units) or not inside.all() or not led_to.all() or not texts.endswith(b"\0"):
        raise ValueError("the sentencepiece model is damaged: its table of normalisation leads out of itself")
