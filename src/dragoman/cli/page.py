"""dragoman page: the page of a model, alive on this machine."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

WORDS = Parameter(negative="")


def page(
    model: str,
    text: str = "",
    *,
    port: int = 8765,
    open: Annotated[bool, WORDS] = False,
    threads: int | None = None,
) -> int:
    """Show what happens inside a model, in a browser: type text, force tokens, follow a run. Ctrl-C ends it.

    It listens on 127.0.0.1 only.

    Parameters
    ----------
    model
        A run's folder, a model's, or one of Hugging Face.
    text
        What to look at first; else one of the run's validation sentences.
    port
        Where to listen; 0 is any port that is free.
    open
        Open the page in a browser.
    threads
        Processor threads to use; else one for each core.
    """
    from dragoman.cli.look import reads_images, refuse_unseen
    from dragoman.errors import DataError

    is_run = (Path(model) / "run.toml").exists()  # whose curves are there to see, whatever it trains
    if not is_run:
        refuse_unseen(Path(model))
    if not is_run and reads_images(Path(model)):
        raise DataError("E-LOOK-02", f"{model} reads images, which are looked at by: dragoman look {model} IMAGE")

    from dragoman.jobs.machine import use_threads
    from dragoman.seeing.live import Subject, serve

    use_threads(threads)
    subject = Subject(Path(model), text)
    if not is_run:
        subject.needed()  # a run may not have a model yet; a model's folder must
    if subject.asked is not None and subject.learned() is not None:
        subject.look(subject.asked)  # so that what cannot be looked at is told here
    with serve(subject, port) as address:
        print(address, flush=True)
        print("dragoman: Ctrl-C ends the page", file=sys.stderr)
        if open:
            import webbrowser

            webbrowser.open(address)
        threading.Event().wait()
    return 0


def is_waiting(address: str) -> bool:
    """Whether a browser looks at the page there that was not told yet how the run ended."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=5)
    try:
        connection.request("GET", "/api/waiting")
        return connection.getresponse().read() == b"true"
    except (OSError, HTTPException):  # its process is gone
        return False
    finally:
        connection.close()


@contextmanager
def page_beside(run: Path) -> Iterator[str]:
    """The page of a run that this process trains, at the address given out; "" where it cannot be shown.

    In a process of its own: opening a model draws random numbers, which a run that goes on exactly must not notice.
    """
    command = [sys.executable, "-m", "dragoman", "page", str(run), "--port", "0", "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
