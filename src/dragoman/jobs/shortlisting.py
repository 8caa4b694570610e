"""A translator's shortlist: learned when training is over, as short as it may be; how many translations of the
validation part come out otherwise is told, and saved with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from dragoman.decoding.packing import can_pack
from dragoman.decoding.translate import Translator
from dragoman.evaluation.scores import bleu
from dragoman.jobs.signals import Stop
from dragoman.jobs.task import Task
from dragoman.jobs.translating import Translating, spread
from dragoman.runs.model import SavedModel, open_model, save_model
from dragoman.runs.weights import weights_of
from dragoman.text.corpus import Pair
from dragoman.text.shortlist import Shortlist, learn_lexicon

WORTH = 8_000  # target tokens: fewer are scored so quickly that a list for each sentence takes longer
MISSING = 0.01  # of translations may have a token that is on no list
LEAST = (1e-3, 3e-4, 1e-4, 3e-5, 0.0)  # likelihoods that put a token on a list, tried one after the other
SENTENCES = 500  # of the validation part, at most


def learn_shortlist(folder: Path, task: Task, stop: Stop) -> Iterator[str]:
    """One sentence, for a model of which it is not known yet; nothing where a list would save nothing."""
    if not isinstance(task, Translating) or not (folder / "config.json").exists():
        return
    saved, tokens = open_model(folder), len(task.tokenizers.target)
    if saved.shortlist is not None or tokens < WORTH or not can_pack(saved.model):
        return
    pairs, sources = short_enough(task, saved.about["longest"])
    search = Translator(saved.model, saved.tokenizers, saved.about).search
    if not pairs or not search.by_scores_alone(task.tokenizers.special):  # else a list would not be used
        return
    shortlist, mean = shortest(saved, task, sources)
    if stop.asked:
        return
    translator = Translator(saved.model, saved.tokenizers, saved.about, shortlist)
    whole, listed = (
        [t.text for t in translator.translate([pair.source for pair in pairs], shortlist=short)]
        for short in (False, True)
    )
    changed = sum(a != b for a, b in zip(whole, listed, strict=True)) / len(pairs)
    scores = [bleu(outputs, [pair.target for pair in pairs]) for outputs in (whole, listed)]
    found = {"sentences": len(pairs), "changed": changed, "tokens": mean, "bleu": scores}
    config: Any = saved.model.config
    save_model(folder, config, weights_of(saved.model), saved.tokens, {**saved.about, "shortlist": found}, shortlist)
    yield (
        f"with --shortlist it chooses among {mean:,.0f} of {tokens:,} tokens a sentence: {changed:.1%} of "
        f"{len(pairs):,} validation sentences come out otherwise, BLEU {scores[1]:.2f} instead of {scores[0]:.2f}"
    )


def short_enough(task: Translating, longest: int) -> tuple[list[Pair], list[list[int]]]:
    """Some of the validation part, as long as what was trained on; and their sources as ids."""
    pairs = spread(task.prepared.valid_texts, SENTENCES)
    sources = task.tokenizers.source.encode([pair.source for pair in pairs])
    kept = [i for i, source in enumerate(sources) if 0 < len(source) <= longest]
    return [pairs[i] for i in kept], [sources[i] for i in kept]


def shortest(saved: SavedModel, task: Translating, sources: list[list[int]]) -> tuple[Shortlist, float]:
    """With hardly a token missing of what the model writes; and how many tokens it has for a sentence."""
    tokenizers, config = task.tokenizers, cast("Any", saved.model.config)
    special, translator = tokenizers.target.special, Translator(saved.model, tokenizers, saved.about)
    written = translator.write_ids(sources, beam=1)
    lexicon = learn_lexicon(task.prepared.train, config.target_vocabulary)
    always = sorted({*special.pieces(), *special.ends})
    for least in LEAST:
        shortlist = lexicon.shortlist(least, config.source_vocabulary, always, copies=tokenizers.joint)
        lists = [shortlist.of(source) for source in sources]
        missing = sum(not set(output) <= set(one.tolist()) for output, one in zip(written, lists, strict=True))
        if missing <= MISSING * len(sources):
            break
    return shortlist, sum(map(len, lists)) / len(lists)
