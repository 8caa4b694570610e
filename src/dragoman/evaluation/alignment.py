"""How well attention aligns words: the alignment error rate against links that people drew.

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)      A found, S sure, P possible or sure (Och & Ney 2003)

0 is perfect. Links are written in Pharaoh's way, source-target counted from 0: `0-0 1-2`; a possible one is `1p2`.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from dragoman.errors import UsageError

Link = tuple[int, int]  # (source word, target word)
WRITTEN = re.compile(r"(\d+)([-p])(\d+)")


class Gold(NamedTuple):
    sure: list[Link]
    possible: list[Link]  # without the sure ones


def read_pharaoh(text: str, source_words: int, target_words: int) -> Gold:
    """Links between words that there are; anything else is refused."""
    links: dict[str, list[Link]] = {"-": [], "p": []}
    for word in text.split():
        match = WRITTEN.fullmatch(word)
        if match is None:
            raise UsageError(
                "E-ALN-01", f"{word!r} is no link between words; write them as 0-0 1-2, a possible one 1p2"
            )
        source, target = int(match[1]), int(match[3])
        if source >= source_words or target >= target_words:
            raise UsageError(
                "E-ALN-01",
                f"the link {word} leads out of the sentence, which has {source_words} source and {target_words} target "
                "words; they count from 0",
            )
        links[match[2]].append((source, target))
    if not links["-"]:
        raise UsageError("E-ALN-01", f"{text!r} holds no sure link between words; write at least one, such as 0-0")
    return Gold(links["-"], [link for link in links["p"] if link not in links["-"]])


def alignment_error(found: Collection[Link], gold: Gold) -> float:
    a, s, p = set(found), set(gold.sure), {*gold.sure, *gold.possible}
    return 1 - (len(a & s) + len(a & p)) / (len(a) + len(s))
