"""The embedded example: a translator from dates and numbers as people write them to digits.

Its data come from grammars of our own, so it needs no download, and every source has exactly one right answer. What is
tested was never trained on: not the date in another language, not the number in another spelling.
"""

from pathlib import Path
from typing import NamedTuple

from dragoman.decoding.translate import Translator
from dragoman.errors import MachineError
from dragoman.evaluation.scores import exact_match
from dragoman.jobs.request import Request
from dragoman.text.generated import Pair, generate

TRAIN = {"dates": 20_000, "numbers": 96_000}  # pairs drawn of each kind
VALID, TEST = 125, 500  # … and held out
DIGITS = 5  # of the longest number: what can be learned in a minute and a half
SHORT, REPEATED = 3, 3  # numbers of so few digits are few: shown this many times more, or they would be a twentieth
SEED = 4711
SETTINGS = {
    "tokenizer": {
        "kind": "bpe",
        "target_kind": "characters",
        "joint": False,
        "vocabulary": 2000,
        "split_digits": False,
    },
    "model": {"width": 128, "heads": 4, "layers": 2, "hidden": 256, "dropout": 0.0},
    "training": {
        "tokens_per_step": 384,
        "rate": 0.005,
        "label_smoothing": 0.0,
    },  # many small steps learn more in a minute
}
TRY = ["Mittwoch, der 29. Februar 2012", "the 3rd of May 1999", "dreiundfünfzigtausendzweihunderteins"]


class Demo(NamedTuple):
    request: Request
    test: dict[str, list[Pair]]  # by kind; none of these was trained on


def make_demo(out: Path, seconds: float, seed: int) -> Demo:
    """Write the corpus into the run's folder, and say how to train on it."""
    parts: dict[str, list[Pair]] = {"train": [], "valid": []}
    test = {}
    for kind, count in TRAIN.items():
        train, held_out = (
            [pair for pair in pairs if kind != "numbers" or len(pair[1]) <= DIGITS]
            for pairs in generate(kind, count=count, seed=SEED, held_out=2 * (VALID + TEST))
        )
        parts["train"] += train
        if kind == "numbers":
            parts["train"] += [pair for pair in train if len(pair[1]) <= SHORT] * REPEATED
        parts["valid"] += held_out[:VALID]
        test[kind] = held_out[VALID : VALID + TEST]
    folder = out / "corpus"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise MachineError("E-ENV-03", f"{out} cannot be written ({problem.strerror}); choose another --out") from None
    for part, pairs in parts.items():
        write_pairs(folder / f"{part}.tsv", pairs)
    for kind, pairs in test.items():
        write_pairs(folder / f"test.{kind}.tsv", pairs)
    request = Request(
        corpora=[str(folder / "train.tsv")],
        valid=[str(folder / "valid.tsv")],
        out=str(out),
        minutes=seconds / 60,
        seed=seed,
        settings=SETTINGS,
    )
    return Demo(request, test)


def write_pairs(path: Path, pairs: list[Pair]) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in pairs)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def exact_by_kind(translator: Translator, test: dict[str, list[Pair]]) -> dict[str, float]:
    """The share of held-out items that come out right to the last digit, in percent."""
    found = {}
    for kind, pairs in test.items():
        outputs = [translation.text for translation in translator.translate([source for source, _ in pairs])]
        found[kind] = exact_match(outputs, [target for _, target in pairs])
    return found
