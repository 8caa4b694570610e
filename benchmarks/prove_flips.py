"""Question: is every flipped bit and every cut-off file of a checkpoint noticed, and the checkpoint before it used?"""

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

import promises
import trials

from dragoman.runs.checkpoint import checkpoints, newest_whole_checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        assert trials.follow(trials.request_for(trials.corpus_in(Path(scratch) / "corpus"), run, "transformer")) == 0
        newest, before = checkpoints(run)[:2]
        chance, refused, said, start = random.Random(1), 0, 0, time.monotonic()
        for _ in range(count):
            file = chance.choice(sorted(path for path in newest.iterdir()))
            content = file.read_bytes()
            file.write_bytes(harm(content, chance))
            found, sentences = newest_whole_checkpoint(run)
            refused += found == before
            said += len(sentences) == 1 and newest.name in sentences[0]
            file.write_bytes(content)
        assert newest_whole_checkpoint(run) == (newest, [])
        seconds = round(time.monotonic() - start, 1)
        promises.tell(
            refused == said == count, proof="flips", harmed=count, refused=refused, said=said, seconds=seconds
        )
    promises.end()


def harm(content: bytes, chance: random.Random) -> bytes:
    """One bit other than it was, or the end missing."""
    place = chance.randrange(len(content))
    if chance.random() < 0.5:
        return content[:place]
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
