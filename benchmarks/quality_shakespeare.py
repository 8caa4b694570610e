"""Question: how well do a plain RNN, a GRU and an LSTM foresee Shakespeare, character by character, in equal time?

Validation loss over the last tenth of the text, in nats a character, after --minutes of training each.
"""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from runs import DATA, DRAGOMAN, arguments, lines

CELLS = ["rnn", "gru", "lstm"]


def main() -> None:
    options = arguments(__doc__, minutes=[10], directions=CELLS)
    for minutes in options.minutes:
        for cell in options.directions:
            with TemporaryDirectory() as scratch:
                measure(cell, minutes, (options.keep or Path(scratch)) / f"shakespeare-{cell}-{minutes:g}")


def measure(cell: str, minutes: float, run: Path) -> None:
    settings = ["--set", "tokenizer.kind=characters", "--set", f"model.cell={cell}"]
    began = time.monotonic()
    command = [*DRAGOMAN, "train", DATA / "shakespeare" / "input.txt.gz", "--family", "rnn", *settings]
    events = list(map(json.loads, lines([*command, "--minutes", minutes, "--out", run, "--json"])))
    plan = next(event for event in events if event["event"] == "planned")
    found = {"benchmark": "shakespeare", "cell": cell, "minutes": minutes, "seconds": round(time.monotonic() - began)}
    found |= {"nats a character": round(events[-1]["best_nats"], 4)}
    print(json.dumps(found | {key: plan[key] for key in ("text", "model", "training", "steps")}), flush=True)


if __name__ == "__main__":
    main()
