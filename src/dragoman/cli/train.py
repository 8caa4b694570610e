"""dragoman train: two files in, a translator out; a text in, a writer of such; labels in, a classifier."""

import collections
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dragoman.cli.options import (
    Encoding,
    Epochs,
    Files,
    Flag,
    Minutes,
    Repeated,
    Seed,
    SourceLanguage,
    TargetLanguage,
    TrainingThreads,
    Whole,
    given_budgets,
)

if TYPE_CHECKING:
    from dragoman.jobs.events import Event
    from dragoman.jobs.request import Request
    from dragoman.jobs.start import Planned

LAST_LOOK = 30.0  # seconds that an open page has at most to be told how it ended
TEXTS = ("write", "fill", "restore", "embed", "classify")  # tasks whose files do not come in pairs


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """What may be said of a training. Nothing has to be: the rest is chosen from the files."""

    valid: Files | None = None
    """Validation data: SOURCE TARGET, or one corpus. Without it a part is split off by a hash of the source."""
    task: str = ""
    """What to learn: translate (two files, or pairs), write (a text) or classify (lines of label<TAB>text, or images
    with labels); of images also regress (numbers) and segment (a label for each pixel); else told from the files."""
    family: str = ""
    """Which kind of model. To translate: transformer (usual), rnn, t5 or marian. For a text: gpt (usual) or rnn, which
    write on; bert, which fills in; t5, which restores spans. An rnn's model.cell is rnn, gru or lstm; its
    model.attention none, additive, dot, bilinear, low-rank or scaled. To classify: rnn (usual), bag or bert, with
    model.pooling. For vectors of words: word2vec, whose model.kind is skip-gram or cbow, or glove. For images: cnn
    (usual), vit or mlp."""
    preset: str = ""
    """A fixed size: tiny, small, base (the paper's), or small-deep and base-deep (a deep encoder and a decoder of one
    block, for faster translating). Else the size is chosen from the corpus and the time."""
    config: Path | None = None
    """A TOML file of settings, in sections data, images, tokenizer, model, training, search."""
    set: Repeated = None
    """One setting, as section.key=value; may be repeated."""
    start_from: Annotated[str, Parameter(name="--from")] = ""
    """Start from this model's weights and tokenizer (fine-tuning)."""
    embeddings: str = ""
    """Begin with these vectors of words, wherever a token is a whole word: a file that word2vec, GloVe or gensim wrote
    as text or binary, or a run of the family word2vec or glove."""
    out: str = ""
    """The run's folder; else runs/<corpus>-<family>-<preset>."""
    minutes: Minutes = None
    """The whole time this command may take; the number of steps is fixed after a short timing."""
    epochs: Epochs = None
    """How often to see the whole corpus, however long it takes."""
    steps: Whole | None = None
    """The number of optimizer steps, outright."""
    seed: Seed = 1
    reproducible: Flag = False
    """The same bits for any number of workers under torchrun: one thread each, and sums in a fixed order."""
    threads: TrainingThreads = None
    device: str = "cpu"
    """Where to compute; only the CPU so far."""
    source_language: SourceLanguage = ""
    target_language: TargetLanguage = ""
    encoding: Encoding = "utf-8"
    fresh: Flag = False
    """Begin anew; an old run in the same folder is moved aside."""
    dry_run: Flag = False
    """Print the plan and stop."""
    page: Flag = False
    """Show the run in a browser while it trains, on 127.0.0.1; the address is printed."""
    json: Flag = False
    """Print every event as one JSON object a line."""


USUAL = Options()


