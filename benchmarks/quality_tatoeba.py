"""Question: and with 164,000 pairs of everyday sentences, in half an hour?

    python benchmarks/quality_tatoeba.py --minutes 30 --directions de-en

Reads Tatoeba from ../shared/data/tatoeba. One JSON line for each run: the plan, and BLEU, chrF on its test part.
"""

from runs import DATA, arguments, train_and_score

FOLDER = DATA / "tatoeba"


def main() -> None:
    options = arguments(__doc__, minutes=[30.0], directions=["de-en"])
    for minutes in options.minutes:
        for direction in options.directions:
            train, valid, test = ([FOLDER / f"{part}.{direction}.tsv.gz"] for part in ("train", "val", "test"))
            train_and_score("tatoeba", direction, minutes, train, valid, test, options)


if __name__ == "__main__":
    main()
