"""dragoman score: how good a model is on text it has not seen."""

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from dragoman.decoding.translate import Translator
    from dragoman.evaluation.confusion import Confusion
    from dragoman.evaluation.scores import Bucket, Score

WORDS = Parameter(negative="")


def score(
    model: str,
    *corpora: str,
    hypotheses: Path | None = None,
    beam: int | None = None,
    by_length: Annotated[bool, WORDS] = False,
    plot: Path | None = None,
    src: str | None = None,
    tgt: str | None = None,
    encoding: str = "utf-8",
    precision: Literal["float32", "int8"] = "float32",
    threads: int | None = None,
    json: Annotated[bool, WORDS] = False,
) -> int:
    """Translate SOURCE and compare with REFERENCE by sacreBLEU: BLEU, chrF and TER with 95 % intervals.

    A language model is given one TEXT, and its perplexity is told: exp of the mean of −log p(token | all before it).
    A classifier is given lines of label<TAB>text, or images with labels: accuracy with Wilson's 95 % interval, F1,
    which labels it mixed up. Of images also numbers (R², mean error) and masks (mean IoU, pixel accuracy).
    Vectors of words are given what people judged: word<TAB>word<TAB>score, or analogies of four words a line.

    Parameters
    ----------
    model
        A run's folder, a model's, or one of Hugging Face.
    corpora
        SOURCE and REFERENCE, line by line; or one .tsv, .jsonl or .tmx; or a TEXT for a language model; or files of
        label<TAB>text for a classifier; or images (idx, .npz, a folder) for a model that reads them; or tests of words,
        such as WordSim-353 and questions-words.txt, for word2vec and glove.
    hypotheses
        Score this file's lines instead of translating; the model is not opened then.
    beam
        Beginnings kept at each step of the search; 1 is greedy.
    by_length
        Also the scores of short and long sentences apart.
    plot
        Of a classifier: draw which labels were given for which into this .png or .svg.
    src
        The source's language, where a file holds several; else the model's.
    tgt
        The target's language.
    encoding
        Of the text files.
    precision
        float32, or int8: faster, and a quarter of the memory; what it costs was measured when the model was saved.
    threads
        Processor threads to use; else one for each core.
    json
        One JSON object on one line.
    """
    from dragoman.cli.kind import kind_of
    from dragoman.cli.score_images import score_images
    from dragoman.decoding.settings import refuse_wide
    from dragoman.errors import DataError, UsageError
    from dragoman.evaluation import scores
    from dragoman.images import FAMILIES as IMAGE_FAMILIES
    from dragoman.jobs.machine import refuse_no_threads
    from dragoman.text.corpus import check_alignment, find_corpus, is_lone_text

    refuse_no_threads(threads)
    refuse_wide(beam)
    task, family = ("", "") if hypotheses else kind_of(Path(model))
    if family in IMAGE_FAMILIES:
        return score_images(model, corpora, threads, json, plot)
    if task == "classify":
        return score_labels(model, corpora, encoding, threads, json, plot)
    if plot:
        raise UsageError("E-CLS-06", f"--plot draws the labels of a classifier, and {model} is none; leave it out")
    if task == "embed":
        from dragoman.cli.score_words import score_words

        return score_words(model, corpora, encoding, threads, json)
    if is_lone_text(corpora) and not hypotheses:
        refuse_no_reference(model, corpora[0], task)
        return score_text(model, Path(corpora[0]), encoding, threads, json)
    if task == "write":
        raise DataError(
            "E-RUN-10",
            f"{model} learned to write, and is scored by one text, and {len(corpora)} files were given; "
            f"use it so: dragoman score {model} TEXT",
        )
    check_alignment(find_corpus(corpora, encoding=encoding))  # mistakes are said before torch is imported
    translator = None if hypotheses else open_translator(model, threads)
    known = translator.about["languages"] if translator else ["", ""]
    languages = {"source_language": src or known[0] or None, "target_language": tgt or known[1] or None}
    pairs = list(find_corpus(corpora, **languages, encoding=encoding).pairs())
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if translator:
        said = partial(print, "dragoman:", file=sys.stderr)
        found = translator.translate(sources, beam=beam, precision=precision, notice=said)
        outputs = [translation.text for translation in found]
    else:
        outputs = read_hypotheses(Path(str(hypotheses)), len(pairs), encoding)
    measured = scores.score(outputs, references)
    buckets = scores.by_length(sources, outputs, references) if by_length else []
    exact = scores.exact_match(outputs, references)
    if json:
        print(json_module.dumps(as_dict(measured, buckets, exact, len(pairs)), ensure_ascii=False))
    else:
        show(measured, buckets, exact, len(pairs))
    return 0


def refuse_no_reference(model: str, path: str, task: str) -> None:
    from dragoman.errors import UsageError

    if task == "translate":
        raise UsageError(
            "E-USE-01",
            f"{model} is a translator and is scored by what it should have written, and one file was given ({path}); "
            f"use it so: dragoman score {model} SOURCE REFERENCE",
        )


