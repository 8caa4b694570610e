"""What the quality benchmarks share: train by the command that users type, score by the command that users type."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DRAGOMAN = [sys.executable, "-m", "dragoman"]


def arguments(question: str | None, *, minutes: list[float], directions: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=question, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, nargs="+", default=minutes)
    parser.add_argument("--directions", nargs="+", default=directions)
    parser.add_argument("--preset", default="", help="a fixed preset instead of the planned size")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"the data are not in {DATA}; this benchmark needs them")
    return options


def train_and_score(
    corpus: str,
    direction: str,
    minutes: float,
    train: list[Path],
    valid: list[Path],
    test: list[Path],
    options: argparse.Namespace,
) -> None:
    with TemporaryDirectory() as scratch:
        run = (options.keep or Path(scratch)) / f"{corpus}-{direction}-{minutes:g}{options.preset}"
        began = time.monotonic()
        command = [*DRAGOMAN, "train", *train, "--valid", *valid, "--minutes", minutes, "--out", run, "--json"]
        command += ["--preset", options.preset] if options.preset else []
        # a run kept from before and finished has nothing left to plan: only its score is new
        plan = next((event for event in map(json.loads, lines(command)) if event["event"] == "planned"), {})
        seconds = time.monotonic() - began
        began = time.monotonic()
        [scored] = map(json.loads, lines([*DRAGOMAN, "score", run, *test, "--json"]))
        found = {"benchmark": corpus, "direction": direction, "minutes": minutes, "seconds": round(seconds)}
        found |= {one["name"]: [round(one["value"], 2), round(one["margin"], 2)] for one in scored["scores"]}
        found |= {"score_seconds": round(time.monotonic() - began), "signature": scored["scores"][0]["signature"]}
        found |= {key: plan[key] for key in ("tokens", "model", "training", "steps") if key in plan}
        print(json.dumps(found), flush=True)


def lines(command: list[object]) -> list[str]:
    return subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
