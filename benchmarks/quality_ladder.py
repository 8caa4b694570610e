"""Question: what did attention change, and what did the Transformer? Multi30k de→en, equal minutes, three rates each.

    python benchmarks/quality_ladder.py --minutes 20 --keep ladder            captions as they are
    python benchmarks/quality_ladder.py --minutes 20 --keep long --joined     joined in ones, twos and threes: longer

Both are `dragoman compare`, so a stopped one goes on where it was. Captions are joined within each part, at random,
the same way in both languages.
"""

import argparse
import gzip
import subprocess
import sys
from pathlib import Path
from random import Random

from runs import DATA, DRAGOMAN

MODELS = "rnn,rnn+additive,rnn+dot,transformer"
PARTS = {"train": "train", "val": "val", "test": "test_2016_flickr"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--rates", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=Path("ladder"))
    parser.add_argument("--joined", action="store_true")
    options = parser.parse_args()
    files = {part: corpus(part, options) for part in PARTS}
    command = [*DRAGOMAN, "compare", *files["train"], "--valid", *files["val"], "--test", *files["test"]]
    command += ["--models", options.models, "--minutes", options.minutes, "--rates", options.rates]
    command += ["--threads", options.threads]
    sys.exit(subprocess.run([*map(str, command), "--out", str(options.keep)], check=False).returncode)


def corpus(part: str, options: argparse.Namespace) -> list[Path]:
    files = [DATA / "multi30k" / f"{PARTS[part]}.{language}.gz" for language in ("de", "en")]
    if not options.joined:
        return files
    sides = [gzip.decompress(file.read_bytes()).decode().removesuffix("\n").split("\n") for file in files]
    groups = group(len(sides[0]), Random(part))
    made = []
    options.keep.mkdir(parents=True, exist_ok=True)
    for file, side in zip(files, sides, strict=True):
        path = options.keep / f"{part}{Path(file.stem).suffix}"
        path.write_text("".join(" ".join(side[i] for i in rows) + "\n" for rows in groups), encoding="utf-8")
        made.append(path)
    return made


def group(count: int, rng: Random) -> list[list[int]]:
    """Each caption in one group of one, two or three, drawn alike."""
    order = rng.sample(range(count), count)
    groups = []
    while order:
        size = rng.randint(1, 3)
        groups.append(order[:size])
        order = order[size:]
    return groups


if __name__ == "__main__":
    main()
