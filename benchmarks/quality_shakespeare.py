"""Question: how well do a plain RNN, a GRU, an LSTM and a GPT foresee Shakespeare, character by character?

    python benchmarks/quality_shakespeare.py --minutes 10 --models rnn gru lstm gpt     the planned size, equal time
    python benchmarks/quality_shakespeare.py --models recipe                            a small GPT for 2,000 steps

Loss over the whole last tenth of the text, by `dragoman score`, in nats a character. The recipe: 4 blocks, 4 heads,
width 128, windows of 64, 12 of them a step, AdamW, cosine from 1e-3 after 100 steps.
"""

import argparse
import gzip
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from runs import DATA, DRAGOMAN, lines

TEXT = DATA / "shakespeare" / "input.txt.gz"
SHAPE = {"width": 128, "heads": 4, "layers": 4, "hidden": 512, "longest": 64, "dropout": 0.0, "biases": "false"}
STEPS = {"steps": 2000, "tokens_per_step": 12 * 64, "optimizer": "adamw", "rate": 1e-3, "warmup": 100}
STEPS |= {"schedule": "cosine", "weight_decay": 0.1, "validate_every": 500, "save_every": 500}
RECIPE = {**{f"model.{key}": value for key, value in SHAPE.items()}, **{f"training.{k}": v for k, v in STEPS.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--models", nargs="+", default=["rnn", "gru", "lstm", "gpt", "recipe"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    options = parser.parse_args()
    for model in options.models:
        with TemporaryDirectory() as scratch:
            measure(model, options, (options.keep or Path(scratch)) / f"shakespeare-{model}-{options.minutes:g}")


def measure(model: str, options: argparse.Namespace, run: Path) -> None:
    family = "gpt" if model in ("gpt", "recipe") else "rnn"
    settings = {"tokenizer.kind": "characters"}
    settings |= RECIPE if model == "recipe" else {} if family == "gpt" else {"model.cell": model}
    command = [*DRAGOMAN, "train", TEXT, "--family", family, "--out", run, "--json"]
    command += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command += ["--threads", options.threads, *([] if model == "recipe" else ["--minutes", options.minutes])]
    began = time.monotonic()
    plan = next((event for event in map(json.loads, lines(command)) if event["event"] == "planned"), {})
    found = {"benchmark": "shakespeare", "case": model, "seconds": round(time.monotonic() - began)}
    found |= {"nats a character": loss_of(run), "threads": options.threads}
    print(json.dumps(found | {key: plan[key] for key in ("text", "model", "training", "steps") if key in plan}))


def loss_of(run: Path) -> float:
    """Over the last tenth of the characters, each after all of it before, or what a window shows."""
    text = gzip.decompress(TEXT.read_bytes()).decode()
    with TemporaryDirectory() as scratch:
        held_back = Path(scratch) / "end.txt"
        held_back.write_text(text[round(0.9 * len(text)) :], encoding="utf-8")
        [scored] = map(json.loads, lines([*DRAGOMAN, "score", run, held_back, "--json"]))
    return round(scored["nats_per_token"], 4)


if __name__ == "__main__":
    main()
