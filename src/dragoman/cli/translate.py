"""dragoman translate: one line in, one line out, whatever the line holds."""

import json as json_module
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from dragoman.cli.kind import refuse_no_model
from dragoman.cli.options import Flag, Model, Precision, Threads, Whole

if TYPE_CHECKING:
    from dragoman.decoding.settings import SampleConfig
    from dragoman.decoding.translate import Translation, Translator

AT_ONCE = 2000  # lines translated together at most


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """What is translated, how it is searched for or drawn, and how it is written."""

    input: Path | None = None
    """A file to translate line by line."""
    output: Path | None = None
    """Where to write; else standard output."""
    beam: Whole | None = None
    """Beginnings kept at each step of the search; 1 is greedy. The model's own setting where not given."""
    nbest: Whole = 1
    """Translations for each line, best first: `rank<TAB>score<TAB>text` where more than one. With --sample so many are
    drawn, each by luck of its own."""
    sample: Flag = False
    """Draw words by their probability instead of searching."""
    temperature: float | None = None
    """With --sample: below 1 prefers likely words, above 1 evens them out."""
    top_k: Whole | None = None
    """With --sample: draw from this many likeliest tokens only."""
    top_p: float | None = None
    """With --sample: draw from the fewest tokens that have this much probability."""
    seed: Whole | None = None
    """With --sample: the same seed draws the same text."""
    prefix: str = ""
    """What every translation must begin with."""
    precision: Precision = "float32"
    shortlist: Flag = False
    """Score only those tokens that the source makes likely: faster where there are many; some translations come out
    otherwise, and how many was measured when the model was saved."""
    alignments: Flag = False
    """After a tab, the source word that each word came from, as `source-target` pairs counted from 0."""
    no_split: Flag = False
    """Refuse a line that is too long for the model instead of splitting it."""
    encoding: str = "utf-8"
    """Of the input; what cannot be read so becomes �, and where the first of it stands is said."""
    threads: Threads = None
    json: Flag = False
    """One JSON object a line: text, score, tokens, alternatives."""


USUAL = Options()


def translate(model: Model, *texts: str, options: Options = USUAL) -> int:
    """Translate texts, a file, or standard input where neither is given.

    Parameters
    ----------
    texts
        Sentences to translate.
    """
    from dragoman.decoding.settings import refuse_wide
    from dragoman.jobs.machine import refuse_odd_threads, use_large_pages, use_threads
    from dragoman.text.reading import refuse_encoding

    refuse_no_text(texts, options.input)
    refuse_encoding(options.encoding)
    refuse_no_folder(options.output)
    refuse_wide(options.beam, options.nbest)
    sampling = read_sampling(options)
    refuse_odd_threads(options.threads)
    refuse_no_model(model)
    use_large_pages()
    use_threads(options.threads)

    from dragoman.decoding.translate import Translator
    from dragoman.jobs.open import load_as

    translator = load_as(Translator, model)
    done = 0
    with open_output(options.output) as out:
        for lines in read_input(list(texts), options.input, options.encoding):
            for translation in translated(translator, lines, options, sampling, first_line=done + 1):
                write(translation, out, options.nbest, options.json)
            out.flush()
            done += len(lines)
    return 0


def translated(
    translator: "Translator", lines: Sequence[str], options: Options, sampling: "SampleConfig | None", first_line: int
) -> "list[Translation]":
    return translator.translate(
        lines,
        beam=options.beam,
        nbest=options.nbest,
        sampling=sampling,
        prefixes=[options.prefix] * len(lines) if options.prefix else None,
        precision=options.precision,
        shortlist=options.shortlist,
        alignments=options.alignments,
        split=not options.no_split,
        first_line=first_line,
        notice=lambda sentence: print(f"dragoman: {sentence}", file=sys.stderr),
    )


def refuse_no_text(texts: Sequence[str], path: Path | None) -> None:
    """There must be one source of text, and it must be there."""
    from dragoman.errors import UsageError
    from dragoman.text.reading import refuse_missing

    if texts and path:
        raise UsageError("E-USE-06", "texts and --input were both given; give one of them")
    if path:
        refuse_missing(path)
    elif not texts and sys.stdin is None:
        raise UsageError("E-USE-17", "there is no text, and standard input is closed; give texts, --input or a pipe")


def refuse_no_folder(output: Path | None) -> None:
    """Said before the work is done, and not as a disk that is full."""
    from dragoman.errors import UsageError

    if output is not None and not output.parent.is_dir():
        raise UsageError(
            "E-USE-12", f"--output {output} names a folder that is not there; make it: mkdir -p {output.parent}"
        )
    if output is not None and output.is_dir():
        raise UsageError("E-USE-12", f"--output {output} is a folder; name a file in it")


