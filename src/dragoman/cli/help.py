"""How `--help` is shown: as Cyclopts does it, but with each option's sentences as one paragraph, wherever the source
breaks its lines."""

from typing import TYPE_CHECKING

from cyclopts.help.formatters import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions


SAYS_NOTHING = ('""', "False")  # of what an option is where nobody gives it


class Paragraphs(DefaultFormatter):
    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        super().__call__(console, options, panel.copy(entries=[in_one_paragraph(entry) for entry in panel.entries]))


def in_one_paragraph(entry: "HelpEntry") -> "HelpEntry":
    from cyclopts.help.inline_text import InlineText
    from rich.text import Text

    sentences = Text(" ".join(str(entry.description.primary_renderable).split()))
    default = None if entry.default in SAYS_NOTHING else entry.default
    return entry.copy(description=InlineText(sentences), default=default)
