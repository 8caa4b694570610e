"""A language model at work: a text, how it goes on, and at each place what else could have come."""

import time

import torch

from dragoman.decoding.generate import TextWriter
from dragoman.decoding.watch import watch_text
from dragoman.errors import DataError, UsageError
from dragoman.seeing.attention import mean_over_heads, show_map
from dragoman.seeing.looked import Look, Side, Tokens, Written
from dragoman.seeing.steps import show_steps
from dragoman.seeing.tokens import show_tokens

MORE = 16  # tokens that are written after the text


def look_at_writing(writer: TextWriter, text: str, force: list[int]) -> Look:
    """The tokens of `text`, or those that are forced, and the likeliest ones after them."""
    first, *prompt = [writer.tokenizer.special.end, *force] if force else begin(writer, text)
    longest = getattr(writer.model.config, "longest", None) or len(prompt) + 1 + MORE
    refuse_unfit(writer, prompt, longest)
    began = time.perf_counter()
    more = go_on(writer, [first, *prompt], min(MORE, longest - len(prompt)))
    seconds = time.perf_counter() - began
    whole = [*prompt, *more]
    watched = watch_text(writer.model, writer.tokenizer, [first, *whole[:-1]])
    sides: dict[Side, Tokens] = {
        "given": show_tokens(writer.tokenizer, whole[:-1], before=first),
        "written": show_tokens(writer.tokenizer, whole),
    }
    log_prob = float(sum(watched.log_probs[len(prompt) + i, token] for i, token in enumerate(more)))
    continuation = writer.tokenizer.decode(whole)[len(writer.tokenizer.decode(prompt)) :]
    return Look(
        kind="write",
        text=text,
        **sides,
        forced=len(prompt),
        translation=Written(
            text=continuation, score=round(log_prob, 4), log_prob=round(log_prob, 4), seconds=round(seconds, 3),
            nbest=[], words=None,
        ),
        attention=[show_map(found, "given", "given", sides) for found in watched.maps],
        steps=show_steps(watched, whole, writer.tokenizer, mean_over_heads(watched.maps)),
    )  # fmt: skip


def begin(writer: TextWriter, text: str) -> list[int]:
    """As the writer reads a prompt; a model whose text begins with nothing gets its end token first."""
    ids = writer.read(text)
    end = writer.tokenizer.special.end
    return ids if ids[0] == end else [end, *ids]


def refuse_unfit(writer: TextWriter, prompt: list[int], longest: int) -> None:
    if len(prompt) >= longest:
        raise DataError(
            "E-LONG-01",
            f"the text has {len(prompt):,} tokens and this model looks back on {longest:,} at most; "
            "look at a shorter one",
        )
    wrong = [token for token in prompt if not 0 <= token < len(writer.tokenizer)]
    if wrong:
        raise UsageError("E-LOOK-04", f"the token {wrong[0]} cannot be forced: this model never writes it")


@torch.inference_mode()
def go_on(writer: TextWriter, ids: list[int], count: int) -> list[int]:
    """The likeliest token each time."""
    never, state, newest, written = writer.tokenizer.special.never_written(), writer.model.begin(1), ids, list[int]()
    for _ in range(count):
        logits, state = writer.model.decode(torch.tensor([newest]), state)
        scores = logits[0, -1].clone()
        scores[never] = -torch.inf
        newest = [int(scores.argmax())]
        written += newest
    return written
