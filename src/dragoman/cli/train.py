"""dragoman train: two files in, a translator out; a text in, a writer of such; labels in, a classifier."""

import collections
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from dragoman.jobs.events import Event
    from dragoman.jobs.request import Request
    from dragoman.jobs.start import Planned

WORDS = Parameter(negative="")
LAST_LOOK = 30.0  # seconds that an open page has at most to be told how it ended
TEXTS = ("write", "fill", "restore", "embed", "classify")  # tasks whose files do not come in pairs


def train(
    *corpora: Annotated[
        str,
        Parameter(
            help="SOURCE and TARGET, line by line; or .tsv, .jsonl or .tmx; or a text; or lines of label<TAB>text; "
            "or images: idx, .npz, or a folder"
        ),
    ],
    valid: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    task: str = "",
    family: str = "",
    preset: str = "",
    config: Path | None = None,
    set: Annotated[list[str] | None, Parameter(negative="")] = None,
    start_from: Annotated[str, Parameter(name="--from")] = "",
    embeddings: str = "",
    out: str = "",
    minutes: Annotated[float | None, Parameter(env_var="DRAGOMAN_MINUTES")] = None,
    epochs: Annotated[float | None, Parameter(env_var="DRAGOMAN_EPOCHS")] = None,
    steps: int | None = None,
    seed: Annotated[int, Parameter(env_var="DRAGOMAN_SEED")] = 1,
    reproducible: Annotated[bool, WORDS] = False,
    threads: Annotated[int | None, Parameter(env_var="DRAGOMAN_THREADS")] = None,
    device: str = "cpu",
    source_language: Annotated[str, Parameter(name=["--source-language", "--src"])] = "",
    target_language: Annotated[str, Parameter(name=["--target-language", "--tgt"])] = "",
    encoding: str = "utf-8",
    fresh: Annotated[bool, WORDS] = False,
    dry_run: Annotated[bool, WORDS] = False,
    page: Annotated[bool, WORDS] = False,
    json: Annotated[bool, WORDS] = False,
) -> int:
    """Learn to translate from parallel text, to write from a text, or to label from labelled texts or images.

    The same command goes on with a stopped run.

    With nothing but the files, everything else is chosen from them and said before the training begins.

    Parameters
    ----------
    valid
        Validation data: SOURCE TARGET, or one corpus. Without it a part is split off by a hash of the source.
    task
        What to learn: translate (two files, or pairs), write (a text) or classify (lines of label<TAB>text, or images
        with labels); of images also regress (numbers) and segment (a label for each pixel); else told from the files.
    family
        Which kind of model. To translate: transformer (usual), rnn, t5 or marian. For a text: gpt (usual) or rnn, which
        write on; bert, which fills in; t5, which restores spans. An rnn's model.cell is rnn, gru or lstm; its
        model.attention none, additive, dot, bilinear, low-rank or scaled. To classify: rnn (usual), bag or bert, with
        model.pooling. For vectors of words: word2vec, whose model.kind is skip-gram or cbow, or glove. For images: cnn
        (usual), vit or mlp.
    preset
        A fixed size: tiny, small, base (the paper's), or small-deep and base-deep (a deep encoder and a decoder of
        one block, for faster translating). Else the size is chosen from the corpus and the time.
    config
        A TOML file of settings, in sections data, images, tokenizer, model, training, search.
    set
        One setting, as section.key=value; may be repeated.
    start_from
        Start from this model's weights and tokenizer (fine-tuning).
    embeddings
        Begin with these vectors of words, wherever a token is a whole word: a file that word2vec, GloVe or gensim wrote
        as text or binary, or a run of the family word2vec or glove.
    out
        The run's folder; else runs/<corpus>-<family>-<preset>.
    minutes
        The whole time this command may take; the number of steps is fixed after a short timing.
    epochs
        How often to see the whole corpus, however long it takes.
    steps
        The number of optimizer steps, outright.
    seed
        Decides the first weights, the order of the batches and the dropout.
    reproducible
        The same bits for any number of workers under torchrun: one thread each, and sums in a fixed order.
    threads
        Processor threads to use; else one for each core.
    device
        Where to compute; only the CPU so far.
    source_language
        The source's language, such as de, where the file names do not tell; needed for some .tmx and .jsonl.
    target_language
        The target's language.
    encoding
        Of the text files.
    fresh
        Begin anew; an old run in the same folder is moved aside.
    dry_run
        Print the plan and stop.
    page
        Show the run in a browser while it trains, on 127.0.0.1; the address is printed.
    json
        Print every event as one JSON object a line.
    """
    from dragoman.errors import MachineError
    from dragoman.jobs.machine import is_first_worker, refuse_no_threads
    from dragoman.jobs.request import Request, gather_settings

    refuse_no_threads(threads)
    if device != "cpu":
        raise MachineError("E-ENV-01", f"the device {device} cannot be used yet; leave out --device to use the CPU")
    settings = gather_settings(set or [], config)
    if steps is not None:
        settings.setdefault("training", {})["steps"] = steps
    if reproducible:
        settings.setdefault("training", {})["reproducible"] = True
    request = Request.read(
        {
            "corpora": list(corpora), "valid": valid or [], "out": out,
            "task": task, "family": family, "preset": preset, "source": source_language, "target": target_language,
            "encoding": encoding, "start_from": start_from, "embeddings": embeddings, "minutes": minutes,
            "epochs": epochs, "seed": seed, "settings": settings,
        },
        section="train",
    )  # fmt: skip
    refuse_mistakes(request)

    from dragoman.cli.display import show
    from dragoman.jobs.start import start

    events = start(request, threads=threads, fresh=fresh, dry_run=dry_run)
    if not is_first_worker():
        collections.deque(events, maxlen=0)  # it works, and the first one tells
        return 0
    show(with_page(events, request) if page and not dry_run else events, as_json=json)
    return 0


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
