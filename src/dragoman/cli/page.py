"""dragoman page: the page of a model, alive on this machine."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.cli.options import Flag, Model, Threads, Whole


def page(
    model: Model,
    text: str = "",
    *,
    port: Whole = 8765,
    open: Flag = False,
    threads: Threads = None,
) -> int:
    """Show what happens inside a model, in a browser: type text or choose an image, force tokens, follow a run. Ctrl-C
    ends it.

    It listens on 127.0.0.1 only.

    Parameters
    ----------
    text
        What to look at first; else one of the run's validation sentences. Of a vit an image: a file, an idx file, a
        .npz or a folder, of which the first is taken; else the first that the run is validated on.
    port
        Where to listen; 0 is any port that is free.
    open
        Open the page in a browser.
    """
    from dragoman.cli.kind import refuse_no_model
    from dragoman.cli.look import refuse_unseen
    from dragoman.errors import UsageError

    if not 0 <= port < 65536:
        raise UsageError("E-USE-12", f"--port {port} is none; give one from 1 to 65,535, or 0 for any that is free")
    refuse_no_model(model)
    is_run = (Path(model) / "run.toml").exists()  # whose curves are there to see, whatever it trains
    family = family_of(Path(model))
    if not is_run:
        refuse_unseen(Path(model))
        refuse_cnn(model, family)
    if family == "vit" and text:
        from dragoman.images.corpus import find_shown

        find_shown([text])

    from dragoman.jobs.machine import use_threads
    from dragoman.seeing.live import Subject, serve
    from dragoman.seeing.live_images import ImageSubject

    use_threads(threads)
    subject = ImageSubject(Path(model), text) if family == "vit" else Subject(Path(model), text)
    if not is_run:
        subject.needed()  # a run may not have a model yet; a model's folder must
    subject.begin()
    with serve(subject, port) as address:
        print(address, flush=True)
        print("dragoman: Ctrl-C ends the page", file=sys.stderr)
        if open:
            import webbrowser

            webbrowser.open(address)
        threading.Event().wait()
    return 0


def family_of(model: Path) -> str:
    """Of the model there; of a run that has saved none yet, as its record says."""
    from dragoman.cli.kind import kind_of
    from dragoman.runs.record import read_toml

    record = model / "run.toml"
    return kind_of(model)[1] or (str(read_toml(record).get("run", {}).get("family", "")) if record.is_file() else "")


def refuse_cnn(model: str, family: str) -> None:
    from dragoman.errors import DataError

    if family == "cnn":
        raise DataError(
            "E-LOOK-02", f"{model} is a cnn, whose feature maps are looked at by: dragoman look {model} IMAGE"
        )


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