def train(
    *corpora: Annotated[
        str,
        Parameter(
            help="SOURCE and TARGET, line by line; or .tsv, .jsonl or .tmx; or a text; or lines of label<TAB>text; "
            "or images: idx, .npz, or a folder"
        ),
    ],
    options: Options = USUAL,
) -> int:
    """Learn to translate from parallel text, to write from a text, or to label from labelled texts or images.

    The same command goes on with a stopped run.

    With nothing but the files, everything else is chosen from them and said before the training begins.
    """
    from dragoman.errors import MachineError
    from dragoman.jobs.machine import refuse_odd_threads
    from dragoman.training.torchrun import is_first_worker

    refuse_odd_threads(options.threads)
    if options.device != "cpu":
        raise MachineError(
            "E-ENV-01", f"the device {options.device} cannot be used yet; leave out --device to use the CPU"
        )
    request = as_request(corpora, options)
    refuse_mistakes(request)

    from dragoman.cli.display import show
    from dragoman.jobs.start import start

    events = start(request, threads=options.threads, fresh=options.fresh, dry_run=options.dry_run)
    if not is_first_worker():
        collections.deque(events, maxlen=0)  # it works, and the first one tells
        return 0
    with_its_page = options.page and not options.dry_run
    show(with_page(events, request) if with_its_page else events, as_json=options.json)
    return 0


def as_request(corpora: Sequence[str], options: Options) -> "Request":
    from dragoman.jobs.request import Request, gather_settings

    settings = gather_settings(options.set or [], options.config)
    budgets = given_budgets(options, ("minutes", "epochs", "steps"))
    steps, training = budgets.pop("steps"), settings.setdefault("training", {})
    if steps is not None:
        training["steps"] = steps
    elif budgets["epochs"] and training.get("steps") == os.environ.get("DRAGOMAN_STEPS"):
        training.pop("steps", None)
    if options.reproducible:
        training["reproducible"] = True
    same = ("out", "task", "family", "preset", "encoding", "start_from", "embeddings", "seed")
    return Request.read(
        {
            "corpora": list(corpora),
            "valid": options.valid or [],
            "source": options.source_language,
            "target": options.target_language,
            "settings": {section: values for section, values in settings.items() if values},
        }
        | budgets
        | {name: getattr(options, name) for name in same},
        section="train",
    )


def with_page(events: "Iterator[Event | Planned]", request: "Request") -> "Iterator[Event | Planned]":
    """The same events; as soon as the run has begun, its page is there."""
    from dragoman.cli.page import page_beside
    from dragoman.jobs.events import Finished, Notice
    from dragoman.jobs.start import Planned

    folder, address = Path(request.out) if request.out else None, ""
    with ExitStack() as beside:
        for event in events:
            yield event
            if isinstance(event, Planned):
                folder = Path(dict(event.lines)["folder"])
            if folder is not None and (folder / "run.toml").exists() and not isinstance(event, Finished):
                address = beside.enter_context(page_beside(folder))
                yield Notice(f"the page of this run: {address}" if address else "the page of this run cannot be shown")
                folder = None
        if address:
            await_last_look(address)


def await_last_look(address: str) -> None:
    """Until an open page was told how the run ended, and a moment more for the answer to arrive."""
    from dragoman.cli.page import is_waiting

    began = time.monotonic()
    if not is_waiting(address):
        return  # nobody looks on
    while is_waiting(address) and time.monotonic() - began < LAST_LOOK:
        time.sleep(0.5)
    time.sleep(0.5)


def refuse_mistakes(request: "Request") -> None:
    """What can be told before torch is imported: a missing file, a setting that there is not."""
    from dragoman.cli.kind import refuse_no_model
    from dragoman.images.corpus import find_images, holds_images
    from dragoman.jobs.prepare import DataConfig
    from dragoman.text.corpus import find_corpus, is_lone_text
    from dragoman.text.reading import refuse_missing
    from dragoman.text.tokenizer import TokenizerConfig

    DataConfig.read(request.asked("data"), section="data")
    TokenizerConfig.read(request.asked("tokenizer"), section="tokenizer")
    corpora = request.corpora
    if holds_images(corpora):
        find_images(corpora)
    elif request.task in TEXTS or request.family in ("bag", "word2vec", "glove") or is_lone_text(corpora):
        for path in corpora:
            refuse_missing(Path(path))
    else:
        find_corpus(corpora, encoding=request.encoding)
    for path in (*request.valid, *([request.embeddings] if request.embeddings else [])):
        if not Path(path).is_dir():
            refuse_missing(Path(path))
    if request.start_from:
        refuse_no_model(request.start_from)
