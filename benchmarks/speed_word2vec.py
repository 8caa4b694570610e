"""Question: how fast does word2vec learn beside gensim's, and do both learn the same? Words per second, in one run.

The text is all English there is in the data: the same words, vocabulary and settings for both, two threads each. A seed
after the other, ours and gensim's by turns. Only training is timed: words are split, counted and numbered before.
WordSim-353 tells what was learned: Spearman's correlation, as the mean over the seeds.
"""

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import torch
from jaxtyping import Float

from dragoman.evaluation.words import spearman
from dragoman.jobs.embedding import words_per_step
from dragoman.jobs.machine import keep_memory
from dragoman.jobs.run import build_model
from dragoman.models.word_vectors import Word2VecConfig
from dragoman.text.neighbours import BlockedText, count_words
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import Tokenizer, learn
from dragoman.text.word_tests import Judgement, read_word_test
from dragoman.text.words import WordRules
from dragoman.training.rows import train_rows
from dragoman.training.schedules import share_of_peak
from dragoman.training.word2vec import Word2VecLoss

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS, EPOCHS, WIDTH, REACH, NEGATIVES, SAMPLE, LEAST, RATE = 2, 5, 100, 5, 5, 1e-3, 5, 0.025


def english() -> Iterator[str]:
    """A sentence or line at a time."""
    yield from lines("multi30k/train.en.gz")
    for language in ("de", "fr"):
        yield from (line.rstrip("\n").split("\t")[1] for line in lines(f"tatoeba/train.{language}-en.tsv.gz"))
    yield from lines("shakespeare/input.txt.gz")
    yield from (line.partition(" ")[2] for line in lines("classify/stsa.binary.train.gz"))


def lines(name: str) -> Iterator[str]:
    with gzip.open(DATA / name, "rt", encoding="utf-8", errors="replace") as file:
        yield from file


def ours(sentences: list[list[int]], tokenizer: Tokenizer, seed: int) -> tuple[float, Float[np.ndarray, "V D"]]:
    special = SpecialIds()
    ids = np.array([i for sentence in sentences for i in (*sentence, special.end)], np.uint32)
    counts = count_words(ids, len(tokenizer), special)
    config = Word2VecConfig(
        vocabulary=len(tokenizer), width=WIDTH, reach=REACH, negatives=NEGATIVES, sample=SAMPLE
    )  # fmt: skip
    model = build_model(config, seed)
    size = words_per_step(counts, config, RATE)
    order = BlockedText(ids, counts, special, reach=REACH, sample=SAMPLE, tokens=size, seed=seed)
    steps = EPOCHS * len(order)
    began = time.perf_counter()
    batches = ([order.batch(*divmod(place, len(order)))] for place in range(steps))
    for _ in train_rows(model, batches, Word2VecLoss(), rate=lambda n: RATE * share_of_peak("linear", n, 0, steps)):
        pass
    return time.perf_counter() - began, model.vectors().numpy()


def gensims(sentences: list[list[str]], tokenizer: Tokenizer, seed: int) -> tuple[float, Float[np.ndarray, "V D"]]:
    from gensim.models import Word2Vec

    model = Word2Vec(
        vector_size=WIDTH, window=REACH, min_count=LEAST, sg=1, negative=NEGATIVES, sample=SAMPLE, alpha=RATE,
        epochs=EPOCHS, workers=torch.get_num_threads(), seed=seed,
    )  # fmt: skip
    model.build_vocab(sentences)
    began = time.perf_counter()
    model.train(sentences, total_examples=model.corpus_count, epochs=EPOCHS)
    seconds = time.perf_counter() - began
    known = tokenizer.pieces(range(len(tokenizer)))
    return seconds, np.stack([model.wv[word] if word in model.wv else np.zeros(WIDTH) for word in known])


def agreement(vectors: Float[np.ndarray, "V D"], tokenizer: Tokenizer, test: list[Judgement]) -> tuple[float, int]:
    rows = [(tokenizer.encode([one.first.lower()])[0], tokenizer.encode([one.second.lower()])[0]) for one in test]
    known = [(a[0], b[0], one.score) for (a, b), one in zip(rows, test, strict=True) if {a[0], b[0]}.isdisjoint({3})]
    first, second, scores = (np.array(column) for column in zip(*known, strict=True))
    directions = vectors / np.maximum(1e-12, np.linalg.norm(vectors, axis=1, keepdims=True))
    return spearman((directions[first] * directions[second]).sum(axis=1), scores), len(known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=THREADS)
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"the data are not in {DATA}; this benchmark needs them")
    keep_memory()
    torch.set_num_threads(options.threads)
    rules = WordRules(lowercase=True, split_punctuation=True, least=LEAST)
    text = list(english())
    tokenizer = learn("words", text, 0, SpecialIds(), words=rules)
    numbered = tokenizer.encode(text)
    words = sum(i > 3 for sentence in numbered for i in sentence)
    spelled = [[word for word in rules.split(line) if word in tokenizer.ids] for line in text]
    test = read_word_test(DATA / "words" / "wordsim353.tsv")
    about = {"words": words, "vocabulary": len(tokenizer), "megabytes": round(sum(map(len, text)) / 1e6, 1)}
    print(json.dumps({"benchmark": "word2vec", **about, "threads": options.threads}), flush=True)
    found: dict[str, list[tuple[float, float]]] = {"dragoman": [], "gensim": []}
    for seed in range(1, options.seeds + 1):
        for name, learn_it, given in (("dragoman", ours, numbered), ("gensim", gensims, spelled)):
            seconds, vectors = learn_it(given, tokenizer, seed)
            correlation, pairs = agreement(vectors, tokenizer, test)
            found[name].append((EPOCHS * words / seconds, correlation))
            line = {"case": name, "seed": seed, "words/s": round(found[name][-1][0]), "wordsim": round(correlation, 4)}
            print(json.dumps({"benchmark": "word2vec", **line, "pairs": pairs}), flush=True)
    report(found)


def report(found: dict[str, list[tuple[float, float]]]) -> None:
    """The best round's speed, the mean correlation."""
    speeds = {name: max(speed for speed, _ in rounds) for name, rounds in found.items()}
    for name, rounds in found.items():
        scores = [score for _, score in rounds]
        line = {"case": name, "words/s": round(speeds[name]), "ratio": round(speeds[name] / speeds["gensim"], 2)}
        spread = round(stdev(scores), 4) if len(scores) > 1 else None
        print(json.dumps({"benchmark": "word2vec", **line, "wordsim": round(mean(scores), 4), "spread": spread}))


if __name__ == "__main__":
    main()
