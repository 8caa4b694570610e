"""Question: can one T5 do three things, told apart by a prefix?

    python benchmarks/quality_tasks.py --minutes 15

Copying, reversing and dates, made by `dragoman data make`; prints the share of held-out items that is right to the last
character, of 500 each.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from runs import DRAGOMAN, lines

KINDS = ["copy", "reverse", "dates"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--count", type=int, default=30_000, help="pairs to train on, of each kind")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made = [*DRAGOMAN, "data", "make", "+".join(KINDS), folder, "--count", options.count, "--valid", 200]
        subprocess.run([*map(str, made)], check=True, capture_output=True)
        train, valid = ([folder / f"{part}.source", folder / f"{part}.target"] for part in ("train", "valid"))
        command = [*DRAGOMAN, "train", *train, "--valid", *valid, "--family", "t5", "--preset", options.preset]
        command += ["--minutes", options.minutes, "--threads", options.threads, "--out", folder / "run", "--json"]
        began = time.monotonic()
        plan = next(event for event in map(json.loads, lines(command)) if event["event"] == "planned")
        found = {"benchmark": "tasks", "minutes": options.minutes, "seconds": round(time.monotonic() - began)}
        for kind in KINDS:
            test = [folder / f"test-{kind}.source", folder / f"test-{kind}.target"]
            [scored] = map(json.loads, lines([*DRAGOMAN, "score", folder / "run", *test, "--json"]))
            found[kind] = scored["exact"]
        print(json.dumps(found | {key: plan[key] for key in ("tokens", "model", "training", "steps")}))


if __name__ == "__main__":
    main()
