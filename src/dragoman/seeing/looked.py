"""What there is to see of a model at work on one text or image, as the page and Python read it.

`web/src/data.ts` is the same list on the other side: a field that changes here changes there. Every number on the page
stands here, to the digits that are printed; the page draws and computes nothing.
"""

from typing import Literal

from dragoman.config import Settings
from dragoman.decoding.maps import Kind
from dragoman.decoding.tree import Fate
from dragoman.seeing.packed import Packed

Link = tuple[int, int]  # (source word, target word)
Side = Literal["source", "given", "written"]


class Tokens(Settings):
    pieces: list[str]  # as people read them
    words: list[int]  # which word each piece belongs to; <start> and <end> are words of their own
    names: list[str]  # of each word


class Candidate(Settings):
    id: int
    token: str
    probability: float


class Gate(Settings):
    layer: int  # from 1
    name: str  # forget, input, output; reset, update
    mean: float
    closed: float  # share of units below 0.1
    open: float  # share of units above 0.9


class Step(Settings):
    id: int  # of the token that was written
    token: str
    log_prob: float
    top: list[Candidate]  # likeliest first
    looked: list[float] | None  # over the pieces that it could see; sums to 1
    gates: list[Gate]
    norm: float | None  # length of the last hidden state of a recurrent decoder


class AttentionLayer(Settings):
    name: str
    kind: Kind
    number: int  # which block, from 1
    queries: Side
    keys: Side
    weights: Packed  # heads × queries × keys
    scores: Packed | None  # before mask and softmax; None where there are too many heads of too many patches
    visible: list[int] | None  # how many keys each query may see, the first ones; None: all
    unmasked: Packed | None  # the weights without the mask; None where it hides nothing
    by_word: Packed | None  # heads × words × words; None where every piece is a word
    entropy: list[float]  # bits, of each head
    most_entropy: float  # bits, if every row looked everywhere it may alike
    aer: list[float] | None = None  # of each head, where gold alignments are given
    mean: Packed | None = None  # of an image: the mean over the heads, all patches × all patches


class GoldLinks(Settings):
    text: str
    sure: list[Link]
    possible: list[Link]
    best: "BestHead"
    of: Literal["output", "reference"]  # whose words the links lead to


class BestHead(Settings):
    layer: int  # its place in `attention`
    head: int  # from 0
    aer: float


class Ranked(Settings):
    text: str
    score: float
    log_prob: float


class WordWeights(Settings):
    """How much each written word looked at each source word: the mean over all heads of all blocks."""

    source: list[str]
    target: list[str]
    weights: Packed  # target × source
    links: list[list[int]]  # for each target word, the source words to light
    coverage: Packed  # for each source word, the sum over all target words
    least: int  # the source word with the least coverage
    dropped: bool  # whether that is so little that the word may have been left out


class Written(Ranked):
    seconds: float
    nbest: list[Ranked]
    words: WordWeights | None
    note: str = ""  # why there are no `words`


class Reference(Ranked):
    verdict: Literal["search error", "model error", "same", "unwritable"]
    sentence: str
    bleu: float
    chrf: float


class BeamNode(Settings):
    id: int
    parent: int | None
    step: int
    token: str
    log_prob: float
    score: float
    state: Fate
    reason: str
    rank: int | None
    best: bool  # lies on the way to the output


class Beam(Settings):
    width: int
    nodes: list[BeamNode]


class MaskCandidate(Settings):
    token: str
    probability: float
    text: str


class Mask(Settings):
    place: int  # index of its piece
    candidates: list[MaskCandidate]


class Told(Settings):
    """One thing that is said of an image."""

    name: str  # of a label or a number
    value: str  # as it is printed
    share: float | None  # of 1: a probability, or a part of the image; None for a number


class Area(Settings):
    """What a segmenter makes of the image: a label for each pixel, and the commonest of each patch."""

    data: str  # a PNG as data URL, a colour for each label
    labels: list["Painted"]
    patches: list[str]  # the commonest label of each patch, row by row
    shares: Packed  # rows × columns: how much of the patch has it


class Painted(Settings):
    name: str
    colour: str  # "#rrggbb", in the picture


class Picture(Settings):
    """The image that a model was shown, as it read it: its patches are the words, after the class token."""

    name: str
    data: str  # a PNG as data URL
    size: tuple[int, int]  # height and width, in pixels
    grid: tuple[int, int]  # patches down and across
    told: list[Told]
    asks: Literal["class", "patches"]  # whose states the answer is read from
    rollout: Packed | None  # rows × columns; None where nothing is read from the class token
    area: Area | None  # of a segmenter
    left_out: str  # which weights are not here, and why; "" where all are


class Look(Settings):
    kind: Literal["translate", "write", "fill", "read", "see"]
    text: str  # of an image: its name
    source: Tokens | None = None  # what the encoder reads
    given: Tokens | None = None  # what the decoder reads
    written: Tokens | None = None  # what it writes, as long as `given`
    opening: int = 0  # of a writer: 1 where nothing stands before the text, so that its first token is never written
    prompt: int = 0  # of a writer: how many of `written` are the text itself
    forced: int = 0  # how many of `written`, after the prompt, a person forced
    translation: Written | None = None
    reference: Reference | None = None
    attention: list[AttentionLayer]
    gold: GoldLinks | None = None
    steps: tuple[Step, ...] = ()
    beams: tuple[Beam, ...] = ()
    masks: tuple[Mask, ...] = ()
    image: Picture | None = None