def read_sampling(options: Options) -> "SampleConfig | None":
    """How to draw, if it is asked for; what is about drawing has no meaning otherwise."""
    from dragoman.decoding.settings import SampleConfig
    from dragoman.errors import UsageError

    values = {name: getattr(options, name) for name in ("temperature", "top_k", "top_p", "seed")}
    asked = {name: value for name, value in values.items() if value is not None}
    if not options.sample:
        for name, value in asked.items():
            option = name.replace("_", "-")
            raise UsageError("E-USE-18", f"--{option} {value} is about drawing words; add --sample, or leave it out")
        return None
    if options.beam is not None:
        raise UsageError(
            "E-USE-18", f"--beam {options.beam} is about searching and --sample draws words; give one of them"
        )
    if options.shortlist:
        raise UsageError("E-USE-24", "--sample draws from all words and --shortlist leaves most out; give one of them")
    return SampleConfig.read(asked, section="sample")


def read_input(texts: list[str], path: Path | None, encoding: str = "utf-8") -> Iterator[list[str]]:
    """Lines in batches: all that were given, or as they come."""
    if texts:
        yield [line for text in texts for line in text.split("\n")]
    elif path is not None:
        from dragoman.text.reading import open_bytes

        with open_bytes(path) as file:
            yield from as_they_come(file.read, Reading(str(path), encoding))
    else:
        refuse_no_text(texts, path)
        yield from as_they_come(lambda size: os.read(sys.stdin.fileno(), size), Reading("standard input", encoding))


def as_they_come(read: Callable[[int], bytes], to_text: Callable[[bytes], str]) -> Iterator[list[str]]:
    """Whole lines as soon as they can be read, so that a program at the other end of a pipe gets its answer."""
    rest = b""
    while chunk := read(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        while lines:
            yield [to_text(line) for line in lines[:AT_ONCE]]
            lines = lines[AT_ONCE:]
    if rest:
        yield [to_text(rest)]


class Reading:
    """Bytes of one line after another as text, whatever they are. The first line that cannot be read is told."""

    def __init__(self, name: str, encoding: str) -> None:
        self.name, self.encoding = name, encoding
        self.lines, self.told = 0, False

    def __call__(self, line: bytes) -> str:
        self.lines += 1
        try:
            text = line.decode(self.encoding)
        except UnicodeDecodeError as problem:
            self.tell(line, problem.start)
            text = line.decode(self.encoding, errors="replace")
        return text.removesuffix("\r")

    def tell(self, line: bytes, place: int) -> None:
        from dragoman.text.reading import is_utf8, word_around

        if not self.told:
            name = "UTF-8" if is_utf8(self.encoding) else self.encoding
            print(
                f"dragoman: {self.name} is not {name}: byte 0x{line[place]:02X} in line {self.lines:,} "
                f"(“{word_around(line, place)}”); such bytes become �, so give the right --encoding",
                file=sys.stderr,
            )
        self.told = True


@contextmanager
def open_output(path: Path | None) -> Iterator[Any]:
    """Standard output, or a file that takes its name only when it is complete; a pipe, a device or what a link leads to
    is written into."""
    from dragoman.errors import SaveError

    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        yield sys.stdout
        return
    lasting = not path.is_symlink() and (path.is_file() or not path.exists())
    ready = path.with_name(path.name + ".new") if lasting else path
    try:
        with ready.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        if lasting:
            ready.replace(path)
    except OSError as problem:
        raise SaveError(
            "E-SAVE-01", f"{path} could not be written ({problem.strerror}); choose another --output"
        ) from None
    finally:
        if lasting:
            ready.unlink(missing_ok=True)  # what an error left half written


def write(translation: "Translation", out: Any, nbest: int, as_json: bool) -> None:
    ranked = [translation, *translation.alternatives]
    if as_json:
        line = as_dict(translation) | {"alternatives": [as_dict(other) for other in translation.alternatives]}
        print(json_module.dumps(line, ensure_ascii=False), file=out)
    elif nbest > 1:
        for rank, one in enumerate(ranked, start=1):
            print(f"{rank}\t{one.score:.4f}\t{with_alignment(one)}", file=out)
    else:
        print(with_alignment(translation), file=out)


def with_alignment(translation: "Translation") -> str:
    if translation.alignment is None:
        return translation.text
    return f"{translation.text}\t{' '.join(f'{source}-{target}' for source, target in translation.alignment)}"


def as_dict(translation: "Translation") -> dict[str, Any]:
    known = {
        "text": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "tokens": translation.tokens,
        "source_tokens": translation.source_tokens,
    }
    return known if translation.alignment is None else known | {"alignment": translation.alignment}
