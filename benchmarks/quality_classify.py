"""Question: what does a person with 5,000 to 7,000 labelled sentences get, with default settings and a family alone?

    python benchmarks/quality_classify.py --models bag-mean bag-attention rnn bert --corpora sst2 trec

Reads SST-2 and TREC from ../shared/data/classify. TREC has no part for validation: a tenth of the training part is
split off by a hash, by the command itself. One JSON line for each run: accuracy on the test part with Wilson's 95 %
interval, macro-F1, the plan; then a table.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from runs import DATA, DRAGOMAN, lines

FOLDER = DATA / "classify"
CORPORA: dict[str, dict[str, list[object]]] = {
    "sst2": {
        "train": [FOLDER / "stsa.binary.train.gz", "--valid", FOLDER / "stsa.binary.dev.gz"],
        "test": [FOLDER / "stsa.binary.test.gz"],
    },
    "trec": {
        "train": [FOLDER / "TREC.train.all.gz", "--encoding", "latin-1"],
        "test": [FOLDER / "TREC.test.all.gz", "--encoding", "latin-1"],
    },
}
MODELS: dict[str, list[object]] = {
    "bag-mean": ["--family", "bag", "--set", "model.pooling=mean"],
    "bag-attention": ["--family", "bag", "--set", "model.pooling=attention"],
    "rnn": ["--family", "rnn"],
    "bert": ["--family", "bert"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="processor threads; else one for each core")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"the data are not in {DATA}; this benchmark needs them")
    found = [measure(model, corpus, options) for corpus in options.corpora for model in options.models]
    print(f"\n{'corpus':<8}{'model':<16}{'accuracy':>10}{'95 % interval':>18}{'macro-F1':>10}{'seconds':>9}")
    for row in found:
        interval = f"{row['interval'][0]:.1%} – {row['interval'][1]:.1%}"
        print(
            f"{row['corpus']:<8}{row['model']:<16}{row['accuracy']:>10.1%}{interval:>18}"
            f"{row['macro_f1']:>10.1%}{row['seconds']:>9}"
        )


def measure(model: str, corpus: str, options: argparse.Namespace) -> dict[str, Any]:
    files, threads = CORPORA[corpus], ["--threads", options.threads] if options.threads else []
    with TemporaryDirectory() as scratch:
        run = (options.keep or Path(scratch)) / f"{corpus}-{model}-{options.seed}"
        began = time.monotonic()
        command = [*DRAGOMAN, "train", *files["train"], "--task", "classify", *MODELS[model], *threads]
        events = list(map(json.loads, lines([*command, "--seed", options.seed, "--out", run, "--json"])))
        seconds = round(time.monotonic() - began)
        [scored] = map(json.loads, lines([*DRAGOMAN, "score", run, *files["test"], *threads, "--json"]))
    plan = next((event for event in events if event["event"] == "planned"), {})
    found = {"corpus": corpus, "model": model, "seed": options.seed, "seconds": seconds}
    found |= {key: scored[key] for key in ("texts", "accuracy", "interval", "macro_f1")}
    line = (
        found
        | {key: plan[key] for key in ("tokens", "training", "steps") if key in plan}
        | {"shape": plan.get("model")}
    )
    print(json.dumps({"benchmark": "classify", **line}, ensure_ascii=False), flush=True)
    return found


if __name__ == "__main__":
    main()
