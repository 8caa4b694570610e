"""`dragoman <command>`: each command is a file here; only the chosen one is imported.

Standard output carries the result alone; progress, notes and errors go to standard error. A user's mistake ends in one
line and its exit code; a traceback is a bug of ours.
"""

import errno
import os
import signal
import sys
from functools import cache
from typing import TYPE_CHECKING

from dragoman import __version__
from dragoman.cli.streams import Closed, let_go, tell
from dragoman.errors import DragomanError, Interrupted, UsageError
from dragoman.training.torchrun import is_first_worker, is_under_torchrun

if TYPE_CHECKING:
    from cyclopts import App

COMMANDS = {
    "demo": "train a translator on generated data, show it learn, save its page",
    "train": "learn to translate from parallel text, to write from one text, or to label from labelled texts or images",
    "translate": "translate texts, a file, or standard input, line by line",
    "generate": "write on from a prompt with a language model",
    "classify": "tell the labels of texts, a file, or standard input, line by line; or what is on images",
    "fill": "name the likeliest words for masked places of a text",
    "embed": "turn texts into vectors, and find which are near to each other",
    "score": "measure a translator by BLEU, chrF and TER, a language model by perplexity, a classifier by accuracy",
    "compare": "train several models on equal terms, and say which is better, where, and at what cost",
    "look": "show every layer and head of a model at work on a text or an image, as one offline page",
    "page": "the same page live on 127.0.0.1: type text, force tokens, follow a run",
    "explain": "print the arithmetic of attention step by step: a toy's, the slides' or a model's",
    "import": "turn a Hugging Face folder into a model's folder",
    "runs": "list runs, show one, check that it is whole, average its checkpoints, or remove it",
    "doctor": "see whether this machine has what is needed: torch, threads, memory, disk, browser, port",
    "data": "check, count, split or generate parallel text; generate pictures",
}


@cache
def make_app() -> "App":
    """All commands by their names; none of them is imported before it is called."""
    import cyclopts

    from dragoman.cli.help import Paragraphs

    app = cyclopts.App(
        name="dragoman",
        help="Train attention models from your own text, look inside them, and put them to work.",
        version=__version__,
        help_format="plaintext",
        help_formatter=Paragraphs(),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name, sentence in COMMANDS.items():
        file = "import_" if name == "import" else name  # a word that Python keeps for itself
        part = "app" if name in ("data", "runs") else file
        app.command(f"dragoman.cli.{file}:{part}", name=name, help=sentence)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code. All imports are inside, for Ctrl-C may come during any of them."""
    try:
        return call(arguments)
    except DragomanError as problem:
        if is_first_worker():
            sentence = "".join(letter if letter.isprintable() else " " for letter in problem.sentence)  # one line
            tell(f"dragoman: {sentence} [{problem.id}]")
        stopped = isinstance(problem, Interrupted) and is_under_torchrun()
        return 0 if stopped else problem.exit_code  # it has saved, and after any other code torchrun begins again
    except KeyboardInterrupt:
        tell("dragoman: interrupted")
        return 130
    except BrokenPipeError:  # whoever reads our output has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as problem:
        if isinstance(sys.stdout, Closed) and problem.errno == errno.EBADF:
            tell("dragoman: standard output is closed, so nothing could be written; open it [E-SAVE-01]")
            return 74
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS):
            raise
        where = problem.filename or "what goes to standard output, or beside it,"
        way_out = {
            errno.EIO: "look at the disk, then run the same command",
            errno.EROFS: "choose another place, or let it be written to",
        }.get(problem.errno, "free some space")
        done = "read or written" if problem.errno == errno.EIO else "written"
        tell(f"dragoman: {where} could not be {done} ({problem.strerror}); {way_out} [E-SAVE-01]")
        let_go(sys.stdout)
        return 74


def call(arguments: list[str] | None) -> int:
    from cyclopts import CycloptsError

    refuse_odd_bytes(sys.argv[1:] if arguments is None else arguments)
    try:
        result = make_app()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as problem:
        command = " ".join(["dragoman", *(problem.command_chain or ())])
        print(f"dragoman: {' '.join(str(problem).split())} See: {command} --help [E-USE-00]", file=sys.stderr)
        return 2
    return result if isinstance(result, int) else 0


def refuse_odd_bytes(arguments: list[str]) -> None:
    """A byte that was not UTF-8 is kept as half of a surrogate pair, with which nothing can be done later."""
    for argument in arguments:
        if any("\ud800" <= letter <= "\udfff" for letter in argument):
            raise UsageError("E-USE-12", f"{argument!r} is not UTF-8; write it in UTF-8")


def run() -> None:
    signal.signal(signal.SIGTERM, interrupt)
    if sys.stdout is None:
        sys.stdout = Closed()
    if sys.stderr is None:  # closed: what is said would go to standard output, or into a file that is opened next
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    code = main()
    let_go(sys.stderr)  # or what it could not take would change the exit code
    if is_under_torchrun():  # threads that spoke to the others may still let go of what Python is about to take down
        if not isinstance(sys.stdout, Closed):
            let_go(sys.stdout)
        os._exit(code)
    sys.exit(code)


def interrupt(_number: int, _frame: object) -> None:
    """Asked to end by a program, as by Ctrl-C: one line, 130."""
    raise KeyboardInterrupt
