"""Question: does a corpus of five million pairs train in little memory, and start soon?

    python benchmarks/scale_corpus.py --pairs 5000000

Prints seconds to the first step, seconds to the first step of a second start, and the most private memory (RssAnon)
seen while training, beside what the model and its optimizer take.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

DRAGOMAN = [sys.executable, "-m", "dragoman"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = [*DRAGOMAN, "data", "make", "reverse", str(folder), "--count", str(options.pairs), "--valid", "1000"]
        subprocess.run(command, check=True, capture_output=True)
        for start, steps in (("first", 40), ("second", 80)):
            print(
                json.dumps({"benchmark": "scale", "pairs": options.pairs, "start": start, **watch(folder, steps)}),
                flush=True,
            )


def watch(folder: Path, steps: int) -> dict[str, float]:
    """Train a few steps, and look at the process from outside."""
    files = [str(folder / f"{part}.{side}") for part in ("train", "valid") for side in ("source", "target")]
    command = [*DRAGOMAN, "train", *files[:2], "--valid", *files[2:], "--out", str(folder / "run"),
               "--steps", str(steps),
               "--preset", "small", "--json", "--set", "training.report_every=1",
               "--set", "tokenizer.kind=unigram"]  # fmt: skip
    began, first, most = time.monotonic(), 0.0, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["event"] == "report":
                first = first or time.monotonic() - began
                most = max(most, private_memory(process.pid))
    size = sum(f.stat().st_size for f in (folder / "run" / "checkpoints").glob("*/*.safetensors")) / len(
        list((folder / "run" / "checkpoints").iterdir())
    )
    return {
        "seconds_to_first_step": round(first, 1),
        "RssAnon_MiB": most >> 20,
        "model_and_optimizer_MiB": int(size) >> 20,
    }


def private_memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))


if __name__ == "__main__":
    main()
