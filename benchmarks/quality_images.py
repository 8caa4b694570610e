"""Question: what does a person get from images in M minutes, with default settings and a family alone?

    python benchmarks/quality_images.py --cases mnist-mlp mnist-cnn mnist-vit road boxes shapes

Reads MNIST from ../shared/data/mnist; roads, boxes and shapes are drawn by `dragoman data make`. One JSON line for each
run: accuracy on the test part with Wilson's 95 % interval, R² with its bootstrap interval, or mean IoU; and the plan.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from runs import DATA, DRAGOMAN, lines

MNIST = DATA / "mnist"


class Case(NamedTuple):
    made: str  # the kind of generated pictures; empty for MNIST
    family: str
    minutes: float
    score: str
    wanted: float


CASES = {
    "mnist-mlp": Case("", "mlp", 10, "accuracy", 0.98),
    "mnist-cnn": Case("", "cnn", 10, "accuracy", 0.992),
    "mnist-vit": Case("", "vit", 20, "accuracy", 0.98),
    "road": Case("road", "cnn", 5, "r2", 0.95),
    "boxes": Case("boxes", "cnn", 5, "r2", 0.95),
    "shapes": Case("shapes", "cnn", 8, "mean_iou", 0.9),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--minutes", type=float, help="for each case; else each one's own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="processor threads; else one for each core")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"the data are not in {DATA}; this benchmark needs them")
    for name in options.cases:
        measure(name, CASES[name], options)


def measure(name: str, case: Case, options: argparse.Namespace) -> None:
    minutes = options.minutes or case.minutes
    threads = ["--threads", options.threads] if options.threads else []
    with TemporaryDirectory() as scratch:
        train, test = corpus(case, Path(scratch) / "data")
        run = (options.keep or Path(scratch)) / f"{name}-{minutes:g}-{options.seed}"
        began = time.monotonic()
        command = [*DRAGOMAN, "train", *train, "--family", case.family, "--minutes", minutes, *threads]
        events = list(map(json.loads, lines([*command, "--seed", options.seed, "--out", run, "--json"])))
        seconds = round(time.monotonic() - began)
        [scored] = map(json.loads, lines([*DRAGOMAN, "score", run, test, *threads, "--json"]))
    plan = next((event for event in events if event["event"] == "planned"), {})
    found: dict[str, Any] = {"benchmark": "images", "case": name, "minutes": minutes, "seconds": seconds}
    found |= {case.score: round(scored[case.score], 5), "wanted": case.wanted}
    found |= {key: scored[key] for key in ("interval", "numbers", "iou") if key in scored}
    found |= {"reached": scored[case.score] >= case.wanted, "seed": options.seed}
    found |= {key: plan[key] for key in ("model", "training", "steps") if key in plan}
    print(json.dumps(found, ensure_ascii=False), flush=True)


def corpus(case: Case, folder: Path) -> tuple[list[object], Path]:
    """What to train with, and what to score on."""
    if not case.made:
        return [MNIST / "train-images-idx3-ubyte.gz"], MNIST / "t10k-images-idx3-ubyte.gz"
    lines([*DRAGOMAN, "data", "make", case.made, folder, "--count", 10_000, "--valid", 500, "--test", 1000])
    return [folder / "train.npz", "--valid", folder / "valid.npz"], folder / "test.npz"


if __name__ == "__main__":
    main()
