"""The exam of translators: the same sentences for all; how good each is, how fast, and what it looked at."""

import hashlib
import json
import time
from pathlib import Path
from typing import NamedTuple

import torch
from sacrebleu.metrics import BLEU

from dragoman.decoding.translate import Translator
from dragoman.errors import DataError
from dragoman.evaluation.scores import BOUNDS, ENOUGH, SAMPLES, Chrf, by_length, length_bounds, lowercased_bleu
from dragoman.evaluation.scores import measure as score_by
from dragoman.evaluation.significance import Paired, paired_bootstrap
from dragoman.jobs.open import load_as
from dragoman.lab.asked import Asked, find_pairs
from dragoman.lab.results import HeldOut, Looked, Sample, Shown, Translated
from dragoman.seeing.heatmap import cross_maps, mean_weights
from dragoman.text.check import leaks, read_table
from dragoman.text.corpus import Pair, check_alignment

SHOWN = (0.1, 0.5, 0.9)  # of the sentences by length: a short one, a middle one, a long one
WARM_UP = 8  # sentences translated before the clock starts


class Sentences(NamedTuple):
    pairs: list[Pair]
    sha256: str
    bounds: tuple[int, ...]  # of the length buckets, in source words
    shown: list[int]  # which of them are shown with their attention

    @property
    def kind(self) -> type[Translated]:
        return Translated

    @property
    def file(self) -> str:
        return "translations.txt"

    @property
    def sources(self) -> list[str]:
        return [pair.source for pair in self.pairs]

    @property
    def references(self) -> list[str]:
        return [pair.target for pair in self.pairs]

    def describe(self, asked: Asked) -> HeldOut:
        train, _ = read_table(find_pairs(asked, asked.corpora), None)
        other, _ = read_table(find_pairs(asked, asked.test), None)
        found = leaks(train, other)
        return HeldOut(
            files=asked.test,
            sentences=len(self.pairs),
            sha256=self.sha256,
            in_training=sum(finding.count for finding in found),
            leak=" ".join(finding.sentence for finding in found),
            bounds=list(self.bounds),
            how=describe_bounds(self.bounds),
            shown=[Shown(*self.pairs[i]) for i in self.shown],
        )

    def measure(self, run: Path) -> Translated:
        """Translate the test set as the model would for anybody, and look at a few of its sentences closely."""
        translator = load_as(Translator, run)
        sources, references = self.sources, self.references
        translator.translate(sources[:WARM_UP])
        began = time.perf_counter()
        outputs = [translation.text for translation in translator.translate(sources)]
        seconds = time.perf_counter() - began
        scores = [score_by(metric, outputs, references, SAMPLES) for metric in (BLEU, Chrf)]
        return Translated(
            parameters=sum(parameter.numel() for parameter in translator.model.parameters()),
            threads=torch.get_num_threads(),
            seconds_per_1000=1000 * seconds / len(sources),
            scores=[*scores, lowercased_bleu(outputs, references)],
            outputs=outputs,
            beam=translator.search.beam,
            by_length=by_length(sources, outputs, references, self.bounds),
            samples=[Sample(outputs[i], look(translator, sources[i], outputs[i])) for i in self.shown],
        )

    def compare(self, first: list[str], second: list[str]) -> list[Paired]:
        return paired_bootstrap(first, second, self.references)


def read_sentences(asked: Asked) -> Sentences:
    for files in (asked.corpora, *([asked.valid] if asked.valid else []), asked.test):
        check_alignment(find_pairs(asked, files))
    pairs = list(find_pairs(asked, asked.test).pairs())
    if not any(pair.source.strip() and pair.target.strip() for pair in pairs):
        raise DataError("E-CMP-06", f"{' '.join(asked.test)} holds no sentence pair; give --test what to measure on")
    written = json.dumps(pairs, ensure_ascii=False).encode("utf-8", "surrogatepass")
    bounds = length_bounds([pair.source for pair in pairs])
    return Sentences(pairs, hashlib.sha256(written).hexdigest(), bounds, choose_shown(pairs))


def choose_shown(pairs: list[Pair]) -> list[int]:
    full = [i for i, pair in enumerate(pairs) if pair.source.strip()]
    by_words = sorted(full, key=lambda i: len(pairs[i].source.split()))
    return list(dict.fromkeys(by_words[int(share * len(by_words))] for share in SHOWN))


def describe_bounds(bounds: tuple[int, ...]) -> str:
    if bounds == BOUNDS:
        return "the usual bounds; every bucket holds enough sentences"
    return (
        f"quarters of the test set by source length, since the usual bounds ({', '.join(map(str, BOUNDS))} words) "
        f"would leave a bucket with fewer than {ENOUGH} sentences"
    )


def look(translator: Translator, source: str, output: str) -> Looked | None:
    """What was attended to; nothing for a model without attention, or a sentence that it had to take in parts."""
    if len(translator.tokenizers.source.encode([source])[0]) > translator.longest:
        return None
    cross = cross_maps(translator.look(source, output))
    if not cross:
        return None
    weights = [[round(weight, 4) for weight in row] for row in mean_weights(cross).tolist()]
    return Looked(cross[0].queries, cross[0].keys, weights)
