"""SIGTERM and Ctrl-C ask a run to save at the next step and end, instead of cutting it off."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    asked = False


@contextmanager
def polite_stop() -> Iterator[Stop]:
    """Inside this block a first signal sets `asked`; a second Ctrl-C is a KeyboardInterrupt, for the impatient."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals come to the main thread only
        return

    def ask(number: int, _: object) -> None:
        if stop.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
