"""Question: what would a step of the base model take with 8, 64 and 1,024 workers? One worker is measured, the rest is
the arithmetic of training/scaling.py. The best of a few counts."""

import argparse
import json
import time
from collections.abc import Callable

import torch

from dragoman import models
from dragoman.models import FAMILIES
from dragoman.text.batches import make_batch
from dragoman.text.special import SpecialIds
from dragoman.training.objectives import translation_loss
from dragoman.training.optimizers import make_optimizer
from dragoman.training.scaling import Job, Network, predict

VOCABULARY, LENGTH, ROWS = 8000, 32, 16  # a micro-batch of 512 target tokens
NETWORKS = {"1 Gbit/s": Network(1.25e8, 1e-4), "25 Gbit/s": Network(3.1e9, 2e-5), "200 Gbit/s": Network(2.5e10, 5e-6)}


def best(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times + 1):  # the first one warms up
        start = time.monotonic()
        work()
        found.append(time.monotonic() - start)
    return min(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    torch.set_num_threads(1)
    family = FAMILIES["translate"]["transformer"]
    sizes = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY}
    model = models.build(family.config.read({**family.presets["base"], **sizes}, section="model"))
    pair = ([4 + k % 900 for k in range(LENGTH)], [5 + k % 900 for k in range(LENGTH - 1)])
    batch, optimizer = make_batch([pair] * ROWS, SpecialIds()), make_optimizer("adamw", model, 1e-4)
    job = Job(
        parameters=sum(p.numel() for p in model.parameters()),
        micro_batches=1024,
        tokens=1024 * ROWS * LENGTH,
        micro_batch_seconds=best(lambda: translation_loss(model, batch).nats.backward(), times),
        optimizer_seconds=best(optimizer.step, times),
        largest_block=max(sum(p.numel() for p in block.parameters()) for block in model.decoder),
    )
    print(json.dumps({"benchmark": "workers", "case": "measured", **job._asdict()}))
    for workers in (1, 8, 64, 1024):
        for name, network in NETWORKS.items():
            for sharded in (False, True):
                told = {
                    key: float(f"{value:.3g}")
                    for key, value in predict(job, workers, network, sharded=sharded)._asdict().items()
                }
                print(
                    json.dumps(
                        {"benchmark": "workers", "workers": workers, "network": name, "sharded": sharded, **told}
                    )
                )


if __name__ == "__main__":
    main()
