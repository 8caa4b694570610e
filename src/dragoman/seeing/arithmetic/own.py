"""The arithmetic of a model that someone trained, on a text of theirs: its first block, its own numbers."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from dragoman import models
from dragoman.decoding.classify import Classifier
from dragoman.decoding.embed import Embedder
from dragoman.decoding.fill import MASK, Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.translate import Translator
from dragoman.jobs.open import Learned
from dragoman.models.bert import BertReader
from dragoman.models.rnn import Rnn
from dragoman.modules.block import Block, Stack
from dragoman.modules.embeddings import TokenEmbedding
from dragoman.modules.positions import LearnedPositions, RelativePositions, SinusoidalPositions
from dragoman.seeing.arithmetic.block import Case, stage, stages_of, work_through
from dragoman.seeing.arithmetic.matrices import SHOWN, Arithmetic, Stage, counted, matrix
from dragoman.seeing.arithmetic.recurrent import recurrent_arithmetic
from dragoman.seeing.arithmetic.shuffle import shuffle_words
from dragoman.text.reading import clean
from dragoman.text.tokenizer import Tokenizer

Places = (SinusoidalPositions, LearnedPositions, RelativePositions)
Part = TypeVar("Part", bound=nn.Module)


class Reading(NamedTuple):
    """A text as a model's first block reads it."""

    model: Any
    run: Callable[[Int[Tensor, "1 T"]], Any]  # a pass that goes through the first block
    tokenizer: Tokenizer
    ids: list[int]

    @property
    def block(self) -> Block:
        return next(iter(part_of(self.model, Stack)))


class Entered(NamedTuple):
    """What the first block was given, and the vectors that were added up to it."""

    states: Float[Tensor, "1 T D"]
    mask: Bool[Tensor, "1 1 #T T"] | None
    bias: Float[Tensor, "1 H T T"] | None
    parts: dict[str, Tensor]


@torch.inference_mode()
def model_arithmetic(learned: Learned, text: str) -> Arithmetic | None:
    """The first block that reads the text, encoder or decoder, or how a recurrent decoder looks at it; None for a model
    without attention over text."""
    if isinstance(learned, Translator) and isinstance(learned.model, Rnn) and learned.model.source_attention:
        return recurrent_arithmetic(learned, text)
    reading = reading_of(learned, text)
    if reading is None:
        return None
    block, words = reading.block, reading.tokenizer.pieces(reading.ids)
    states, mask, bias, parts = enter(reading, reading.ids)
    case = Case(words, block, work_through(block, states, mask, bias), mask, bias)

    def weigh(order: list[int], told: bool) -> Float[Tensor, "T T"]:
        found = enter(reading, [reading.ids[i] for i in order], told=told)
        return work_through(block, found.states, None, found.bias).weights[0, 0]

    family = models.task_and_family_of(reading.model.config)[1]
    return Arithmetic(
        source="model",
        title=f"The first {'decoder' if case.hides else 'encoder'} block of this {family}, head 1 of {case.heads}",
        note=note_on(words),
        words=tuple(words[:SHOWN]),
        counted=counted(words),
        heads=case.heads,
        width=states.shape[-1],
        head_width=case.worked.queries.shape[-1],
        stages=stages_of(case, input_stage(reading.model, states, parts, words)),
        shuffle=shuffle_words(words[:SHOWN], weigh),
    )


def note_on(words: list[str]) -> str:
    shown = f"the first {SHOWN} of {len(words)} tokens" if len(words) > SHOWN else f"all {len(words)} tokens"
    return (
        f"Numbers of this model on this text, computed by its own parts: {shown}, and up to {SHOWN} columns of each "
        "matrix. The shape beside a matrix is its whole one."
    )


def part_of(model: nn.Module, kind: type[Part]) -> Part:
    """The first of its parts of this kind, which is the one that reads the text."""
    return next(part for part in model.modules() if isinstance(part, kind))


