"""Measure one trained model on the test set: how good, how fast, and what it looked at."""

import time
from pathlib import Path

import torch
from sacrebleu.metrics import BLEU

from dragoman.decoding.translate import Translator
from dragoman.evaluation.scores import SAMPLES, Chrf, by_length, lowercased_bleu
from dragoman.evaluation.scores import measure as score_by
from dragoman.jobs.open import load_as
from dragoman.lab.held_out import Sentences
from dragoman.lab.results import Looked, Measured, Sample
from dragoman.seeing.heatmap import cross_maps, mean_weights

WARM_UP = 8  # sentences translated before the clock starts


def measure(run: Path, test: Sentences) -> Measured:
    """Translate the test set as the model would for anybody, and look at a few of its sentences closely."""
    translator = load_as(Translator, run)
    sources, references = [pair.source for pair in test.pairs], [pair.target for pair in test.pairs]
    translator.translate(sources[:WARM_UP])
    began = time.perf_counter()
    outputs = [translation.text for translation in translator.translate(sources)]
    seconds = time.perf_counter() - began
    scores = [score_by(metric, outputs, references, SAMPLES) for metric in (BLEU, Chrf)]
    return Measured(
        parameters=sum(parameter.numel() for parameter in translator.model.parameters()),
        beam=translator.search.beam,
        threads=torch.get_num_threads(),
        seconds_per_1000=1000 * seconds / len(sources),
        scores=[*scores, lowercased_bleu(outputs, references)],
        by_length=by_length(sources, outputs, references, test.bounds),
        samples=[Sample(outputs[i], look(translator, sources[i], outputs[i])) for i in test.shown],
        outputs=outputs,
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
