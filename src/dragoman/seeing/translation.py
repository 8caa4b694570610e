"""A translator at work: one search told step by step, and one watched pass over what came out of it."""

import time
from typing import NamedTuple

import torch

from dragoman.decoding.beam import Hypothesis, SearchConfig, beam_search
from dragoman.decoding.maps import AttentionMap
from dragoman.decoding.translate import Translator
from dragoman.decoding.tree import Node, Tree
from dragoman.decoding.watch import watch_translation
from dragoman.errors import DataError, UsageError
from dragoman.evaluation.scores import bleu, chrf
from dragoman.seeing.attention import against_gold, mean_over_heads, show_map, show_words
from dragoman.seeing.looked import (
    AttentionLayer,
    Beam,
    BeamNode,
    Look,
    Ranked,
    Reference,
    Side,
    Tokens,
    WordWeights,
    Written,
)
from dragoman.seeing.steps import show_steps
from dragoman.seeing.tokens import show_tokens
from dragoman.text.batches import make_batch, make_source
from dragoman.text.reading import clean

SIDES: dict[str, tuple[Side, Side]] = {  # whose tokens look at whose
    "encoder": ("source", "source"),
    "decoder": ("given", "given"),
    "cross": ("written", "source"),
}


class Searched(NamedTuple):
    outputs: list[Hypothesis]  # best first
    nodes: list[Node]
    seconds: float


def look_at_translation(
    translator: Translator, text: str, target: str | None, gold: str | None, beam: int | None, force: list[int]
) -> Look:
    tokenizers, special = translator.tokenizers, translator.tokenizers.special
    source = read_source(translator, text)
    width = translator.search.beam if beam is None else beam
    searched = search(translator, source, width, force)
    best = searched.outputs[0]
    watched = watch_translation(translator.model, tokenizers, source, best.tokens)
    sides: dict[Side, Tokens] = {
        "source": show_tokens(tokenizers.source, source, after=special.end),
        "given": show_tokens(tokenizers.target, best.tokens, before=special.start),
        "written": show_tokens(tokenizers.target, best.tokens, after=special.end),
    }
    layers = show_layers(watched.maps, sides)
    links = None
    if gold is not None:
        if not any(found.kind == "cross" for found in watched.maps):
            raise UsageError("E-LOOK-03", "this model has no attention over the source to hold against gold links")
        links, layers = against_gold(gold, layers, watched.maps, sides["source"], sides["written"])
    looked = mean_over_heads([found for found in watched.maps if found.kind == "cross"])
    words = None if looked is None else show_words(looked, sides["source"], sides["written"])
    beams = [show_beam(translator, searched, width)]
    if width > 1:
        beams.append(show_beam(translator, search(translator, source, 1, force), 1))
    return Look(
        kind="translate",
        text=text,
        **sides,
        forced=len(force),
        translation=show_outputs(translator, searched, words),
        reference=None if target is None else judge(translator, source, target, best),
        attention=layers,
        gold=links,
        steps=show_steps(watched, [*best.tokens, special.end], tokenizers.target, looked),
        beams=beams,
    )


def show_layers(maps: list[AttentionMap], sides: dict[Side, Tokens]) -> list[AttentionLayer]:
    return [show_map(found, *SIDES[found.kind], sides) for found in maps]


def read_source(translator: Translator, text: str) -> list[int]:
    [ids] = translator.tokenizers.source.encode([clean(text)])
    if len(ids) > translator.longest:
        raise DataError(
            "E-LONG-01",
            f"the text has {len(ids):,} tokens and this model was trained on up to {translator.longest:,}; "
            "look at a shorter one",
        )
    return ids


# ── the search ────────────────────────────────────────────────────────────────────────────


