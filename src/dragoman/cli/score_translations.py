"""dragoman score, of a translator: what it writes beside what it should have written."""

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.cli.score import Options
    from dragoman.decoding.translate import Translator
    from dragoman.evaluation.scores import Bucket, Score


def score_translations(model: str, task: str, corpora: Sequence[str], options: "Options") -> int:
    from dragoman.evaluation import scores
    from dragoman.text.corpus import check_alignment, find_corpus

    refuse_writer(model, task, len(corpora))
    check_alignment(find_corpus(corpora, encoding=options.encoding))  # mistakes are said before torch is imported
    translator = None if options.hypotheses else open_translator(model, options.threads)
    known = translator.about["languages"] if translator else ["", ""]
    languages = {"source_language": options.src or known[0] or None, "target_language": options.tgt or known[1] or None}
    pairs = list(find_corpus(corpora, **languages, encoding=options.encoding).pairs())
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if translator:
        said = partial(print, "dragoman:", file=sys.stderr)
        found = translator.translate(sources, beam=options.beam, precision=options.precision, notice=said)
        outputs = [translation.text for translation in found]
    else:
        outputs = read_hypotheses(Path(str(options.hypotheses)), len(pairs), options.encoding)
    measured = scores.score(outputs, references)
    buckets = scores.by_length(sources, outputs, references) if options.by_length else []
    exact = scores.exact_match(outputs, references)
    if options.json:
        print(json_module.dumps(as_dict(measured, buckets, exact, len(pairs)), ensure_ascii=False))
    else:
        show(measured, buckets, exact, len(pairs))
    return 0


def refuse_writer(model: str, task: str, files: int) -> None:
    from dragoman.errors import DataError

    if task == "write":
        raise DataError(
            "E-RUN-10",
            f"{model} learned to write, and is scored by one text, and {files} files were given; "
            f"use it so: dragoman score {model} TEXT",
        )


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
