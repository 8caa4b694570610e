"""Sampling: draw the next token by its probability, instead of taking the likeliest."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.beam import Hypothesis
from dragoman.decoding.settings import SampleConfig
from dragoman.models.state import State, Writer, select_rows
from dragoman.modules.activations import softmax
from dragoman.text.special import SpecialIds


@torch.inference_mode()
def sample(
    writer: Writer,
    state: State,
    longest: Sequence[int],
    special: SpecialIds,
    config: SampleConfig,
    numbers: Sequence[int],  # each sentence's own number: its luck does not depend on its neighbours
    prefixes: Sequence[Sequence[int]],  # tokens that each output must begin with
) -> list[Hypothesis]:
    luck = [torch.Generator().manual_seed((config.seed * 1_000_003 + number) % (1 << 63)) for number in numbers]
    places = list(range(len(longest)))
    tokens: list[list[int]] = [[] for _ in places]
    log_probs = [0.0 for _ in places]
    newest = torch.full((len(places), 1), special.start)
    while places:
        logits, state = writer.decode(newest, state)
        log_p = allowed(logits[:, -1], special)  # (N V)
        likely = keep_likely(log_p / config.temperature, config)
        noise = torch.stack([torch.rand(likely.shape[1], generator=luck[place]) for place in places])
        drawn = (likely - (-noise.log()).log()).argmax(dim=-1)  # Gumbel: the argmax is a draw from the softmax
        going = []
        for row, place in enumerate(places):
            token, written = int(drawn[row]), len(tokens[place])
            if written < len(prefixes[place]):
                token = prefixes[place][written]
            elif written == longest[place]:
                token = special.end  # no room for another
            log_probs[place] += float(log_p[row, token])
            if token != special.end:
                tokens[place].append(token)
            if token not in special.ends:
                going.append(row)
        places = [places[row] for row in going]
        newest = torch.tensor([[tokens[place][-1]] for place in places])
        state = select_rows(state, torch.tensor(going, dtype=torch.long))
    return [Hypothesis(text, log_prob, log_prob) for text, log_prob in zip(tokens, log_probs, strict=True)]


def allowed(logits: Float[Tensor, "N V"], special: SpecialIds) -> Float[Tensor, "N V"]:
    """Log-probabilities, those of tokens that are never written at −∞."""
    log_probs = logits.log_softmax(dim=-1)
    log_probs[:, special.never_written()] = -torch.inf
    return log_probs


def keep_likely(log_p: Float[Tensor, "N V"], config: SampleConfig) -> Float[Tensor, "N V"]:
    """−∞ for every token outside the `top_k`, or past the share `top_p`."""
    if config.top_k:
        least = log_p.topk(min(config.top_k, log_p.shape[-1])).values[:, -1:]
        log_p = log_p.masked_fill(log_p < least, -torch.inf)
    if config.top_p < 1:
        ordered, places = softmax(log_p).sort(descending=True)
        before = ordered.cumsum(dim=-1) - ordered  # probability of all that are likelier
        log_p = log_p.masked_fill((before >= config.top_p).gather(1, places.argsort(dim=-1)), -torch.inf)
    return log_p
