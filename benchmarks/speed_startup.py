"""Question: how long until the first answer? Seconds for `--help`, for a mistake, and for one line from cold."""

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

DRAGOMAN = [sys.executable, "-m", "dragoman"]


def seconds(arguments: list[str], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([*DRAGOMAN, *arguments], capture_output=True, check=False)
        best = min(best, time.perf_counter() - start)
    return round(best, 2)


def main() -> None:
    with TemporaryDirectory() as scratch:
        corpus, run = Path(scratch) / "corpus", Path(scratch) / "run"
        subprocess.run(
            [*DRAGOMAN, "data", "make", "numbers", str(corpus), "--count", "5000"], capture_output=True, check=True
        )
        files = [str(corpus / f"train.{side}") for side in ("source", "target")]
        command = [*DRAGOMAN, "train", *files, "--out", str(run), "--preset", "small", "--steps", "2"]
        subprocess.run(command, capture_output=True, check=True)
        cases = {"--help": ["--help"], "a mistake": ["trian"], "one line": ["translate", str(run), "dreiundfünfzig"]}
        for name, arguments in cases.items():
            print(json.dumps({"benchmark": "startup", "case": name, "seconds": seconds(arguments)}), flush=True)


if __name__ == "__main__":
    main()
