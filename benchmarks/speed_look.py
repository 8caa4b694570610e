"""Question: what does it cost to look inside, and how soon can a person use the page?

    python benchmarks/speed_look.py                       a base-sized model with random weights, 25 words in and out
    python benchmarks/speed_look.py --model RUN --text "…"

Looking is measured against translating the same sentence, interleaved, the median of several; PCA, checkpoints and
writing the file are not counted. The page is opened from the disk in headless Chromium.
"""

import argparse
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import dragoman
from dragoman import models
from dragoman.decoding.translate import Translator
from dragoman.models.transformer import PRESETS, TransformerConfig
from dragoman.seeing.page import page_data, saved_page
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers

WORDS = 25
VOCABULARY = 8000
PAINTED = """() => new Promise(done => {
  const began = performance.now();
  location.hash = 'attention';
  const look = () => document.querySelector('table[role=grid] td')
    ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look);
  look();
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--text", default="")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    loaded: Any = dragoman.load(options.model) if options.model else random_translator()
    text = options.text or " ".join(f"w{n}" for n in range(WORDS))
    translating, looking = interleaved(
        lambda: loaded.translate([text]), lambda: dragoman.look(loaded, text), options.repeats
    )
    ratios = {"translate_seconds": round(translating, 3), "look_seconds": round(looking, 3)}
    ratios["found"] = round(looking / translating, 2)
    print(json.dumps({"benchmark": "look", "case": "collecting", **ratios, "at most": 3}), flush=True)
    data = page_data(options.model or Path("model"), loaded, dragoman.look(loaded, text))
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "look.html"
        file.write_text(saved_page(data), encoding="utf-8")
        print(json.dumps({"benchmark": "look", "case": "page", **open_page(file, options.repeats)}))


def random_translator() -> Translator:
    words = [f"w{n}" for n in range(VOCABULARY)]
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), [(" ".join(words), " ".join(words))])
    size = len(tokenizers.source)
    config = TransformerConfig(source_vocabulary=size, target_vocabulary=size, **PRESETS["base"])
    search = {"longest_ratio": 1.0, "longest_extra": 0}
    return Translator(models.build(config), tokenizers, {"longest": 100, "search": search, "languages": ["", ""]})


def interleaved(one: Callable[[], Any], other: Callable[[], Any], repeats: int) -> tuple[float, float]:
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(repeats + 1):
        for work, found in zip((one, other), seconds, strict=True):
            began = time.perf_counter()
            work()
            if number:  # the first of each warms up
                found.append(time.perf_counter() - began)
    return median(seconds[0]), median(seconds[1])


def open_page(file: Path, repeats: int) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    ready, painted = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(repeats):
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(file.resolve().as_uri())
            page.wait_for_selector("html.ready")
            ready.append(time.perf_counter() - began)
            painted.append(page.evaluate(PAINTED))
            page.close()
        browser.close()
    return {
        "megabytes": round(file.stat().st_size / 1e6, 2),
        "interactive_seconds": round(median(ready), 2),
        "attention_painted_ms": round(median(painted)),
    }


if __name__ == "__main__":
    main()