@torch.inference_mode()
def search(translator: Translator, source: list[int], width: int, force: list[int]) -> Searched:
    """As `translate` does it, but with as many outputs as there are beams: the tree's leaves."""
    special = translator.tokenizers.special
    refuse_unwritable(translator, force)
    config: SearchConfig = translator.search.changed({"beam": width, "nbest": width}, section="search")
    longest = max(config.longest(len(source)), len(force) + 1)
    tree = Tree(special, config.way())
    began = time.perf_counter()
    state = translator.model.encode(*make_source([source], special))
    prefixes = [force] if force else None
    [outputs] = beam_search(translator.model, state, [longest], special, config, prefixes, tell=tree.grow)
    seconds = time.perf_counter() - began
    if not outputs:
        raise DataError("E-LOOK-04", "the search found no output that begins so; force other tokens")
    return Searched(outputs, tree.close(outputs, longest), seconds)


def refuse_unwritable(translator: Translator, force: list[int]) -> None:
    target = translator.tokenizers.target
    never = {*target.special.never_written(), target.special.end}
    wrong = [token for token in force if token in never or not 0 <= token < len(target)]
    if wrong:
        raise UsageError("E-LOOK-04", f"the token {wrong[0]} cannot be forced: this model never writes it")


def show_beam(translator: Translator, searched: Searched, width: int) -> Beam:
    tokens = translator.tokenizers.target.pieces([node.token for node in searched.nodes])
    best = next((place for place, node in enumerate(searched.nodes) if node.rank == 1), None)
    way = set()
    while best is not None:
        way.add(best)
        best = searched.nodes[best].parent
    return Beam(
        width=width,
        nodes=[
            BeamNode(
                id=place,
                parent=node.parent,
                step=node.step,
                token=token,
                log_prob=round(node.log_prob, 4),
                score=round(node.score, 4),
                state=node.state,
                reason=node.reason,
                rank=node.rank,
                best=place in way,
            )
            for place, (node, token) in enumerate(zip(searched.nodes, tokens, strict=True))
        ],
    )


def show_outputs(translator: Translator, searched: Searched, words: WordWeights | None) -> Written:
    ranked = [
        Ranked(
            text=text_of(translator, output.tokens), score=round(output.score, 4), log_prob=round(output.log_prob, 4)
        )
        for output in searched.outputs
    ]
    best = ranked[0].model_dump()
    return Written(**best, seconds=round(searched.seconds, 3), nbest=ranked, words=words)


def text_of(translator: Translator, tokens: list[int]) -> str:
    return " ".join(translator.tokenizers.target.decode(tokens).split("\n"))


# ── a reference ───────────────────────────────────────────────────────────────────────────


@torch.inference_mode()
def judge(translator: Translator, source: list[int], target: str, best: Hypothesis) -> Reference:
    """Whom to blame for an output that is not the reference. The search looks for the best score: if the reference has
    a better one, the search missed it; else the model itself prefers its own."""
    [tokens] = translator.tokenizers.target.encode([clean(target)])
    log_prob = log_prob_of(translator, source, tokens)
    score = float(translator.search.way().score(torch.tensor([[log_prob]]), len(tokens) + 1))
    output = text_of(translator, best.tokens)
    numbers = f"(log p {log_prob:.2f} against {best.log_prob:.2f}; score {score:.3f} against {best.score:.3f})"
    if tokens == best.tokens or clean(target) == output:
        verdict, words = "same", f"The output is the reference {numbers}."
    elif score > best.score:
        verdict, words = "search error", f"The model prefers the reference, and the search missed it {numbers}."
    else:
        verdict, words = "model error", f"The model prefers its own output to the reference {numbers}."
    return Reference(
        text=target,
        log_prob=round(log_prob, 4),
        score=round(score, 4),
        verdict=verdict,
        sentence=words,
        bleu=round(bleu([output], [target]), 1),
        chrf=round(chrf([output], [target]), 1),
    )


def log_prob_of(translator: Translator, source: list[int], tokens: list[int]) -> float:
    batch = make_batch([(source, tokens)], translator.tokenizers.special)
    log_probs = translator.model(batch.source, batch.source_mask, batch.target_in)[0].log_softmax(dim=-1)
    return float(log_probs.gather(1, batch.target_out[0][:, None]).sum())
