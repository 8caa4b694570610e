"""Question: does a run that is killed at any moment, or whose disk fails, end with the bits of one that was left alone?

Random moments of the whole run, and every single call of a save that changes the disk: write, fsync, rename.
"""

import argparse
import errno
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import promises
import trials

from dragoman.jobs.events import Report

SAVED = 8  # the step whose save is cut off; the one before it that is saved is 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="random kills for each family")
    parser.add_argument("--every", type=int, default=1, help="cut a save at every n-th of its calls")
    parser.add_argument("--commands", type=int, default=3, help="kills of the real command")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus = trials.corpus_in(folder / "corpus")
        for family in trials.SIZES:
            template = folder / family
            trials.begin(corpus, template, family)
            whole, seconds = undisturbed(corpus, template, family)
            tell("random kills", family, random_kills(corpus, template, family, whole, seconds, asked.kills))
            for what, error in (("kill", 0), ("EIO", errno.EIO), ("ENOSPC", errno.ENOSPC)):
                tell(
                    f"{what} at a call of a save",
                    family,
                    cut_saves(corpus, template, family, whole, error, asked.every),
                )
        if asked.commands:
            tell("kills of the real command", "transformer", real_commands(corpus, folder, asked.commands))
    Path(trials.os.environ["LD_PRELOAD"]).unlink(missing_ok=True)
    promises.end()


def tell(case: str, family: str, found: dict[str, Any]) -> None:
    """Of as many trials as there were, every one must have ended well, in each way in which one is judged."""
    judged = [found[key] for key in ("bit-identical", "right exit", "kept", "killed") if key in found]
    holds = all(count == found["trials"] for count in judged)
    promises.tell(holds, proof="kills", case=case, family=family, **found)


def undisturbed(corpus: Path, template: Path, family: str) -> tuple[dict[str, str], float]:
    run = trials.copy(template, f"{family}-whole")
    start = time.monotonic()
    assert trials.child(lambda: trials.follow(trials.request_for(corpus, run, family))) == 0
    return trials.outcome(run), time.monotonic() - start


def random_kills(
    corpus: Path, template: Path, family: str, whole: dict[str, str], seconds: float, count: int
) -> dict[str, Any]:
    """Killed after a random share of the time that the whole takes, and gone on with; one that was over is no trial."""
    chance, killed, same = random.Random(1), 0, 0
    while killed < count:
        run = trials.copy(template, f"{family}-trial")
        work = lambda run=run: trials.follow(trials.request_for(corpus, run, family))  # noqa: E731
        if trials.child(work, chance.uniform(0, seconds)) != -9:
            continue
        killed += 1
        same += trials.child(work) == 0 and trials.outcome(run) == whole
    return {"trials": killed, "bit-identical": same}


def cut_saves(
    corpus: Path, template: Path, family: str, whole: dict[str, str], error: int, every: int
) -> dict[str, Any]:
    """The n-th call of one save kills, or fails; for n = 1, 2 … until the save gets by without it."""
    same = right_code = kept = count = 0
    place = 1
    while True:
        run = trials.copy(template, f"{family}-trial")
        request = trials.request_for(corpus, run, family)

        def watch(event: Any, place: int = place) -> None:
            if isinstance(event, Report) and event.step == SAVED:
                trials.faults().arm(place, error)
            if isinstance(event, Report) and event.step > SAVED:
                trials.os._exit(99)  # the save is over

        code = trials.child(lambda request=request, watch=watch: trials.follow(request, watch))
        if code == 99:
            return {"calls": place - 1, "trials": count, "right exit": right_code, "kept": kept, "bit-identical": same}
        count += 1
        right_code += code == (74 if error else -9)
        kept += bool(list((run / "checkpoints").glob("step-0000000[48]")))
        same += trials.child(lambda request=request: trials.follow(request)) == 0 and trials.outcome(run) == whole
        place += every


def real_commands(corpus: Path, folder: Path, count: int) -> dict[str, Any]:
    """Killed as soon as it has saved a step that is drawn, and gone on with by the same command."""
    chance, same, killed = random.Random(2), 0, 0
    train(corpus, folder / "command-whole")
    for trial in range(count):
        run = folder / f"command-{trial}"
        killed += train(corpus, run, chance.choice([0, 4, 8, 12])) == -9
        same += train(corpus, run) == 0 and trials.outcome(run) == trials.outcome(folder / "command-whole")
    return {"trials": count, "killed": killed, "bit-identical": same}


def train(corpus: Path, run: Path, until: int | None = None) -> int:
    settings = {"model": trials.SIZES["transformer"], "training": trials.TRAINING}
    sets = [f"--set={section}.{key}={value}" for section, keys in settings.items() for key, value in keys.items()]
    sides = [corpus / f"{part}.{side}" for part in ("train", "valid") for side in ("source", "target")]
    files = [*sides[:2], "--valid", *sides[2:], "--threads", "1", "--steps", str(trials.STEPS), "--out", run]
    process = subprocess.Popen([sys.executable, "-m", "dragoman", "train", *files, *sets], stderr=subprocess.DEVNULL)
    while until is not None and process.poll() is None:
        if (run / "checkpoints" / f"step-{until:08d}").exists():
            process.kill()
        time.sleep(0.001)
    return process.wait()


if __name__ == "__main__":
    trials.preload()
    main()
