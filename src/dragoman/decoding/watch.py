"""A model at work, watched: every head's attention, every token's chances and a recurrent decoder's gates, in one pass.

Watching takes the written-out path of each part, which the contract tests hold equal to the fast one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.maps import AttentionMap, map_of
from dragoman.modules.attention import watching
from dragoman.modules.recurrent import RecurrentStack, Turn, watching_gates
from dragoman.text.batches import make_batch, make_reading
from dragoman.text.tokenizer import Tokenizer, Tokenizers


class Watched(NamedTuple):
    maps: list[AttentionMap]
    log_probs: Float[Tensor, "T V"]  # of every token at every place
    turns: list[list[Turn]]  # for each recurrent layer of a decoder, its steps; else empty


@torch.inference_mode()
def watch_translation(model: Any, tokenizers: Tokenizers, source: list[int], target: list[int]) -> Watched:
    """As the model reads `source` and writes `target`; a row of cross attention is the token that it writes then."""
    whole = tokenizers.special.ended(target)
    batch = make_batch([(source, whole[:-1])], tokenizers.special)
    with watching(model) as seen, watching_turns(model) as turns:
        logits = model(batch.source, batch.source_mask, batch.target_in)
    read = tokenizers.source.pieces(batch.source[0].tolist())
    given = tokenizers.target.pieces(batch.target_in[0].tolist())
    written = tokenizers.target.pieces(whole)
    maps = []
    for layer, looks in seen.items():
        cross = layer.endswith("source_attention")
        queries, keys = (written, read) if cross else (read, read) if layer.startswith("encoder") else (given, given)
        maps.append(map_of(layer, looks, queries, keys))
    return Watched(maps, logits[0].log_softmax(dim=-1), turns)


@torch.inference_mode()
def watch_text(model: Any, tokenizer: Tokenizer, ids: list[int]) -> Watched:
    """As a language model reads these tokens, the one that begins a text included."""
    with watching(model) as seen, watching_turns(model) as turns:
        logits = model(torch.tensor([ids]))
    pieces = tokenizer.pieces(ids)
    maps = [map_of(layer, looks, pieces, pieces) for layer, looks in seen.items()]
    return Watched(maps, logits[0].log_softmax(dim=-1), turns)


@torch.inference_mode()
def watch_reading(model: Any, tokenizer: Tokenizer, ids: list[int]) -> list[AttentionMap]:
    """As a model reads a text in both directions, whatever is then made of it."""
    reading = make_reading([ids], tokenizer.special)
    with watching(model) as seen:
        model.reader(reading.tokens, reading.real)
    pieces = tokenizer.pieces(reading.tokens[0].tolist())
    return [map_of(layer, looks, pieces, pieces) for layer, looks in seen.items() if looks]


@contextmanager
def watching_turns(model: Any) -> Iterator[list[list[Turn]]]:
    """The steps of the recurrent layers that write; none where a model has no such."""
    stack = next((part for part in model.children() if isinstance(part, RecurrentStack)), None)
    if stack is None:
        yield []
    else:
        with watching_gates(stack) as turns:
            yield turns
