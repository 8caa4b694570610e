"""Question: does a sentence's translation depend on what else is translated with it?

The same sentences in many random orders, cut into random batches; each must come out as it does alone.
"""

import argparse
import random
import tempfile
from pathlib import Path

import promises
import torch
import trials

import dragoman
from dragoman.text.generated import write_corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="batchings")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--steps", type=int, default=800, help="that the small model is trained")
    parser.add_argument("--beam", type=int, default=2)
    parser.add_argument("--model", help="a model of your own instead of a small one; with --input")
    parser.add_argument("--input", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = asked.model or small_model(Path(scratch), asked.steps)
        lines = asked.input or Path(scratch) / "corpus" / "test.source"
        texts = lines.read_text(encoding="utf-8").split("\n")[: asked.sentences]
        translator = dragoman.load(model)
        alone = {text: translator.translate([text], beam=asked.beam)[0].text for text in texts}
        chance, same = random.Random(1), 0
        for _ in range(asked.count):
            chance.shuffle(texts)
            same += all(
                found.text == alone[text]
                for batch in cut(texts, chance)
                for text, found in zip(batch, translator.translate(batch, beam=asked.beam), strict=True)
            )
        told = {
            "sentences": len(texts),
            "batchings": asked.count,
            "same text": same,
            "outputs": len({*alone.values()}),
        }
        holds = same == asked.count
        promises.tell(holds, proof="batchings", model=asked.model or "small", beam=asked.beam, **told)
    promises.end()


def cut(texts: list[str], chance: random.Random) -> list[list[str]]:
    """In one to twenty batches of random sizes."""
    places = sorted(chance.sample(range(1, len(texts)), chance.randint(0, min(19, len(texts) - 1))))
    return [texts[a:b] for a, b in zip([0, *places], [*places, len(texts)], strict=True)]


def small_model(folder: Path, steps: int) -> Path:
    corpus = folder / "corpus"
    write_corpus("reverse", corpus, count=4000, valid=8, test=200, seed=1)
    training = {"tokens_per_step": 1024, "validate_every": steps, "save_every": steps}
    assert trials.follow(trials.request_for(corpus, folder / "run", "transformer", steps=steps, **training)) == 0
    return folder / "run"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
