"""Question: what does our training buy in ten minutes, beside Adam and the paper's schedule in a plain loop?

    python benchmarks/quality_minutes.py [--minutes 10] [--warmup 0.5]

Multi30k de-en, test_2016_flickr. Ours is the command with --minutes and nothing else. The plain loop has the model's
settings that the command chose, its tokenizer and its data, but dropout 0.1; and for its steps alone as many minutes,
or as the command took, if that was longer: the command prepares, times and validates in them. It is Vaswani et al.
2017, §5.3 and 5.4: 2,048 tokens a step, label smoothing 0.1, Adam with β 0.9 and 0.98, ε 1e-9, rate D^-½ · min(n^-½,
n · w^-1½). Their w is 4,000 of 100,000 steps; here it is half of the steps that there will be time for, by a timing
before: where w is small, the highest rate, w^-½ · D^-½, is beyond what Adam bears (in 1.2 minutes a tenth of the steps
gave 4.6 BLEU and a half 13.7). Its last weights count. Both are decoded with the same beam.
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from peers import tell
from quality_multi30k import pair
from runs import DATA, DRAGOMAN, lines

from dragoman import models
from dragoman.decoding.translate import Translator
from dragoman.evaluation.scores import bleu, chrf
from dragoman.jobs.open import load_as
from dragoman.jobs.prepare import open_prepared
from dragoman.jobs.translating import PairOrder
from dragoman.text.batches import Batch
from dragoman.text.reading import read_lines

DIRECTION = "de-en"
TOKENS, DROPOUT, SMOOTHING = 2048, 0.1, 0.1
TIMED = 10  # steps, after two that allocate
WANTED = 1.0  # BLEU that ours is to have more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="for each")
    parser.add_argument("--warmup", type=float, default=0.5, help="of the plain loop, as a share of its steps")
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"the data are not in {DATA}; this benchmark needs them")
    with TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        began = time.monotonic()
        train_ours(run, options.minutes)
        seconds = time.monotonic() - began
        ours = load_as(Translator, run)
        scored = report("ours", ours, {"seconds": round(seconds), "model": ours.model.config.shape()})
        model, about = train_plainly(ours.model.config, run, max(60 * options.minutes, seconds), options.warmup)
        plain = report("plain", Translator(model, ours.tokenizers, ours.about), about)
    tell(benchmark="minutes", minutes=options.minutes, **{"BLEU more": round(scored - plain, 2), "wanted": WANTED})


def train_ours(run: Path, minutes: float) -> None:
    valid = ["--valid", *pair("val", DIRECTION)]
    lines([*DRAGOMAN, "train", *pair("train", DIRECTION), *valid, "--minutes", minutes, "--out", run, "--json"])


def report(loop: str, translator: Translator, about: dict[str, Any]) -> float:
    sources, references = ([*read_lines(path)] for path in pair("test_2016_flickr", DIRECTION))
    outputs = [translation.text for translation in translator.translate(sources)]
    score = bleu(outputs, references)
    found = {"BLEU": round(score, 2), "chrF": round(chrf(outputs, references), 2), "beam": translator.search.beam}
    tell(benchmark="minutes", loop=loop, **found, **about)
    return score


# ── the plain loop ────────────────────────────────────────────────────────────────────────


def train_plainly(config: Any, run: Path, seconds: float, share: float) -> tuple[Any, dict[str, Any]]:
    prepared = open_prepared(run)
    config = config.changed({"dropout": DROPOUT}, section="model")
    order = PairOrder(prepared.train, TOKENS, seed=1, special=prepared.tokenizers.special)
    expected = max(1, int(seconds / time_step(config, order)))
    warmup = max(1, round(share * expected))
    model, optimizer = begin(config)
    number, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        number += 1
        learn(model, optimizer, batch_at(order, number), rate_of(number, config.width, warmup))
    about = {"seconds": round(time.monotonic() - start), "steps": number, "steps expected": expected}
    return model, about | {"warm-up": warmup, "highest rate": round(rate_of(warmup, config.width, warmup), 5)}


def begin(config: Any) -> tuple[Any, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = models.build(config).train()
    return model, torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)


def time_step(config: Any, order: PairOrder) -> float:
    """Seconds, by a model that is thrown away."""
    model, optimizer = begin(config)
    start = 0.0
    for number in range(1, TIMED + 3):
        if number == 3:
            start = time.monotonic()
        learn(model, optimizer, batch_at(order, number), 1e-6)
    return (time.monotonic() - start) / TIMED


def batch_at(order: PairOrder, step: int) -> Batch:
    return order.batch(*divmod(step - 1, len(order)))


def rate_of(step: int, width: int, warmup: int) -> float:
    """D^-½ · min(n^-½, n · w^-1½)   (Vaswani et al. 2017, eq. 3)."""
    return width**-0.5 * min(step**-0.5, step * warmup**-1.5)


def learn(model: Any, optimizer: torch.optim.Optimizer, batch: Batch, rate: float) -> None:
    logits = model(batch.source, batch.source_mask, batch.target_in)
    wanted = batch.target_out.masked_fill(~batch.target_mask, -100).flatten()
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted, label_smoothing=SMOOTHING)
    optimizer.param_groups[0]["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


if __name__ == "__main__":
    main()
