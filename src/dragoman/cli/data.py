"""`dragoman data`: look at parallel text before training on it, measure it, split it, or make some.

The result goes to standard output, as text or with --json as one JSON object a line; notes go to standard error.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from dragoman.cli.options import Whole

if TYPE_CHECKING:
    from dragoman.text.check import Report
    from dragoman.text.corpus import Corpus
    from dragoman.text.stats import Stats

app = App(name="data", help="check, measure and split parallel text, or make some")

Files = Annotated[Path, Parameter(help="SOURCE TARGET, or any number of .tsv, .jsonl or .tmx; .gz .bz2 .xz .zst too")]
Source = Annotated[str | None, Parameter(name="--src", help="the source language, where a file holds several")]
Target = Annotated[str | None, Parameter(name="--tgt", help="the target language, where a file holds several")]
Encoding = Annotated[str, Parameter(help="how the text is written, if not as UTF-8")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="print one JSON object a line")]
Against = Annotated[
    list[Path] | None,
    Parameter(consume_multiple=1, negative="", help="a corpus that should share no sentence, such as the test part"),
]

LABELS = {
    "words": "words",
    "characters": "characters",
    "mean_length": "words a sentence, mean",
    "median_length": "median",
    "length_95": "95 % have at most",
    "longest": "longest",
    "distinct_words": "distinct words",
    "distinct_characters": "distinct characters",
}


@app.command
def check(
    *files: Files,
    against: Against = None,
    limit: Annotated[Whole | None, Parameter(help="look at the first N pairs of each corpus only")] = None,
    src: Source = None,
    tgt: Target = None,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> int:
    """find what is wrong with a corpus: pairs that drift apart, empty sides, repetitions, wrong encodings, leaks"""
    from dragoman.errors import UsageError
    from dragoman.text.check import check as examine

    if limit is not None and limit < 1:
        raise UsageError("E-USE-12", f"--limit {limit} looks at nothing; give 1 or more")
    corpus = find(files, src, tgt, encoding)
    other = find(tuple(against), src, tgt, encoding) if against else None
    report = examine(corpus, against=other, limit=limit)
    print_findings(corpus, report, as_json)
    return report.exit_code


def find(files: tuple[Path, ...], source: str | None, target: str | None, encoding: str) -> "Corpus":
    from dragoman.text.corpus import find_corpus

    return find_corpus(files, source_language=source, target_language=target, encoding=encoding)


def print_findings(corpus: "Corpus", report: "Report", as_json: bool) -> None:
    for finding in report.findings:
        print(to_json(asdict(finding)) if as_json else f"{finding.severity:<9}{finding.sentence}")
    severities = [finding.severity for finding in report.findings]
    counts = {kind: severities.count(kind) for kind in ("error", "warning", "notice")}
    sides = corpus.sides if report.pairs else ()
    if as_json:
        summary = {"pairs": report.pairs, **{f"{kind}s": count for kind, count in counts.items()}}
        print(to_json(summary | {"sides": list(sides)}))
    else:
        names = ", ".join(str(path) for path in corpus.paths) + (f" ({' → '.join(sides)})" if sides else "")
        found = (
            ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items() if count)
            or "nothing wrong"
        )
        print(f"{report.pairs:,} pairs in {names}: {found}")


@app.command
def stats(
    *files: Files, src: Source = None, tgt: Target = None, encoding: Encoding = "utf-8", as_json: Json = False
) -> None:
    """count pairs, words and characters, and say how long the sentences are"""
    from dragoman.text.stats import stats as measure

    numbers = measure(find(files, src, tgt, encoding))
    print(to_json(asdict(numbers)) if as_json else draw_stats(numbers))


def draw_stats(numbers: "Stats") -> str:
    lines = [f"{'':<24}{numbers.source.language or 'source':>14}{numbers.target.language or 'target':>14}"]
    for key, label in LABELS.items():
        lines.append(f"{label:<24}{getattr(numbers.source, key):>14,}{getattr(numbers.target, key):>14,}")
    whole = {
        "pairs": f"{numbers.pairs:,}",
        "with an empty side": f"{numbers.empty:,}",
        "repeated": f"{numbers.duplicates:.1%}",
        "target to source length": f"{numbers.length_ratio:.2f}",
        "characters in common": f"{numbers.shared_characters:,}",
    }
    return "\n".join([*(f"{label:<24}{value:>14}" for label, value in whole.items()), "", *lines])


@app.command
def split(
    *files: Files,
    out: Annotated[Path, Parameter(help="the folder to write train, valid and test into")],
    valid: Annotated[
        float, Parameter(help="how much to validate on: a share if below 1, else a number of pairs")
    ] = 0.05,
    test: Annotated[float, Parameter(help="how much to test on, likewise")] = 0.05,
    seed: Annotated[Whole, Parameter(help="another seed, another split")] = 0,
    src: Source = None,
    tgt: Target = None,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """write train, valid and test parts so that no source sentence stands in two of them"""
    from dragoman.text.split import split as divide

    done = divide(find(files, src, tgt, encoding), out, valid, test, seed)
    for sentence in done.dropped.sentences():
        print(f"{sentence}; dropped as pairs", file=sys.stderr)
    for part, count in done.counts.items():
        paths = [str(path) for path in done.paths if path.name.startswith(f"{part}.")]
        print(
            to_json({"part": part, "pairs": count, "files": paths}) if as_json else f"{count:>12,}  {' '.join(paths)}"
        )


@app.command
def make(
    kind: Annotated[
        str,
        Parameter(
            help="what the pairs are about: dates, numbers, copy, reverse, or several, as copy+reverse; or what is on "
            "pictures: road, boxes, shapes"
        ),
    ],
    out: Annotated[Path, Parameter(help="the folder to write train, valid and test into")],
    *,
    count: Annotated[Whole, Parameter(help="pairs to train on")] = 10_000,
    valid: Annotated[Whole, Parameter(help="pairs to validate on")] = 500,
    test: Annotated[Whole, Parameter(help="pairs to test on")] = 500,
    seed: Annotated[Whole, Parameter(help="the same seed makes the same corpus")] = 0,
    as_json: Json = False,
) -> None:
    """generate a corpus: dates to write as 2026-11-15, numbers in words, sequences; or pictures with what is on them"""
    from dragoman.config import nearest
    from dragoman.errors import UsageError
    from dragoman.images import generated as pictures
    from dragoman.text import generated as pairs

    known = [*pairs.KINDS, *pictures.KINDS]
    wrong = next((one for one in kind.split("+") if one not in known), None)
    if wrong is not None:
        told, listed = nearest(wrong, known), ", ".join(sorted(known))
        others = "" if listed in told else f" The kinds are {listed}."
        raise UsageError("E-USE-02", f"there is no kind of generated data called {wrong!r}; {told}{others}")
    write = pictures.write_pictures if kind in pictures.KINDS else pairs.write_corpus
    for path in write(kind, out, count=count, valid=valid, test=test, seed=seed):
        print(to_json({"file": str(path)}) if as_json else path)


def to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
