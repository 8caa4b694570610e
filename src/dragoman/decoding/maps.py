"""What each attention head looked at, with the tokens that its weights connect."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.errors import UsageError
from dragoman.modules.attention import watching
from dragoman.text.batches import Batch, make_batch
from dragoman.text.tokenizer import Tokenizers


class AttentionMap(NamedTuple):
    layer: str  # the name of the module, "decoder.blocks.3.source_attention"
    weights: Float[Tensor, "H Q K"]
    queries: list[str]  # the token of each row
    keys: list[str]  # the token of each column


@torch.inference_mode()
def attention_maps(
    model: nn.Module, tokenizers: Tokenizers, source: list[int], target: list[int]
) -> list[AttentionMap]:
    """Every layer and head, as the model reads `source` and writes `target`; a cross row is the token it predicts."""
    batch = make_batch([(source, target)], tokenizers.special)
    with watching(model) as seen:
        model(batch.source, batch.source_mask, batch.target_in)
    read = tokenizers.source.pieces(batch.source[0].tolist())
    given = tokenizers.target.pieces(batch.target_in[0].tolist())
    written = tokenizers.target.pieces(batch.target_out[0].tolist())
    maps = []
    for layer, weights in seen.items():
        queries, keys = (read, read) if layer.startswith("encoder") else (given, given)
        if layer.endswith("source_attention"):
            queries, keys = written, read
        maps.append(AttentionMap(layer, torch.cat(weights, dim=2)[0], queries, keys))  # one a step, or all at once
    return maps


@torch.inference_mode()
def source_weights(model: nn.Module, batch: Batch) -> Float[Tensor, "B T S"]:
    """How much each written token looked at each source token: the mean over all heads of all decoder blocks."""
    with watching(model) as seen:
        model(batch.source, batch.source_mask, batch.target_in)
    looked = [torch.cat(found, dim=2) for layer, found in seen.items() if layer.endswith("source_attention")]
    if not looked:
        raise UsageError("E-USE-11", "this model has no attention to align words by; leave out --alignments")
    return torch.cat(looked, dim=1).mean(dim=1)


def align_words(
    weights: Float[Tensor, "T S"], source_words: list[int], target_words: list[int]
) -> list[tuple[int, int]]:
    """(source word, target word) for each target word: the source word that its tokens looked at most.

    A row for each target token and a column for each source token; <end> is left out on both sides.
    """
    if not source_words or not target_words:
        return []
    by_source = torch.zeros(len(target_words), source_words[-1] + 1)
    by_source.index_add_(1, torch.tensor(source_words), weights[: len(target_words), : len(source_words)].float())
    by_word = torch.zeros(target_words[-1] + 1, source_words[-1] + 1)
    by_word.index_add_(0, torch.tensor(target_words), by_source)
    return [(int(best), word) for word, best in enumerate(by_word.argmax(dim=1))]
