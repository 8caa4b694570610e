"""A translator at work: one search told step by step, and one watched pass over what came out of it."""

import time
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.beam import Hypothesis, SearchConfig, beam_search
from dragoman.decoding.finish import worth
from dragoman.decoding.maps import AttentionMap
from dragoman.decoding.translate import Translator
from dragoman.decoding.tree import Node, Tree
from dragoman.decoding.watch import watch_translation
from dragoman.errors import DataError, UsageError
from dragoman.evaluation.scores import bleu, chrf
from dragoman.seeing.attention import against_gold, mean_over_heads, show_maps, show_words
from dragoman.seeing.looked import (
    AttentionLayer,
    Beam,
    BeamNode,
    GoldLinks,
    Look,
    Ranked,
    Reference,
    Side,
    Tokens,
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
    opened = read(translator, source)
    searched = search(translator, opened, width, force)
    best = searched.outputs[0]
    whole = special.ended(best.tokens)
    watched = watch_translation(translator.model, tokenizers, source, best.tokens)
    sides: dict[Side, Tokens] = {
        "source": show_tokens(tokenizers.source, source, text=clean(text), after=special.end),
        "given": show_tokens(tokenizers.target, whole[:-1], before=special.start),
        "written": show_tokens(tokenizers.target, whole[:-1], after=whole[-1]),
    }
    layers, links = show_layers(watched.maps, sides), None
    if gold is not None:
        links, layers = hold_against(gold, translator, source, target, layers, watched.maps, sides)
    looked = mean_over_heads([found for found in watched.maps if found.kind == "cross"])
    beams = [show_beam(translator, searched, width)]
    if width > 1:
        beams.append(show_beam(translator, search(translator, opened, 1, force), 1))
    return Look(
        kind="translate",
        text=text,
        **sides,
        forced=len(force),
        translation=show_outputs(translator, searched, looked, sides),
        reference=None if target is None else judge(translator, opened, target, best, width, force),
        attention=layers,
        gold=links,
        steps=show_steps(watched, whole, tokenizers.target, looked),
        beams=beams,
    )


def hold_against(
    gold: str,
    translator: Translator,
    source: list[int],
    target: str | None,
    layers: list[AttentionLayer],
    maps: list[AttentionMap],
    sides: dict[Side, Tokens],
) -> tuple[GoldLinks, list[AttentionLayer]]:
    """Links lead to the reference's words where there is one: then its writing is watched, too."""
    if not any(found.kind == "cross" for found in maps):
        raise UsageError("E-LOOK-03", "this model has no attention over the source to hold against gold links")
    if target is None:
        return against_gold(gold, layers, maps, sides["source"], sides["written"], "output")
    tokenizers = translator.tokenizers
    [tokens] = tokenizers.target.encode([clean(target)])
    watched = watch_translation(translator.model, tokenizers, source, tokens)
    written = show_tokens(tokenizers.target, tokens, text=clean(target), after=tokenizers.special.end)
    return against_gold(gold, layers, watched.maps, sides["source"], written, "reference")


def show_layers(maps: list[AttentionMap], sides: dict[Side, Tokens]) -> list[AttentionLayer]:
    """In the order of `maps`; those of one kind are worked on together."""
    shown = {
        layer.name: layer
        for kind, (queries, keys) in SIDES.items()
        for layer in show_maps([found for found in maps if found.kind == kind], queries, keys, sides)
    }
    return [shown[found.layer] for found in maps]


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


class Opened(NamedTuple):
    """A source as the encoder has read it, once for all searches: each begins with rows of its own."""

    source: list[int]
    writer: Any
    state: Any
    seconds: float


@torch.inference_mode()
def read(translator: Translator, source: list[int]) -> Opened:
    began = time.perf_counter()
    writer = translator.lone_writer()
    state = writer.encode(*make_source([source], translator.tokenizers.special))
    return Opened(source, writer, state, time.perf_counter() - began)


@torch.inference_mode()
def search(translator: Translator, opened: Opened, width: int, force: list[int]) -> Searched:
    """As `translate` does it, but with as many outputs as there are beams: the tree's leaves."""
    special = translator.tokenizers.special
    refuse_unwritable(translator, force)
    config: SearchConfig = translator.search.changed({"beam": width, "nbest": width}, section="search")
    longest = max(config.longest(len(opened.source)), len(force) + 1)
    tree = Tree(special, config.way())
    began = time.perf_counter()
    prefixes = [force] if force else None
    [outputs] = beam_search(opened.writer, opened.state, [longest], special, config, prefixes, tell=tree.grow)
    seconds = opened.seconds + time.perf_counter() - began
    if not outputs:
        raise DataError("E-LOOK-04", "the search found no output that begins so; force other tokens")
    return Searched(outputs, tree.close(outputs, longest), seconds)


def refuse_unwritable(translator: Translator, force: list[int]) -> None:
    """<end> may be forced, as the last one."""
    target = translator.tokenizers.target
    never = unwritable(translator)
    for place, token in enumerate(force):
        if not 0 <= token < len(target):
            raise UsageError("E-LOOK-04", f"there is no token {token} to force; this model has {len(target):,}")
        if token in never or (token in target.special.ends and place < len(force) - 1):
            piece = target.pieces([token])[0]
            raise UsageError("E-LOOK-04", f"{piece} cannot be forced here: no output of this model may hold it")


def unwritable(translator: Translator) -> set[int]:
    """Tokens that the search lets no output hold."""
    if translator.search.never is None:
        return set(translator.tokenizers.special.never_written())
    return {run[0] for run in translator.search.never if len(run) == 1}


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


def show_outputs(
    translator: Translator, searched: Searched, looked: Float[Tensor, "T S"] | None, sides: dict[Side, Tokens]
) -> Written:
    ranked = [
        Ranked(
            text=text_of(translator, output.tokens), score=round(output.score, 4), log_prob=round(output.log_prob, 4)
        )
        for output in searched.outputs
    ]
    words = None if looked is None else show_words(looked, sides["source"], sides["written"])
    note = "This model has no attention over the source." if looked is None else ""
    if looked is not None and words is None:
        note = "Nothing was written, so there is nothing to link."
    best = ranked[0].model_dump()
    return Written(**best, seconds=round(searched.seconds, 3), nbest=ranked, words=words, note=note)


def text_of(translator: Translator, tokens: list[int]) -> str:
    return " ".join(translator.tokenizers.target.decode(tokens).split("\n"))


# ── a reference ───────────────────────────────────────────────────────────────────────────


@torch.inference_mode()
def judge(
    translator: Translator, opened: Opened, target: str, shown: Hypothesis, width: int, force: list[int]
) -> Reference:
    """Whom to blame for an output that is not the reference. The search looks for the best score: if the reference has
    a better one, the search missed it; else the model itself prefers its own. What was forced is nobody's fault, so
    the reference is held against what the search finds by itself."""
    [tokens] = translator.tokenizers.target.encode([clean(target)])
    best = search(translator, opened, width, []).outputs[0] if force else shown
    log_prob = log_prob_of(translator, opened.source, tokens)
    score = worth(translator.search.way(), log_prob, len(tokens) + 1)
    verdict, words = compare(translator, target, tokens, score, best)
    numbers = f"(log p {log_prob:.2f} against {best.log_prob:.2f}; score {score:.3f} against {best.score:.3f})"
    output = text_of(translator, shown.tokens)
    return Reference(
        text=target,
        log_prob=round(log_prob, 4),
        score=round(score, 4),
        verdict=verdict,
        sentence=f"{words} {numbers}.",
        bleu=round(bleu([output], [target]), 1),
        chrf=round(chrf([output], [target]), 1),
    )


def compare(
    translator: Translator, target: str, tokens: list[int], score: float, best: Hypothesis
) -> tuple[Literal["search error", "model error", "same", "unwritable"], str]:
    strange = [token for token in tokens if token in unwritable(translator)]
    if tokens == best.tokens or clean(target) == text_of(translator, best.tokens):
        return "same", "The search's own output is the reference"
    if strange:
        piece = translator.tokenizers.target.pieces(strange[:1])[0]
        return "unwritable", f"The reference holds {piece}, which no output may: nobody is to blame"
    if score > best.score:
        return "search error", "The model prefers the reference, and the search missed it"
    return "model error", "The model prefers its own output to the reference"


def log_prob_of(translator: Translator, source: list[int], tokens: list[int]) -> float:
    batch = make_batch([(source, tokens)], translator.tokenizers.special)
    log_probs = translator.model(batch.source, batch.source_mask, batch.target_in)[0].log_softmax(dim=-1)
    return float(log_probs.gather(1, batch.target_out[0][:, None]).sum())
