"""dragoman score, of a classifier of texts: how many labels are right, and which are given for which."""

import json as json_module
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dragoman.cli.score import Options
    from dragoman.evaluation.confusion import Confusion


def score_labels(model: str, corpora: Sequence[str], options: "Options") -> int:
    from dragoman.text.corpus import Dropped
    from dragoman.text.labels import find_labelled

    refuse_plot(options.plot)
    corpus, dropped = find_labelled(corpora, options.encoding), Dropped(thing="text")

    from dragoman.decoding.classify import Classifier
    from dragoman.evaluation.confusion import score_classifier
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(options.threads)
    notice = lambda sentence: print(f"dragoman: {sentence}", file=sys.stderr)  # noqa: E731
    found = score_classifier(load_as(Classifier, model), corpus.texts(dropped), corpus.name, notice)
    for sentence in dropped.sentences():
        notice(sentence)
    tell_confusion(found, options)
    return 0


def tell_confusion(found: "Confusion", options: "Options") -> None:
    """As a plot where it is asked for, and as a table or JSON."""
    if options.plot:
        from dragoman.seeing.plots import draw_confusion, save_as

        save_as(draw_confusion(found), options.plot)
    if options.json:
        print(json_module.dumps(confusion_as_dict(found), ensure_ascii=False))
    else:
        show_confusion(found)


def refuse_plot(path: Path | None) -> None:
    from importlib.util import find_spec

    from dragoman.errors import MachineError, UsageError

    if path and path.suffix.lower() not in (".png", ".svg"):
        raise UsageError("E-CLS-06", f"--plot {path} is neither .png nor .svg; name it {path.with_suffix('.png')}")
    if path and find_spec("matplotlib") is None:
        raise MachineError(
            "E-CLS-07", "--plot draws with matplotlib, which is missing: pip install 'dragoman[plot]', or leave it out"
        )


def refuse_plot_of(model: str) -> NoReturn:
    from dragoman.errors import UsageError

    raise UsageError("E-CLS-06", f"--plot draws the labels of a classifier, and {model} is none; leave it out")


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
