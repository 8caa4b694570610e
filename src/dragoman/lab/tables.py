"""A report's numbers as tables of words: the terminal, report.md and report.html show the same ones."""

from textwrap import shorten

import numpy as np
from jaxtyping import Float

from dragoman.evaluation.scores import Score
from dragoman.evaluation.significance import Paired
from dragoman.lab.regressors import read_numbers
from dragoman.lab.results import (
    Compared,
    HeldOut,
    HeldOutItems,
    Labelled,
    Numbered,
    Report,
    Segmented,
    Translated,
)
from dragoman.lab.segmenters import read_overlaps
from dragoman.seeing.comparison import Table

DIFFERING = 8  # items shown on which the models do not agree
OVER_IMAGES = (
    "The interval is of 1,000 resamples of the images; p is that of the difference to the line above, by paired "
    "bootstrap over the images, one-sided: below 0.05 it is hardly luck of the test set. The luck of the seed is not "
    "in it: each model was trained once."
)


def all_tables(report: Report) -> list[Table]:
    tables = [*tables_of_task(report), costs(report)]
    return [*tables, rates(report)] if any(len(one.rates) > 1 for one in report.models) else tables


def tables_of_task(report: Report) -> list[Table]:
    match report.task:
        case "classify":
            return label_tables(report)
        case "regress":
            return number_tables(report)
        case "segment":
            return mask_tables(report)
        case _:
            return [scores(report), by_length(report)]


# ── translators ───────────────────────────────────────────────────────────────────────────


def scores(report: Report) -> Table:
    tests = {pair.second: pair.tests for pair in report.neighbours}
    rows = [[one.name, *map(with_margin, one.measured.scores), *p_values(tests.get(one.name))] for one in report.models]
    note = (
        f"{sentences_of(report).sentences:,} sentences, {report.budget} each. ± is half of the 95 % interval; p is "
        "that of the difference to the line above, by paired bootstrap, one-sided: below 0.05 it is hardly luck of the "
        "test set. The luck of the seed is not in it: each model was trained once. The third score is taken on "
        "lower-cased text in 13a tokens, for comparison with published tokenised figures."
    )
    return Table("Scores", note, ["model", "BLEU", "chrF", "BLEU lower-cased", "p (BLEU)", "p (chrF)"], rows)


def by_length(report: Report) -> Table:
    measured = [(one.name, translated(one).by_length) for one in report.models]
    buckets = measured[0][1]
    header = ["model", *(f"{bucket.words} words" for bucket in buckets), "fall"]
    rows = [
        [name, *(f"{one.bleu:.1f}" for one in found), f"{found[0].bleu - found[-1].bleu:.1f}"]
        for name, found in measured
    ]
    held = ", ".join(f"{bucket.sentences:,}" for bucket in buckets)
    how = sentences_of(report).how
    note = f"BLEU apart by the words of the source ({held} sentences): {how}. Fall: from first to last."
    return Table("Scores by length", note, header, rows)


def translated(one: Compared) -> Translated:
    assert isinstance(one.measured, Translated)
    return one.measured


def sentences_of(report: Report) -> HeldOut:
    assert isinstance(report.test, HeldOut)
    return report.test


# ── classifiers ───────────────────────────────────────────────────────────────────────────


def label_tables(report: Report) -> list[Table]:
    test = items_of(report)
    measured = [(one.name, labelled(one)) for one in report.models]
    tests = {pair.second: pair.tests for pair in report.neighbours}
    rows = [
        [name, *percent(found), f"{found.scores[1].value:.2f}", *p_values(tests.get(name), 1)]
        for name, found in measured
    ]
    note = (
        f"{test.items:,} items, {report.budget} each. The interval is Wilson's 95 %; p is that of the difference to "
        "the line above, by McNemar's exact test, one-sided: below 0.05 it is hardly luck of the test set. The luck of "
        "the seed is not in it: each model was trained once."
    )
    header = ["model", "accuracy %", "95 % interval", "macro-F1 %", "p"]
    return [Table("Scores", note, header, rows), by_label(measured), where_they_differ(report, test)]


