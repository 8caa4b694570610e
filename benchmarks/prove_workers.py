"""Question: do 1, 2 and 4 workers under torchrun do the same, also when one of them is killed, and is it worth it?

losses       no step's loss differs by more than 1e-6 between 1, 2 and 4 workers
hashes       with --reproducible the weights have the same bits; also where their number changes on the way, and where
             batch norms count (a cnn)
shards       the same losses where two workers share out the model itself (FSDP2), and gone on with the other way round
killed       torchrun --max-restarts begins again from the last checkpoint: the same bits, and how much later
             (everything else is run without restarts: a worker that ends badly is seen)
throughput   tokens a second of two workers with a thread each, against one with two threads
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import promises
import trials

from dragoman.runs.record import read_log

LARGER = {"width": 256, "heads": 4, "layers": 3, "hidden": 1024, "dropout": 0.1}
CASES = ("losses", "hashes", "norms", "shards", "killed", "throughput")
CLOSE = 1e-6  # nats between the losses of the same step
LATER = 30.0  # seconds that a killed worker may cost
SHARE = 0.9  # of the throughput of two threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=CASES, choices=CASES)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        trials.corpus_in(folder / "corpus")
        for case in asked.cases:
            match case:
                case "losses":
                    found = losses(folder, asked.workers)
                    holds = found["largest difference"] <= CLOSE
                case "hashes":
                    found = hashes(folder, asked.workers)
                    holds = found["different hashes"] == 1 and found["changing on the way"]
                case "norms":
                    found = norms(folder, asked.workers)
                    holds = found["different hashes"] == 1 and found["largest difference"] <= CLOSE
                case "shards":
                    found = shards(folder)
                    holds = found["largest difference"] <= CLOSE
                case "killed":
                    found = killed(folder)
                    holds = found["exit"] == 0 and found["same hashes"] and found["seconds more"] <= LATER
                case _:
                    found = throughput(folder)
                    holds = found["ratio"] >= SHARE
            promises.tell(holds, proof="workers", case=case, **found)
    promises.end()


def command(
    folder: Path,
    run: Path,
    workers: int | None,
    *more: str,
    steps: int = trials.STEPS,
    model: dict[str, Any] | None = None,
    restarts: int = 0,
) -> list[str]:
    """`torchrun … -m dragoman train …`, or without torchrun where `workers` is None."""
    corpus = folder / "corpus"
    settings = {"model": model or trials.SIZES["transformer"], "training": {**trials.TRAINING, "report_every": 1}}
    sets = [f"--set={section}.{key}={value}" for section, keys in settings.items() for key, value in keys.items()]
    files = [
        corpus / "train.source",
        corpus / "train.target",
        "--valid",
        corpus / "valid.source",
        corpus / "valid.target",
    ]
    return [*starting(workers, restarts), *map(str, files), "--steps", str(steps), "--out", str(run), *sets, *more]


def starting(workers: int | None, restarts: int = 0) -> list[str]:
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={workers}", f"--max-restarts={restarts}"]
    return [sys.executable, "-m", *([*torchrun, "-m"] if workers else []), "dragoman", "train"]


def environment(threads: int = 1) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": "lo"}


def go(arguments: list[str], threads: int = 1) -> float:
    start = time.monotonic()
    done = subprocess.run(arguments, env=environment(threads), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return time.monotonic() - start


def losses(folder: Path, sizes: list[int]) -> dict[str, Any]:
    found = []
    for workers in sizes:
        go(command(folder, folder / f"plain-{workers}", workers))
        found.append([line["nats_per_token"] for line in reports(folder / f"plain-{workers}")])
    worst = max(max(step) - min(step) for step in zip(*found, strict=True))
    return {"workers": sizes, "steps": len(found[0]), "largest difference": worst}


def reports(run: Path) -> list[dict[str, Any]]:
    return [line for line in read_log(run / "log.jsonl") if line["kind"] == "report"]


def hashes(folder: Path, sizes: list[int]) -> dict[str, Any]:
    """A worker that is alone is started without torchrun: it must be the same run."""
    still, changing = [folder / f"reproducible-{workers}" for workers in sizes], folder / "reproducible-changing"
    runs = [(run, workers, trials.STEPS) for run, workers in zip(still, sizes, strict=True)]
    places = [*sizes, *sizes[-2::-1]]  # 1, 2, 4, 2, 1
    runs += [(changing, workers, trials.STEPS * k // len(places)) for k, workers in enumerate(places, start=1)]
    for run, workers, steps in runs:
        alone = None if workers == 1 else workers
        go(command(folder, run, alone, "--reproducible", "--set=training.schedule=constant", steps=steps))
    different = len({str(trials.outcome(run)) for run in still})
    same = weights(changing) == weights(still[0])
    return {"workers": sizes, "different hashes": different, "changing on the way": same}


def norms(folder: Path, sizes: list[int]) -> dict[str, Any]:
    """A small cnn: reproducible, and as usual, where the validation shows what its norms have counted."""
    images, chance = folder / "images.npz", np.random.default_rng(1)
    labels = chance.integers(0, 3, 240)
    pixels = chance.normal(60 * labels[:, None, None] + 40, 30, (240, 12, 12)).clip(0, 255)
    np.savez(images, images=pixels.astype(np.uint8), labels=labels)
    sets = ["steps=8", "images_per_step=48", "validate_every=4", "save_every=4", "report_every=1", "slices=4"]
    validated = []
    for workers in sizes:
        for way in ("usual", "reproducible"):
            given = ["--reproducible"] if way == "reproducible" else []
            run = folder / f"norms-{way}-{workers}"
            settings = [f"--set=training.{one}" for one in sets]
            go([*starting(workers), str(images), "--family", "cnn", "--out", str(run), *settings, *given])
        log = read_log(folder / f"norms-usual-{workers}" / "log.jsonl")
        validated.append([line["nats_per_token"] for line in log if line["kind"] == "validation"])
    different = len({str(trials.outcome(folder / f"norms-reproducible-{workers}")) for workers in sizes})
    worst = max(max(one) - min(one) for one in zip(*validated, strict=True))
    return {"family": "cnn", "workers": sizes, "different hashes": different, "largest difference": worst}


def shards(folder: Path) -> dict[str, Any]:
    """Two workers with shards, one without; then both go on the other way round."""
    setting, found = "--set=training.sharding=true", []
    for first, then in ((2, 1), (1, 2)):
        run = folder / f"sharded-{first}-{then}"
        for workers, steps in ((first, trials.STEPS // 2), (then, trials.STEPS)):
            go(command(folder, run, workers, setting, "--set=training.schedule=constant", steps=steps))
        found.append([line["nats_per_token"] for line in reports(run)])
    worst = max(abs(a - b) for a, b in zip(*found, strict=True))
    return {"workers": [1, 2], "steps": len(found[0]), "largest difference": worst}


def weights(run: Path) -> dict[str, str]:
    return {name: value for name, value in trials.outcome(run).items() if name.startswith("checkpoints")}


def killed(folder: Path) -> dict[str, Any]:
    """Two workers; the second is killed as soon as the run has saved something after its first step."""
    undisturbed, disturbed = folder / "left-alone", folder / "killed"
    steps = 4 * trials.STEPS
    alone = go(command(folder, undisturbed, 2, "--reproducible", steps=steps))
    start = time.monotonic()
    process = subprocess.Popen(
        command(folder, disturbed, 2, "--reproducible", steps=steps, restarts=3),
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process:
        while not list(disturbed.glob("checkpoints/step-0000000[48]")):
            time.sleep(0.02)
            assert process.poll() is None
        os.kill(second_worker(process.pid), signal.SIGKILL)
    seconds = time.monotonic() - start
    same = trials.outcome(disturbed) == trials.outcome(undisturbed)
    later = round(seconds - alone, 1)
    return {"exit": process.returncode, "same hashes": same, "seconds alone": round(alone, 1), "seconds more": later}


def second_worker(parent: int) -> int:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return next(int(pid) for pid in children if b"RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes())


def throughput(folder: Path, steps: int = 30) -> dict[str, Any]:
    """The median step of each of several runs in turn, and the best of each: a neighbour's burst slows one of them."""
    speeds: dict[str, list[float]] = {"two workers": [], "two threads": []}
    more = [
        "--set=training.tokens_per_step=2048",
        "--set=training.validate_every=1000",
        "--set=training.save_every=1000",
    ]
    for turn in range(5):
        for name, workers, threads in (("two workers", 2, 1), ("two threads", None, 2)):
            run = folder / f"{name.replace(' ', '-')}-{turn}"
            go(command(folder, run, workers, *more, "--threads", str(threads), steps=steps, model=LARGER), threads)
            speeds[name].append(statistics.median(line["tokens_per_second"] for line in reports(run)[2:]))
    best = {name: round(max(found)) for name, found in speeds.items()}
    return {"tokens/s": best, "ratio": round(best["two workers"] / best["two threads"], 3)}


if __name__ == "__main__":
    main()
