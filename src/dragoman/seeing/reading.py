"""A reader at work: every token sees every other, and masked places are filled in."""

from dragoman.decoding.classify import Classifier
from dragoman.decoding.embed import Embedder
from dragoman.decoding.fill import MASK, Filler
from dragoman.decoding.watch import watch_reading
from dragoman.errors import DataError
from dragoman.seeing.attention import show_maps
from dragoman.seeing.looked import Look, Mask, MaskCandidate, Side, Tokens
from dragoman.seeing.tokens import show_tokens
from dragoman.text.reading import clean

TOP = 8  # candidates for each masked place


def look_at_reading(reader: Filler | Embedder | Classifier, text: str) -> Look:
    tokenizer = reader.tokenizer
    asked = isinstance(reader, Filler) and MASK in text
    ids = reader.read(text) if isinstance(reader, Filler) and asked else tokenizer.encode([clean(text)])[0]
    longest = reader.model.config.longest
    if len(ids) + 2 > longest:
        raise DataError(
            "E-LONG-01", f"the text has {len(ids):,} tokens and this model reads {longest - 2:,} at most; shorten it"
        )
    special = tokenizer.special
    sides: dict[Side, Tokens] = {"source": show_tokens(tokenizer, ids, before=special.start, after=special.end)}
    maps = watch_reading(reader.model, tokenizer, ids)
    return Look(
        kind="fill" if asked else "read",
        text=text,
        source=sides["source"],
        attention=show_maps(maps, "source", "source", sides),
        masks=show_masks(reader, text, ids) if isinstance(reader, Filler) and asked else [],
    )


def show_masks(filler: Filler, text: str, ids: list[int]) -> list[Mask]:
    places = [1 + place for place, token in enumerate(ids) if token == filler.tokenizer.special.mask]  # after [CLS]
    return [
        Mask(
            place=place,
            candidates=[
                MaskCandidate(token=one.token, probability=round(one.probability, 4), text=one.text) for one in found
            ],
        )
        for place, found in zip(places, filler.fill(text, top=TOP), strict=True)
    ]
