"""What can go wrong that is not a bug: each error is one sentence, an id to look up, and an exit code.

    exit code   meaning
    2           wrong usage or settings
    3           data or a model that is missing or unfit
    4           the machine: disk, memory, a port, a missing extra; found before starting
    74          a save that failed
    130         interrupted, and saved

The sentence names the thing, both values and the way out. `docs/messages.md` explains every id.
"""


class DragomanError(Exception):
    """A mistake that a person can mend; the command line prints it as one line, without a traceback."""

    exit_code = 1

    def __init__(self, id: str, sentence: str) -> None:
        super().__init__(sentence)
        self.id = id
        self.sentence = sentence


class UsageError(DragomanError):
    exit_code = 2


class DataError(DragomanError):
    exit_code = 3


class MachineError(DragomanError):
    exit_code = 4


class SaveError(DragomanError):
    exit_code = 74


class Interrupted(DragomanError):  # noqa: N818
    exit_code = 130
