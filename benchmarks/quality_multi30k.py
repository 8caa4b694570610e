"""Question: what does a person with 29,000 sentence pairs get in M minutes, with default settings?

    python benchmarks/quality_multi30k.py --minutes 5 10 20 --directions de-en en-de

Reads Multi30k from ../shared/data/multi30k. One JSON line for each run: the plan, and BLEU, chrF on test_2016_flickr.
"""

from pathlib import Path

from runs import DATA, arguments, train_and_score

FOLDER = DATA / "multi30k"


def main() -> None:
    options = arguments(__doc__, minutes=[20.0], directions=["de-en", "en-de"])
    for minutes in options.minutes:
        for direction in options.directions:
            files = {part: pair(part, direction) for part in ("train", "val", "test_2016_flickr")}
            train_and_score(
                "multi30k", direction, minutes, files["train"], files["val"], files["test_2016_flickr"], options
            )


def pair(part: str, direction: str) -> list[Path]:
    return [FOLDER / f"{part}.{language}.gz" for language in direction.split("-")]


if __name__ == "__main__":
    main()
