"""Question: how much longer does it take to go on near the end of a corpus of ten million pairs than at its beginning?

The pairs are written as a run's folder holds them, and a checkpoint is given the step it would have had there.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import promises
import trials

from dragoman.jobs.events import Report
from dragoman.jobs.start import start
from dragoman.runs.data import seal_data
from dragoman.runs.files import seal
from dragoman.runs.record import read_toml, write_toml
from dragoman.text.batches import BatchOrder
from dragoman.text.index import PairIndex

LONGEST = 12  # tokens of a side, at most
MOST_MORE = 2.0  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus = trials.corpus_in(folder / "corpus")
        run = folder / "run"
        trials.begin(corpus, run, "transformer")
        enlarge(run / "data" / "train", asked.pairs)
        seal_data(run)
        steps = len(BatchOrder(PairIndex(run / "data" / "train").lengths(), trials.TRAINING["tokens_per_step"], 1))
        deep = steps * 99 // 100
        move_checkpoint(run, deep)
        found: dict[str, list[float]] = {"beginning": [], "deep": []}
        for _ in range(asked.times):
            for name, step in (("beginning", 0), ("deep", deep)):
                keep_only(run, step)
                found[name].append(seconds_to_go_on(corpus, run, step + 2))
        best = {name: round(min(times), 2) for name, times in found.items()}
        more = round(best["deep"] - best["beginning"], 2)
        told = {"pairs": asked.pairs, "step": deep, "of": steps, **best, "seconds more": more}
        promises.tell(more <= MOST_MORE, proof="resume", **told)
    promises.end()


def enlarge(folder: Path, pairs: int) -> None:
    about = json.loads((folder / "index.json").read_text())
    random = np.random.default_rng(1)
    lengths = random.integers(2, LONGEST, 2 * pairs)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    offsets.tofile(folder / "offsets.bin")
    random.integers(4, 20, int(offsets[-1]), dtype=np.uint16).tofile(folder / "ids.bin")
    (folder / "index.json").write_text(json.dumps({**about, "pairs": pairs}))


def move_checkpoint(run: Path, step: int) -> None:
    """A copy of the first one, as of this step; the other stands aside."""
    there = run / "checkpoints" / f"step-{step:08d}"
    shutil.copytree(run / "checkpoints" / "step-00000000", there)
    for folder, number in ((run / "checkpoints" / "step-00000000", 0), (there, step)):
        state = json.loads((folder / "state.json").read_text())
        del state["settings"]  # here run.toml is edited, so that nothing is saved or validated
        (folder / "state.json").write_text(json.dumps({**state, "step": number}))
        (folder / "manifest.json").unlink()
        seal(folder)
    shutil.copytree(run / "checkpoints", run.with_name("kept"))


def keep_only(run: Path, step: int) -> None:
    shutil.rmtree(run / "checkpoints")
    name = f"step-{step:08d}"
    shutil.copytree(run.with_name("kept") / name, run / "checkpoints" / name)
    (run / "log.jsonl").unlink(missing_ok=True)


def seconds_to_go_on(corpus: Path, run: Path, steps: int) -> float:
    """From the call to the first report."""
    recorded = read_toml(run / "run.toml")
    plan = {"steps": steps, "report_every": 1, "validate_every": 10**9, "save_every": 10**9}
    recorded["training"].update(plan)
    recorded["asked"]["settings"]["training"].update(plan)
    write_toml(run / "run.toml", recorded)
    request: Any = trials.request_for(corpus, run, "transformer", **plan)
    began = time.monotonic()
    for event in start(request, threads=1):
        if isinstance(event, Report):
            return time.monotonic() - began
    raise AssertionError("no step was taken")


if __name__ == "__main__":
    main()
