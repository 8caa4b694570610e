"""A language model at work: a text, how it goes on, and at each place what else could have come."""

import time

import torch

from dragoman.decoding.generate import TextWriter
from dragoman.decoding.watch import watch_text
from dragoman.errors import DataError, UsageError
from dragoman.seeing.attention import mean_over_heads, show_maps
from dragoman.seeing.looked import Look, Side, Tokens, Written
from dragoman.seeing.steps import show_steps
from dragoman.seeing.tokens import show_tokens
from dragoman.text.stream import encode_text

MORE = 16  # tokens that are written after the text


def look_at_writing(writer: TextWriter, text: str, force: list[int]) -> Look:
    """The tokens of `text` as the writer reads them, those that are forced, and the likeliest ones after them."""
    first, *prompt = writer.read(text)
    own = encode_text(text, writer.tokenizer)  # without what the writer puts before it
    opening = len(own) - len(prompt)
    ids = [first, *prompt, *force]
    longest = writer.longest or len(ids) + MORE
    refuse_unfit(writer, ids, force, longest)
    began = time.perf_counter()
    more = list(force)
    if not (force and writer.ends_with(force[-1])):
        more += go_on(writer, ids, min(MORE, longest - len(ids) + 1))  # the last one is not read again
    seconds = time.perf_counter() - began
    whole = [*prompt, *more]
    watched = watch_text(writer.model, writer.tokenizer, [first, *whole[:-1]])
    sides: dict[Side, Tokens] = {
        "given": show_tokens(writer.tokenizer, [*own, *more][:-1], before=None if opening else first),
        "written": show_tokens(writer.tokenizer, whole),
    }
    log_prob = float(sum(watched.log_probs[len(prompt) + i, token] for i, token in enumerate(more)))
    continuation = writer.tokenizer.decode([*own, *more])[len(writer.tokenizer.decode(own)) :]
    return Look(
        kind="write",
        text=text,
        **sides,
        opening=opening,
        prompt=len(prompt),
        forced=len(force),
        translation=Written(
            text=continuation, score=round(log_prob, 4), log_prob=round(log_prob, 4), seconds=round(seconds, 3),
            nbest=[], words=None, note="A language model looks at its own text.",
        ),
        attention=show_maps(watched.maps, "given", "given", sides),
        steps=show_steps(watched, whole, writer.tokenizer, mean_over_heads(watched.maps), back_only=True),
    )  # fmt: skip


def refuse_unfit(writer: TextWriter, ids: list[int], force: list[int], longest: int) -> None:
    if len(ids) > longest:
        raise DataError(
            "E-LONG-01",
            f"the text has {len(ids):,} tokens and this model looks back on {longest:,} at most; look at a shorter one",
        )
    wrong = [token for token in force if not 0 <= token < len(writer.tokenizer)]
    if wrong:
        raise UsageError(
            "E-LOOK-04", f"there is no token {wrong[0]} to force; this model has {len(writer.tokenizer):,}"
        )
    ends = [token for token in force[:-1] if writer.ends_with(token)]
    if ends:
        [end] = writer.tokenizer.pieces(ends[:1])
        raise UsageError("E-LOOK-04", f"{end} ends a text, and {len(force)} tokens were forced; force it last")


@torch.inference_mode()
def go_on(writer: TextWriter, ids: list[int], count: int) -> list[int]:
    """The likeliest token each time, up to the one that ends a text, if there is such a token."""
    never, state, newest, written = writer.tokenizer.special.never_written(), writer.model.begin(1), ids, list[int]()
    while len(written) < count and not (written and writer.ends_with(written[-1])):
        logits, state = writer.model.decode(torch.tensor([newest]), state)
        scores = logits[0, -1].clone()
        scores[never] = -torch.inf
        newest = [int(scores.argmax())]
        written += newest
    return written