def reading_of(learned: Learned, text: str) -> Reading | None:
    model: Any = getattr(learned, "model", None)
    if model is None or not any(isinstance(part, Stack) for part in model.modules()):
        return None
    match learned:
        case Translator():
            tokenizer = learned.tokenizers.source
            ids = [*tokenizer.encode([clean(text)])[0], tokenizer.special.end]
            return Reading(model, lambda tokens: model.encode(tokens, tokens >= 0), tokenizer, cut(model, ids))
        case TextWriter():
            ids = cut(model, learned.read(text))
            return Reading(model, lambda tokens: model.write(tokens, model.begin(1)), learned.tokenizer, ids)
        case Filler() | Classifier() | Embedder():
            tokenizer = learned.tokenizer
            plain = tokenizer.encode([clean(text)])[0]
            if isinstance(learned, Filler) and MASK in text:
                plain = learned.read(text)
            ids = cut(model, [tokenizer.special.start, *plain, tokenizer.special.end])
            return Reading(model, lambda tokens: model.reader(tokens, tokens >= 0), tokenizer, ids)
        case _:
            return None


def cut(model: nn.Module, ids: list[int]) -> list[int]:
    """As many tokens as the model has learned positions for."""
    learned = [part for part in model.modules() if isinstance(part, LearnedPositions)]
    return ids[: learned[0].table.num_embeddings] if learned else ids


def enter(reading: Reading, ids: list[int], *, told: bool = True) -> Entered:
    """Read these tokens and catch what goes into the first block; with `told` off, as if no place had a vector."""
    given: list[tuple[Any, ...]] = []
    parts: dict[str, Tensor] = {}
    handles = [reading.block.register_forward_pre_hook(lambda _, inputs: given.append(inputs))]
    for name, part in added_parts(reading.model).items():
        handles.append(part.register_forward_hook(partial(keep, parts, name)))
        if isinstance(part, Places) and not told:
            handles.append(part.register_forward_hook(lambda _, __, found: torch.zeros_like(found)))
    try:
        reading.run(torch.tensor([ids]))
    finally:
        for handle in handles:
            handle.remove()
    states, mask, bias, *_ = given[0]
    return Entered(states, mask, bias, parts)


def keep(parts: dict[str, Tensor], name: str, _module: nn.Module, _inputs: Any, found: Tensor) -> None:
    parts[name] = found


def added_parts(model: nn.Module) -> dict[str, nn.Module]:
    """What makes the input of the first block: a token's vector, its place's, its segment's; T5's is added later."""
    embedding = part_of(model, TokenEmbedding)
    parts: dict[str, nn.Module] = {"E" if embedding.scale == 1.0 else "E·√D": embedding}
    parts["P"] = next(part for part in model.modules() if isinstance(part, Places))
    if any(isinstance(part, BertReader) for part in model.modules()):
        parts["G"] = part_of(model, BertReader).segments
    return parts


def input_stage(model: nn.Module, states: Float[Tensor, "1 T D"], parts: dict[str, Tensor], words: list[str]) -> Stage:
    width, places = states.shape[-1], added_parts(model)["P"]
    scaled = f", times √{width} = {math.sqrt(width):.4f}" if "E·√D" in parts else ""
    where = "plus that of its place, made of sines and cosines"
    if isinstance(places, LearnedPositions):
        where = "plus that of its place, which was learned, too"
    if isinstance(places, RelativePositions):
        where = "and nothing for its place: that comes with the scores"
    segment = ", plus that of its segment G; and the sum is normalised" if "G" in parts else ""
    added = {name: part for name, part in parts.items() if name != "P" or not isinstance(places, RelativePositions)}
    return stage(
        "input",
        f"Each token's vector from the table of embeddings{scaled}, {where}{segment}.",
        *(matrix("+" if n else "", name, added[name].reshape(-1, width), words) for n, name in enumerate(added)),
        matrix("norm →" if "G" in parts else "=", "X", states[0], words),
    )