def score_text(model: str, path: Path, encoding: str, threads: int | None, json: bool) -> int:
    from dragoman.text.reading import read_lines, refuse_missing

    refuse_missing(path)

    from dragoman.decoding.generate import TextWriter
    from dragoman.evaluation.perplexity import perplexity
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(threads)
    writer = load_as(TextWriter, model)
    found = perplexity(writer.model, writer.tokenizer, read_lines(path, encoding))
    per_token, bits = found.per_token, found.bits_per_character
    if json:
        print(json_module.dumps({**found._asdict(), "perplexity": per_token, "bits_per_character": bits}))
    else:
        unknown = f", {found.unknown:,} tokens unknown to the model" if found.unknown else ""
        print(f"{found.tokens:,} tokens, {found.characters:,} characters{unknown}")
        print(f"perplexity {per_token:.4g} a token   {found.nats_per_token:.4f} nats   {bits:.3f} bits a character")
    return 0


def score_labels(
    model: str, corpora: Sequence[str], encoding: str, threads: int | None, json: bool, plot: Path | None
) -> int:
    from dragoman.text.corpus import Dropped
    from dragoman.text.labels import find_labelled

    refuse_plot(plot)
    corpus, dropped = find_labelled(corpora, encoding), Dropped(thing="text")

    from dragoman.decoding.classify import Classifier
    from dragoman.evaluation.confusion import score_classifier
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(threads)
    notice = lambda sentence: print(f"dragoman: {sentence}", file=sys.stderr)  # noqa: E731
    found = score_classifier(load_as(Classifier, model), corpus.texts(dropped), corpus.name, notice)
    for sentence in dropped.sentences():
        notice(sentence)
    if plot:
        from dragoman.seeing.plots import draw_confusion, save_as

        save_as(draw_confusion(found), plot)
    if json:
        print(json_module.dumps(confusion_as_dict(found), ensure_ascii=False))
    else:
        show_confusion(found)
    return 0


def refuse_plot(path: Path | None) -> None:
    from importlib.util import find_spec

    from dragoman.errors import MachineError, UsageError

    if path and path.suffix.lower() not in (".png", ".svg"):
        raise UsageError("E-CLS-06", f"--plot {path} is neither .png nor .svg; name it {path.with_suffix('.png')}")
    if path and find_spec("matplotlib") is None:
        raise MachineError(
            "E-CLS-07", "--plot draws with matplotlib, which is missing: pip install 'dragoman[plot]', or leave it out"
        )


def show_confusion(found: "Confusion") -> None:
    low, high = found.interval
    print(f"{found.texts:,} {found.counted}, {found.right:,} labelled right")
    print(
        f"accuracy {found.accuracy:.2%} (95 % interval {low:.2%} to {high:.2%}, Wilson)   macro-F1 {found.macro_f1:.2%}"
    )
    wide = max(8, *(len(name) for name in found.classes))
    print(f"\n{'label':<{wide}}{found.counted:>8}{'precision':>11}{'recall':>9}{'F1':>9}")
    for one in found.by_class:
        print(f"{one.label:<{wide}}{one.texts:>8,}{one.precision:>11.1%}{one.recall:>9.1%}{one.f1:>9.1%}")
    column = max(6, *(len(name) for name in found.classes)) + 2
    print("\nright label in rows, given label in columns")
    print(" " * wide + "".join(f"{name:>{column}}" for name in found.classes))
    for name, row in zip(found.classes, found.counts.tolist(), strict=True):
        print(f"{name:<{wide}}" + "".join(f"{count:>{column},}" for count in row))


def confusion_as_dict(found: "Confusion") -> dict[str, Any]:
    return {
        found.counted: found.texts,
        "right": found.right,
        "accuracy": found.accuracy,
        "interval": list(found.interval),
        "macro_f1": found.macro_f1,
        "classes": [asdict(one) for one in found.by_class],
        "confusion": found.counts.tolist(),
    }


def open_translator(model: str, threads: int | None) -> "Translator":
    from dragoman.jobs.machine import use_large_pages, use_threads

    use_large_pages()
    use_threads(threads)

    from dragoman.decoding.translate import Translator
    from dragoman.jobs.open import load_as

    return load_as(Translator, model)


def read_hypotheses(path: Path, count: int, encoding: str) -> list[str]:
    from dragoman.errors import DataError
    from dragoman.text.reading import read_lines

    lines = list(read_lines(path, encoding))
    if len(lines) != count:
        raise DataError(
            "E-DATA-12", f"{path} has {len(lines):,} lines and there are {count:,} references; they must pair up"
        )
    return lines


def show(found: "list[Score]", buckets: "list[Bucket]", exact: float, sentences: int) -> None:
    print(f"{sentences:,} sentences, {exact:.1f} % exactly as the reference")
    for one in found:
        margin = "" if one.margin is None else f" ± {one.margin:.2f}"
        print(f"{one.name:<6} {one.value:6.2f}{margin}   {one.signature}")
    if buckets:
        print(f"\n{'words':<10}{'sentences':>10}{'BLEU':>8}{'chrF':>8}")
        for bucket in buckets:
            print(f"{bucket.words:<10}{bucket.sentences:>10,}{bucket.bleu:>8.2f}{bucket.chrf:>8.2f}")


def as_dict(found: "list[Score]", buckets: "list[Bucket]", exact: float, sentences: int) -> dict[str, Any]:
    values: dict[str, Any] = {"sentences": sentences, "exact": exact}
    values["scores"] = [asdict(one) for one in found]
    return values | ({"by_length": [asdict(bucket) for bucket in buckets]} if buckets else {})
