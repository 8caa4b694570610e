"""Bytes to clean lines. Only the byte `\\n` ends a line, and no more than a block of whole lines is ever held.

    open_bytes    a file, compressed or not        ->  bytes
    read_blocks   bytes                            ->  whole lines, still bytes
    read_lines    whole lines, decoded at once     ->  text, a line at a time
    clean         a line's text                    ->  what every tokenizer sees

Why not `for line in open(path)`? Text mode also ends a line at a lone `\\r`, and `str.splitlines` at U+2028, U+0085 and
\\x0b; one such character shifts every pair after it. Decoding whole blocks is several times faster than line by line;
lines and columns are counted only once something is wrong.
"""

import bz2
import codecs
import difflib
import gzip
import io
import lzma
import re
import shlex
import sys
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dragoman.errors import DataError, UsageError

LONGEST_LINE = 1 << 20  # bytes; the longest sentence is a thousandth of this, and a gz bomb is one endless line
BLOCK = 1 << 18
DAMAGE: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError)

if sys.version_info >= (3, 14):
    from compression import zstd

    DAMAGE = (*DAMAGE, zstd.ZstdError)

    def open_zstandard(path: Path, mode: str) -> io.BufferedIOBase:
        return zstd.open(path, mode)
else:
    import zstandard

    DAMAGE = (*DAMAGE, zstandard.ZstdError)

    def open_zstandard(path: Path, mode: str) -> io.BufferedIOBase:
        return io.BufferedReader(ZstandardBytes(path.open(mode)))


class ZstandardBytes(io.RawIOBase):
    """Decompressed `.zst`. The reader that comes with `zstandard` takes a file that was cut off for a whole one."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.frame: Any = None  # the decompressor of the frame that is being read
        self.waiting = b""  # bytes behind the end of a frame
        self.ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ready and (
            compressed := self.waiting or self.file.read(512)
        ):  # 512 bytes unfold to 22 MB at most
            self.unfold(compressed)
        if not self.ready and self.frame is not None:
            raise EOFError("the last frame has no end")
        size = min(len(buffer), len(self.ready))
        buffer[:size] = self.ready[:size]
        self.ready = self.ready[size:]
        return size

    def unfold(self, compressed: bytes) -> None:
        frame = self.frame or zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        self.ready = memoryview(frame.decompress(compressed))
        self.waiting = frame.unused_data
        self.frame = None if frame.eof else frame

    def close(self) -> None:
        self.file.close()
        super().close()


OPENERS: dict[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": open_zstandard,
}


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() in OPENERS


@contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedIOBase]:
    """The file's bytes, decompressed where its name says so; what is missing or damaged is told by name."""
    refuse_missing(path)
    try:
        with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            yield file
    except DAMAGE as problem:
        raise damaged(path, problem) from None
    except OSError as problem:
        if problem.errno is None:  # gzip and bz2 say "not my format" by an OSError that no system call gave
            raise damaged(path, problem) from None
        raise DataError("E-DATA-04", f"{path} cannot be read: {problem.strerror}.") from None


def damaged(path: Path, problem: Exception) -> DataError:
    kind = path.suffix.lower().removeprefix(".")
    return DataError(
        "E-DATA-06",
        f"{path} is damaged or not {kind} at all ({problem}). "
        f"Fetch or pack it again, or rename it if it is not compressed.",
    )


