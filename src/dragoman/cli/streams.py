"""Whoever reads our output may leave, and its disk may be full: what is shown is lost then, what is done is not."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO


class Closed(io.TextIOBase):
    """In the place of a standard output that was closed: Python would lose what is printed there, without a word."""

    def write(self, text: str) -> int:  # noqa: ARG002
        raise OSError(errno.EBADF, "standard output is closed")

    def reconfigure(self, **_: Any) -> None:
        """As a real one has it."""


def tell(sentence: str) -> None:
    """To standard error, as far as it takes it."""
    with suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)


@contextmanager
def carrying_on() -> Iterator[None]:
    """Inside this block only what is shown is lost where it cannot be written."""
    try:
        yield
    except BrokenPipeError:
        if let_go(sys.stdout):
            tell("dragoman: nobody reads standard output any more; the work goes on")
        let_go(sys.stderr)
    except OSError:  # a full disk may have room again at the next line
        return


def let_go(*streams: TextIO | None) -> bool:
    """Of streams that cannot be written to, or Python would complain of them at its end; whether there was any."""
    broken = [stream for stream in streams if stream is not None and not can_flush(stream)]
    for stream in broken:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
    return bool(broken)


def can_flush(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return False
    return True