def percent(found: Labelled | Segmented) -> list[str]:
    """The first score and its interval."""
    low, high = found.interval
    return [f"{found.scores[0].value:.2f}", f"{100 * low:.2f} to {100 * high:.2f}"]


def by_label(measured: list[tuple[str, Labelled]]) -> Table:
    classes = [(score.label, score.texts) for score in measured[0][1].by_class]
    rows = [
        [label, f"{there:,}", *(f"{100 * found.by_class[place].f1:.1f}" for _, found in measured)]
        for place, (label, there) in enumerate(classes)
    ]
    note = "F1 in percent: how many of a label are found, and how many of those given it have it, in one number."
    return Table("By label", note, ["label", "items", *(name for name, _ in measured)], rows)


def where_they_differ(report: Report, test: HeldOutItems) -> Table:
    outputs = [one.measured.outputs for one in report.models]
    differing = [place for place, given in enumerate(zip(*outputs, strict=True)) if len(set(given)) > 1]
    rows = [
        [shown(test.names[place]), test.labels[place], *(given[place] for given in outputs)]
        for place in differing[:: max(1, len(differing) // DIFFERING)][:DIFFERING]
    ]
    note = f"The models do not agree on {len(differing):,} of {test.items:,} items; here are some of them."
    return Table("Where they differ", note, ["item", "right", *(one.name for one in report.models)], rows)


def shown(name: str) -> str:
    return shorten(name, 70, placeholder=" …")


def items_of(report: Report) -> HeldOutItems:
    assert isinstance(report.test, HeldOutItems)
    return report.test


def labelled(one: Compared) -> Labelled:
    assert isinstance(one.measured, Labelled)
    return one.measured


# ── models that tell numbers ──


def number_tables(report: Report) -> list[Table]:
    measured = [(one.name, numbered(one)) for one in report.models]
    tests = {pair.second: pair.tests for pair in report.neighbours}
    rows = [
        [
            name, f"{found.scores[0].value:.4f}", between(found.interval), f"{found.scores[1].value:.4g}",
            *p_values(tests.get(name), 1),
        ]
        for name, found in measured
    ]  # fmt: skip
    note = (
        f"{items_of(report).items:,} items, {report.budget} each. R² is the share of the variance that is explained, "
        f"the mean error in the numbers' own units. {OVER_IMAGES}"
    )
    header = ["model", "R²", "95 % interval", "mean error", "p"]
    return [Table("Scores", note, header, rows), by_number(measured), where_numbers_differ(report)]


def by_number(measured: list[tuple[str, Numbered]]) -> Table:
    rows = [
        [name, one.name, f"{one.r2:.4f}", between(one.r2_interval), f"{one.mean_error:.4g}",
         between(one.error_interval, ".4g")]
        for name, found in measured
        for one in found.each
    ]  # fmt: skip
    header = ["model", "number", "R²", "95 % interval", "mean error", "95 % interval"]
    return Table("By number", "Intervals are of 1,000 resamples of the images.", header, rows)


def where_numbers_differ(report: Report) -> Table:
    test, told = items_of(report), [read_numbers(one.measured.outputs) for one in report.models]
    right = read_numbers(test.labels)
    errors = np.stack([(abs(one - right) / (right.std(axis=0) + 1e-12)).mean(axis=1) for one in told])
    rows = [
        [shown(test.names[place]), in_words(right[place]), *(in_words(one[place]) for one in told)]
        for place in furthest_apart(errors)
    ]
    note = "The items on which the errors of the models are furthest apart."
    return Table("Where they differ", note, ["item", "right", *(one.name for one in report.models)], rows)


def in_words(numbers: Float[np.ndarray, " K"]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)


def numbered(one: Compared) -> Numbered:
    assert isinstance(one.measured, Numbered)
    return one.measured


# ── models that label pixels ──────────────────────────────────────────────────────────────


def mask_tables(report: Report) -> list[Table]:
    measured = [(one.name, segmented(one)) for one in report.models]
    tests = {pair.second: pair.tests for pair in report.neighbours}
    rows = [
        [name, *percent(found), f"{found.scores[1].value:.2f}", *p_values(tests.get(name), 1)]
        for name, found in measured
    ]
    note = (
        f"{items_of(report).items:,} items, {report.budget} each. IoU: of a label, pixels that have it and were given "
        f"it, over those that have it or were given it. {OVER_IMAGES}"
    )
    header = ["model", "mean IoU %", "95 % interval", "pixel accuracy %", "p"]
    return [Table("Scores", note, header, rows), by_mask_label(measured), where_masks_differ(report)]


def by_mask_label(measured: list[tuple[str, Segmented]]) -> Table:
    labels = dict.fromkeys(label for _, found in measured for label in found.iou)
    rows = [
        [label, *(f"{100 * found.iou[label]:.1f}" if label in found.iou else "–" for _, found in measured)]
        for label in labels
    ]
    return Table("By label", "IoU in percent, over all images.", ["label", *(name for name, _ in measured)], rows)


def where_masks_differ(report: Report) -> Table:
    test, told = items_of(report), [read_overlaps(one.measured.outputs) for one in report.models]
    shares = np.stack([one.of_each() for one in told])
    rows = [
        [shown(test.names[place]), *(f"{100 * share:.1f}" for share in shares[:, place])]
        for place in furthest_apart(shares)
    ]
    note = "Mean IoU in percent of the items on which it is furthest apart."
    return Table("Where they differ", note, ["item", *(one.name for one in report.models)], rows)


def segmented(one: Compared) -> Segmented:
    assert isinstance(one.measured, Segmented)
    return one.measured


# ── both of these ─────────────────────────────────────────────────────────────────────────


def between(interval: tuple[float, float], form: str = ".4f") -> str:
    return " to ".join(format(end, form) for end in interval)


def furthest_apart(values: Float[np.ndarray, "M N"]) -> list[int]:
    """Items, the one on which the models differ most first; none on which they do not."""
    apart = values.max(axis=0) - values.min(axis=0)
    order = np.argsort(-apart, kind="stable")[:DIFFERING]
    return [int(place) for place in order if apart[place] > 0]


# ── all ──────────────────────────────────────────────────────────────────────────────────


def costs(report: Report) -> Table:
    what = "tokens" if report.task == "translate" else "items"
    header = ["model", "parameters", "steps", "epochs", "minutes", f"{what}/s", "s per 1,000"]
    rows = [
        [
            one.name,
            f"{one.measured.parameters:,}",
            f"{one.trained.steps:,}",
            f"{one.trained.epochs:.1f}",
            f"{one.trained.minutes:.1f}",
            f"{one.trained.tokens_per_second:,.0f}",
            f"{one.measured.seconds_per_1000:.1f}",
        ]
        for one in report.models
    ]
    threads = ", ".join(sorted({str(one.measured.threads) for one in report.models}))
    if report.task != "translate":
        doing = "tell the numbers of" if report.task == "regress" else "label"
        done = f"items trained on in a second; seconds to {doing} 1,000 of the test set in batches (threads: {threads})"
    else:
        beams = ", ".join(sorted({str(translated(one).beam) for one in report.models}))
        done = (
            "tokens of the target trained on in a second; seconds to translate 1,000 sentences of the test set in "
            f"batches (beam {beams}; threads: {threads})"
        )
    note = f"Minutes of training and validation, without preparing; {done}."
    return Table("What it took", note, header, rows)


def rates(report: Report) -> Table:
    rows = [
        [
            one.name,
            f"{run.rate:g}",
            f"{run.validation_nats:.4f}",
            f"{run.steps:,}",
            "chosen" if run == one.trained else "",
        ]
        for one in report.models
        for run in one.rates
    ]
    note = "The planned rate, half of it and twice of it, with the same budget each; chosen by the validation loss."
    return Table("Learning rates", note, ["model", "rate", "validation loss", "steps", ""], rows)


def with_margin(score: Score) -> str:
    if score.interval is not None:
        return f"{score.value:.1f} ({score.interval[0]:.1f} – {score.interval[1]:.1f})"
    return f"{score.value:.1f}" if score.margin is None else f"{score.value:.1f} ± {score.margin:.1f}"


def p_values(tests: list[Paired] | None, count: int = 2) -> list[str]:
    if tests is None:
        return [""] * count
    return ["–" if test.p is None else f"{test.p:.3f}" for test in tests]
