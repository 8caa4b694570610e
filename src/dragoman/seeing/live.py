"""The page alive on this machine: text can be typed, tokens forced, and a run in training followed.

    GET  /  /app.js  /app.css       the page, as built
    GET  /api/page                  everything there is to see, of the text looked at last
    GET  /api/training              the curves, while a run goes on
    GET  /api/waiting               whether a page looks on that was not told yet how the run ended
    GET  /save                      the page as one file, of the text looked at last
    POST /api/look                  {"text", "target", "gold", "beam", "force"}; of an image: live_images.py
    POST /api/arithmetic            {"text"}

For one person at one machine: it listens on 127.0.0.1 alone, answers only under that name, so that no other web site
can talk to it through the browser, and asks the model one thing at a time.
"""

import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from pathlib import Path
from typing import Any

from pydantic import Field

from dragoman.config import Settings
from dragoman.errors import DataError, DragomanError, MachineError, UsageError
from dragoman.jobs.open import Learned, load
from dragoman.runs.model import find_model
from dragoman.seeing.arithmetic import Arithmetic, model_arithmetic
from dragoman.seeing.history import Training, history
from dragoman.seeing.look import look, unfit
from dragoman.seeing.looked import Look
from dragoman.seeing.page import Answer, PageData, answer, built, page_data, saved_page

HERE = "127.0.0.1"
LARGEST_BODY = 1 << 20
LONGEST_TEXT = 5000  # letters
LOOKS_ON = 5.0  # seconds since a page asked how the run goes, in which it still looks on
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'"
)
BUILT = {
    "/": ("index.html", "text/html"),
    "/app.js": ("app.js", "text/javascript"),
    "/app.css": ("app.css", "text/css"),
}


class LookRequest(Settings):
    text: str = Field(max_length=LONGEST_TEXT, description="to look at")
    target: str | None = Field(None, max_length=LONGEST_TEXT, description="a reference")
    force: list[int] = Field([], max_length=2000, description="ids that the output must begin with")
    gold: str | None = Field(None, max_length=20_000, description="links between words, as Pharaoh writes them")
    beam: int | None = Field(None, gt=0, le=32, description="beginnings kept at each step")


class TextRequest(Settings):
    text: str = Field(max_length=LONGEST_TEXT, description="to work through")


class Subject:
    """What the page is about: a model, or a run that has saved none yet; opened anew when a better one is saved."""

    largest_body = LARGEST_BODY  # bytes of a question

    def __init__(self, path: Path, text: str = "") -> None:
        self.path = path
        self.one_at_a_time = threading.RLock()
        self.opened: tuple[float, Learned] | None = None
        self.asked = LookRequest.read({"text": text}, section="look") if text else None  # last
        self.followed: float | None = None  # when a page asked last
        self.told_the_end = False

    def learned(self) -> Learned | None:
        try:
            saved = (find_model(self.path) / "config.json").stat().st_mtime
        except (DataError, OSError):
            return None
        if self.opened is None or self.opened[0] != saved:
            self.opened = (saved, load(self.path))
        return self.opened[1]

    def needed(self) -> Learned:
        found = self.learned()
        if found is None and not (self.path / "run.toml").exists():
            find_model(self.path)  # which says what is missing
        if found is None:
            raise DataError("E-LOOK-05", f"{self.path} holds no model yet; a run saves one after its first validation")
        return found

    def page(self, *, live: bool) -> str:
        with self.one_at_a_time:
            data = self.data(live=live)
        return data.model_dump_json() if live else saved_page(data)

    def page_for_a_browser(self) -> str:
        """A note is kept of whether it holds the end of the run: what is finished now will be so in it."""
        training = self.training()
        self.followed = inf  # however long it takes
        try:
            page = self.page(live=True)
        finally:
            self.followed = time.monotonic()
        self.told_the_end = training is not None and training.finished
        return page

    def data(self, *, live: bool) -> PageData:
        learned, asked = self.learned(), self.asked or self.dev_sentence()
        seen = None if learned is None or asked is None else self.seen(learned, asked)
        return page_data(self.path, learned, seen, options_of(asked if seen else None), live=live)

    def begin(self) -> None:
        """Look at what the command named, so that what cannot be looked at is told there."""
        if self.asked is not None and self.learned() is not None:
            self.look(self.asked)

    def seen(self, learned: Learned, asked: LookRequest) -> Look | None:
        """None where this model cannot look at this: the curves and all else of the page are there all the same."""
        with suppress(DragomanError):
            return look_at(learned, asked)
        return None

    def dev_sentence(self) -> LookRequest | None:
        """What a run's page shows before anyone asked; of images there is no text to show."""
        learned = self.learned()
        if learned is None or unfit(learned) or (run := history(self.path)) is None or not run.flips:
            return None
        source = run.flips[-1].sentences[0].source
        return LookRequest(text=source[:LONGEST_TEXT]) if source.strip() else None

    def training(self) -> Training | None:
        self.followed = time.monotonic()
        return history(self.path)

    def waiting(self) -> bool:
        """Whether a page looks on that was not told yet how the run ended."""
        return self.followed is not None and time.monotonic() - self.followed < LOOKS_ON and not self.told_the_end

    def answer_to(self, body: Mapping[str, Any]) -> Answer:
        return self.look(LookRequest.read(body, section="look"))

    def look(self, asked: LookRequest) -> Answer:
        with self.one_at_a_time:
            learned = self.needed()
            found = answer(self.path, learned, look_at(learned, asked), options_of(asked))
            self.asked = asked
        return found

    def arithmetic(self, asked: TextRequest) -> Arithmetic:
        with self.one_at_a_time:
            worked = model_arithmetic(self.needed(), asked.text)
        if worked is None:
            raise UsageError("E-LOOK-03", "this model has no attention to work through")
        return worked