def refuse_missing(path: Path) -> None:
    if path.is_file():
        return
    if path.is_dir():
        raise DataError("E-DATA-04", f"{path} is a folder; give the files in it by name.")
    if path.exists():
        raise DataError(
            "E-DATA-04", f"{path} is a pipe or a device, and data is read more than once; save it as a file."
        )
    if not path.parent.is_dir():
        raise DataError("E-DATA-04", f"{path} does not exist, nor does the folder {path.parent}.")
    names = [neighbour.name for neighbour in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    hint = f"Nearest in {path.parent}: {', '.join(near)}." if near else f"Nothing in {path.parent} has a name like it."
    raise DataError("E-DATA-04", f"{path} does not exist. {hint}")


def read_blocks(path: Path) -> Iterator[bytes]:
    """The file's bytes in blocks of whole lines; all but the last block end in a line feed."""
    lines, rest = 0, b""
    with open_bytes(path) as file:
        while chunk := file.read(BLOCK):
            end = chunk.rfind(b"\n") + 1
            if len(rest) + (chunk.find(b"\n") if end else len(chunk)) > LONGEST_LINE:
                raise too_long(path, lines + 1, chunk)
            if not end:
                rest += chunk
                continue
            block, rest = rest + chunk[:end], chunk[end:]
            lines += block.count(b"\n")
            yield block
        if rest:
            yield rest


def too_long(path: Path, line: int, chunk: bytes) -> DataError:
    if are_line_ends(chunk):
        return DataError("E-DATA-07", with_old_ends(path))
    return DataError(
        "E-DATA-07",
        f"{path} has a line of more than {LONGEST_LINE:,} bytes (line {line:,}); a line is one sentence. "
        f"Is the file text, with a line feed after each sentence? Split or remove that line.",
    )


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Each line's text without its end (`\\n`, or `\\r\\n`), and without a byte order mark before the first."""
    refuse_encoding(encoding)
    lines = 0
    for block in read_blocks(path):
        try:
            text = block.decode(encoding)
        except UnicodeDecodeError as problem:
            raise undecodable(path, block, lines, problem, encoding) from None
        if lines == 0:
            text = text.removeprefix("\ufeff")
        if "\r" in text:
            text = text.replace("\r\n", "\n").removesuffix("\r")
        found = text.removesuffix("\n").split("\n")
        lines += len(found)
        yield from found


def as_strings(name: str, given: Any) -> list[str]:
    """One string is a sequence of strings, too, and would give a translation for each of its letters."""
    if isinstance(given, str):
        raise UsageError("E-USE-17", f"{name} must be a list of strings and is one string; write [{given[:40]!r}]")
    found = list(given)
    others = [one for one in found if not isinstance(one, str)]
    if others:
        raise UsageError("E-USE-17", f"{name} must be strings, and {others[0]!r:.40} is none; give the text itself")
    return found


def refuse_encoding(encoding: str) -> None:
    try:
        ends_lines_alike = "\n".encode(encoding) == b"\n"
    except (LookupError, UnicodeError):
        raise UsageError(
            "E-USE-05", f"there is no encoding {encoding!r}; usual ones: utf-8, latin-1, cp1252."
        ) from None
    if not ends_lines_alike:
        raise UsageError(
            "E-USE-05",
            f"text in {encoding} cannot be split at the byte \\n; convert it: iconv -f {encoding} -t utf-8 OLD > NEW",
        )


def undecodable(path: Path, block: bytes, lines: int, problem: UnicodeDecodeError, encoding: str) -> DataError:
    """Byte, line, column and word of the first byte that does not fit, and the encoding that the file may have."""
    start = block.rfind(b"\n", 0, problem.start) + 1
    line = lines + block.count(b"\n", 0, problem.start) + 1
    column = len(block[start : problem.start].decode(encoding, "replace")) + 1
    name = "UTF-8" if is_utf8(encoding) else encoding
    advice = advise(path, block) if is_utf8(encoding) else "Pass the right one with --encoding."
    return DataError(
        "E-DATA-03",
        f"{path} is not {name}: byte 0x{block[problem.start]:02X} at line {line:,}, column {column:,} "
        f"(“{word_around(block, problem.start)}”). {advice}",
    )


def is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith("utf-8")


def word_around(block: bytes, position: int) -> str:
    """The word, with the bytes that cannot be read as escapes; at most forty bytes of it."""
    before = re.split(rb"\s", block[max(0, position - 20) : position])[-1]
    after = re.split(rb"\s", block[position : position + 20])[0]
    return (before + after).decode("utf-8", "backslashreplace")


def advise(path: Path, block: bytes) -> str:
    """What the bytes look like, and how to make them UTF-8."""
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"It looks like UTF-16. {convert(path, '-f utf-16')}."
    if block.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        return "It looks compressed. Give its name the ending .gz, .bz2, .xz or .zst."
    text = block.decode("utf-8", "replace")
    if sum(not character.isascii() for character in text) > 2 * text.count("\ufffd"):
        return f"The text around it is UTF-8, so these bytes are damage. {convert(path, '-c -f utf-8')} drops them."
    if re.search(rb"[\x80-\x9f]", block):  # Latin-1 has only control characters there
        return f"It looks like Windows-1252. {convert(path, '-f cp1252')}, or pass --encoding cp1252."
    return f"It looks like Latin-1. {convert(path, '-f latin1')}, or pass --encoding latin-1."


def convert(path: Path, options: str) -> str:
    return f"{unpacked(path)}: iconv {options} -t utf-8 {plain_file(path)} > NEW"


def unpacked(path: Path) -> str:
    return "Unpack it and convert" if is_compressed(path) else "Convert"


def plain_file(path: Path) -> str:
    return shlex.quote(str(path.with_suffix("") if is_compressed(path) else path))


def count_returns(block: bytes) -> int:
    """CR without LF."""
    return block.count(b"\r") - block.count(b"\r\n")


def old_line_ends(path: Path) -> str:
    """What to do about a file whose lines end as on a Macintosh of old, in CR alone; nothing about any other."""
    with open_bytes(path) as file:
        block = file.read(BLOCK)
    return with_old_ends(path) if are_line_ends(block) else ""


def with_old_ends(path: Path) -> str:
    return f"{path} has lines that end in CR alone. {end_in_lf(path)}."


def are_line_ends(block: bytes) -> bool:
    return count_returns(block) > block.count(b"\n")


def end_in_lf(path: Path) -> str:
    return f"{unpacked(path)}: tr '\\r' '\\n' < {plain_file(path)} > NEW"


# Control characters that are not white space, halves of surrogate pairs, and byte order marks in the middle of a text.
UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]+")


def clean(text: str) -> str:
    """The text as every tokenizer sees it: composed (NFC), white space as single spaces, nothing invisible."""
    if not (text.isascii() and text.isprintable()):
        text = unicodedata.normalize("NFC", UNSEEN.sub("", text))
    return " ".join(text.split())
