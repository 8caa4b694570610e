"""dragoman score, of vectors of words: how they agree with what people judged."""

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.cli.score import Options
    from dragoman.evaluation.words import Correlation, SectionScore


def score_words(model: str, files: Sequence[str], options: "Options") -> int:
    from dragoman.errors import UsageError
    from dragoman.text.word_tests import read_word_test

    if not files:
        raise UsageError(
            "E-USE-01", f"{model} has vectors of words; give tests of words, such as WordSim-353 or questions-words.txt"
        )
    tests = [read_word_test(Path(file), options.encoding) for file in files]

    from dragoman.decoding.words import WordVectors
    from dragoman.evaluation.words import score_analogies, score_judgements
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as
    from dragoman.text.word_tests import Judgement

    use_threads(options.threads)
    vectors = load_as(WordVectors, model)
    told = []
    for file, test in zip(files, tests, strict=True):
        if isinstance(test[0], Judgement):
            found = score_judgements(vectors, test, file)
            told.append(correlation_as_dict(file, found))
            show = () if options.json else correlation_lines(file, found)
        else:
            sections = score_analogies(vectors, test, file)
            told.append(sections_as_dict(file, sections))
            show = () if options.json else section_lines(file, sections)
        for line in show:
            print(line)
    if options.json:
        print(json_module.dumps({"tests": told}, ensure_ascii=False))
    return 0


def correlation_lines(file: str, found: "Correlation") -> list[str]:
    low, high = found.interval
    return [
        f"{file}: {found.pairs:,} pairs, {found.left_out:,} left out for unknown words",
        f"Spearman of cosines and judgements {found.spearman:.4f} (95 % interval {low:.4f} to {high:.4f}, bootstrap)",
    ]


def section_lines(file: str, sections: "Sequence[SectionScore]") -> list[str]:
    whole = sections[-1]
    wide = max(10, *(len(one.name) for one in sections))
    lines = [
        f"{file}: {whole.questions:,} analogies, {whole.left_out:,} left out for unknown words",
        f"{'section':<{wide}}{'questions':>11}{'left out':>10}{'right':>8}{'accuracy':>10}   95 % interval (Wilson)",
    ]
    for one in sections:
        low, high = one.interval
        lines.append(
            f"{one.name:<{wide}}{one.questions:>11,}{one.left_out:>10,}{one.right:>8,}{one.accuracy:>10.1%}"
            f"   {low:.1%} to {high:.1%}"
        )
    return lines


def correlation_as_dict(file: str, found: "Correlation") -> dict[str, Any]:
    return {
        "file": file,
        "pairs": found.pairs,
        "left_out": found.left_out,
        "spearman": found.spearman,
        "interval": list(found.interval),
    }


def sections_as_dict(file: str, sections: "Sequence[SectionScore]") -> dict[str, Any]:
    values = [
        {
            "section": one.name,
            "questions": one.questions,
            "left_out": one.left_out,
            "right": one.right,
            "accuracy": one.accuracy,
            "interval": list(one.interval),
        }
        for one in sections
    ]
    return {"file": file, "sections": values[:-1], "all": values[-1]}
