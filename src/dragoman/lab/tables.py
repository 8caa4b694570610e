"""A report's numbers as tables of words: the terminal, report.md and report.html show the same ones."""

from dragoman.evaluation.scores import Score
from dragoman.evaluation.significance import Paired
from dragoman.lab.results import Compared, Report
from dragoman.seeing.comparison import Table


def all_tables(report: Report) -> list[Table]:
    tables = [scores(report), by_length(report), costs(report)]
    return [*tables, rates(report)] if any(len(one.rates) > 1 for one in report.models) else tables


def scores(report: Report) -> Table:
    tests = {pair.second: pair.tests for pair in report.neighbours}
    rows = [[one.name, *map(with_margin, one.measured.scores), *p_values(tests.get(one.name))] for one in report.models]
    note = (
        f"{report.test.sentences:,} sentences, {report.budget} each. ± is half of the 95 % interval; p is that of the "
        "difference to the line above, by paired bootstrap, one-sided: below 0.05 it is hardly luck of the test set. "
        "The luck of the seed is not in it: each model was trained once. The third score is taken on lower-cased text "
        "in 13a tokens, for comparison with published tokenised figures."
    )
    return Table("Scores", note, ["model", "BLEU", "chrF", "BLEU lower-cased", "p (BLEU)", "p (chrF)"], rows)


def by_length(report: Report) -> Table:
    buckets = report.models[0].measured.by_length
    header = ["model", *(f"{bucket.words} words" for bucket in buckets), "fall"]
    rows = [
        [one.name, *(f"{bucket.bleu:.1f}" for bucket in one.measured.by_length), fall(one)] for one in report.models
    ]
    held = ", ".join(f"{bucket.sentences:,}" for bucket in buckets)
    note = f"BLEU apart by the words of the source ({held} sentences): {report.test.how}. Fall: from first to last."
    return Table("Scores by length", note, header, rows)


def costs(report: Report) -> Table:
    header = ["model", "parameters", "steps", "epochs", "minutes", "tokens/s", "s per 1,000"]
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
    beams = ", ".join(sorted({str(one.measured.beam) for one in report.models}))
    threads = ", ".join(sorted({str(one.measured.threads) for one in report.models}))
    note = (
        "Minutes of training and validation, without preparing; tokens of the target trained on in a second; seconds "
        f"to translate 1,000 sentences of the test set in batches (beam {beams}; threads: {threads})."
    )
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
    return f"{score.value:.1f}" if score.margin is None else f"{score.value:.1f} ± {score.margin:.1f}"


def p_values(tests: list[Paired] | None) -> list[str]:
    if tests is None:
        return ["", ""]
    return ["–" if test.p is None else f"{test.p:.3f}" for test in tests]


def fall(one: Compared) -> str:
    first, last = one.measured.by_length[0], one.measured.by_length[-1]
    return f"{first.bleu - last.bleu:.1f}"