def look_at(learned: Learned, asked: LookRequest) -> Look:
    return look(learned, asked.text, **options_of(asked))


def options_of(asked: LookRequest | None) -> dict[str, Any]:
    """What `look` is given beside the text; a field left empty asks for nothing."""
    if asked is None:
        return {}
    return {"target": asked.target or None, "gold": asked.gold or None, "beam": asked.beam, "force": asked.force}


class Handler(BaseHTTPRequestHandler):
    timeout = 20  # seconds for a slow reader
    server_version = "dragoman"
    protocol_version = "HTTP/1.1"

    def __init__(self, subject: Subject, *connection: Any) -> None:
        self.subject = subject
        super().__init__(*connection)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in BUILT:
            name, kind = BUILT[path]
            self.answer(lambda: built(name), kind)
        elif path == "/api/page":
            self.answer(self.subject.page_for_a_browser)
        elif path == "/api/training":
            self.answer(self.training)
        elif path == "/api/waiting":
            self.answer(lambda: json.dumps(self.subject.waiting()))
        elif path == "/save":
            self.answer(partial(self.subject.page, live=False), "text/html", save_as="look.html")
        else:
            self.refuse(404, f"there is no {path} here")

    def do_POST(self) -> None:
        if self.path == "/api/look":
            self.answer(lambda: self.subject.answer_to(self.body()).model_dump_json())
        elif self.path == "/api/arithmetic":
            asked = lambda: TextRequest.read(self.body(), section="arithmetic")  # noqa: E731
            self.answer(lambda: self.subject.arithmetic(asked()).model_dump_json())
        else:
            self.refuse(404, f"there is no {self.path} here")

    def training(self) -> str:
        found = self.subject.training()
        return "null" if found is None else found.model_dump_json()

    def body(self) -> Any:
        told = self.headers.get("Content-Length") or ""
        length = int(told) if told.isdecimal() else 0
        most = self.subject.largest_body
        if self.headers.get_content_type() != "application/json" or not 0 < length <= most:
            raise UsageError("E-LOOK-06", f"a question is JSON of at most {most:,} bytes")
        try:
            asked = json.loads(self.rfile.read(length))
        except ValueError:
            raise UsageError("E-LOOK-06", "this question is no JSON") from None
        if not isinstance(asked, dict):
            raise UsageError("E-LOOK-06", "a question is a JSON object")
        return asked

    # ── answers ───────────────────────────────────────────────────────────────────────────

    def answer(self, make: Callable[[], str], kind: str = "application/json", *, save_as: str = "") -> None:
        if not self.is_for_us():
            self.refuse(403, f"this page answers only under http://{HERE}:{self.port()}/")
            return
        try:
            self.send(200, make(), kind, save_as)
        except DragomanError as problem:
            self.refuse(400, problem.sentence)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # whoever asked has gone
        except Exception:  # a bug of ours must not leave the page waiting for an answer
            traceback.print_exc()
            self.refuse(500, "something went wrong in dragoman; the terminal says what")

    def is_for_us(self) -> bool:
        """Another site's page could ask in this browser's name: then its own name stands in Host or Origin."""
        names = {f"{name}:{self.port()}" for name in (HERE, "localhost")}
        origin = self.headers.get("Origin")
        return self.headers.get("Host") in names and (origin is None or origin.removeprefix("http://") in names)

    def port(self) -> int:
        assert isinstance(self.server, ThreadingHTTPServer)
        return self.server.server_port

    def refuse(self, status: int, sentence: str) -> None:
        self.close_connection = True  # what is left of the question is not read
        self.send(status, json.dumps({"error": sentence}), "application/json")

    def send(self, status: int, text: str, kind: str, save_as: str = "") -> None:
        whole = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(whole)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if save_as:
            self.send_header("Content-Disposition", f'attachment; filename="{save_as}"')
        self.end_headers()
        self.wfile.write(whole)

    def log_message(self, *_: Any) -> None:
        """Quiet: the terminal belongs to the command."""


@contextmanager
def serve(subject: Subject, port: int) -> Iterator[str]:
    """Inside this block the page is there, at the address given out; port 0 is any that is free."""
    try:
        server = ThreadingHTTPServer((HERE, port), partial(Handler, subject))
    except (OSError, OverflowError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise MachineError(
            "E-ENV-04", f"port {port} cannot be used ({reason}); choose another, or --port 0 for any that is free"
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HERE}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
