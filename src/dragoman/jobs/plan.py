"""Settings from the corpus: what a person who knew the field would choose, with the reason said.

    subwords    the more text, the more of them are seen often enough to be learned
    kind        words where there are few different ones, characters where a line is one word, else unigram subwords
    size        the largest model that the budget can still train well, and that the corpus can fill
    dropout     the more often each pair is seen, the more
    rate        wide models want smaller steps

Whatever was asked for is taken as it is; only the rest is chosen.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman import native
from dragoman.decoding.beam import SearchConfig
from dragoman.errors import UsageError
from dragoman.jobs.prepare import Prepared, Survey
from dragoman.jobs.request import Request
from dragoman.models import find_family, task_and_family_of
from dragoman.modules.products import product
from dragoman.text.corpus import Pair
from dragoman.text.tokenizer import Kind, TokenizerConfig
from dragoman.training.settings import TrainingConfig

CLOSED = 1000  # different words on a side that can each have a token of their own
SPELLING = 14  # letters in a line at most, on the mean, that is one word; longer ones are sentences without spaces


# ── text ──────────────────────────────────────────────────────────────────────────────────


def plan_tokenizer(survey: Survey, asked: Mapping[str, Any], *, one_table: bool = False) -> TokenizerConfig:
    """With `one_table` the model has a single one: both sides are read as they are written."""
    kinds = [best_kind([pair[side] for pair in survey.sample]) for side in (0, 1)]
    if one_table and kinds[0] != kinds[1]:
        kinds = ["unigram", "unigram"]
    kind = asked.get("kind", kinds[0])
    target_kind = asked.get("target_kind", kind if "kind" in asked else kinds[1])
    chosen: dict[str, Any] = {
        "kind": kind,
        "target_kind": None if target_kind == kind else target_kind,
        "joint": target_kind == kind and (one_table or shared_letters(survey.sample) > 0.5),
        "vocabulary": vocabulary_for(survey.pairs),
    }
    return TokenizerConfig.read({**chosen, **asked}, section="tokenizer")


def plan_text_tokenizer(characters: int, asked: Mapping[str, Any]) -> TokenizerConfig:
    """A token for every 200 characters of the text, up to 16,000; below 1,000 of them the letters themselves, where a
    text is to be written as it is: what is hidden in it is told by words."""
    vocabulary = 100 * round(min(16_000, characters / 200) / 100)
    chosen: dict[str, Any] = {
        "kind": "unigram" if vocabulary >= 1000 or not asked.get("keep_spaces") else "characters",
        "vocabulary": max(vocabulary, 500),
    }
    return TokenizerConfig.read({**chosen, **asked}, section="tokenizer")


def plan_label_tokenizer(characters: int, asked: Mapping[str, Any]) -> TokenizerConfig:
    """4,000 subwords for up to 800,000 characters, then one for every 200 of them, up to 16,000."""
    chosen = {"kind": "unigram", "vocabulary": 100 * round(min(16_000, max(4000, characters / 200)) / 100)}
    return TokenizerConfig.read({**chosen, **asked}, section="tokenizer")


def vocabulary_for(pairs: int) -> int:
    """4,000 subwords for 30,000 pairs, 8,000 for 170,000, 16,000 for a million; to a hundred."""
    return 100 * round(min(24_000, max(1000, 4000 * (pairs / 30_000) ** 0.4)) / 100)


def best_kind(texts: Sequence[str]) -> Kind:
    words = Counter(word for text in texts for word in text.split())
    total, rare = words.total(), sum(count == 1 for count in words.values())
    if total < 1.5 * len(texts) and sum(map(len, texts)) < SPELLING * len(texts):
        return "characters"  # a line is a short word: only its letters repeat
    if len(words) <= CLOSED and rare < 0.01 * total:
        return "words"  # a closed list: nothing new will come
    return "unigram"


def shared_letters(sample: Sequence[Pair]) -> float:
    """How much of the text of each side is written in letters that the other side uses too; the smaller share."""
    sides = [
        Counter(letter for pair in sample[:20_000] for letter in pair[side] if letter.isalpha()) for side in (0, 1)
    ]
    shares = [
        sum(count for letter, count in own.items() if letter in other) / max(1, own.total())
        for own, other in (sides, reversed(sides))
    ]
    return min(shares)


# ── model ─────────────────────────────────────────────────────────────────────────────────

TRANSFORMERS = (  # width, heads, layers, hidden; each about half as much work again as the one before
    (96, 4, 3, 384),
    (128, 4, 3, 512),
    (160, 4, 3, 640),
    (192, 4, 3, 768),
    (224, 4, 3, 896),
    (256, 4, 3, 1024),
    (320, 5, 3, 1280),
    (384, 6, 4, 1536),
    (448, 7, 5, 1792),
    (512, 8, 6, 2048),
)
RECURRENT = ((96, 96), (128, 128), (192, 192), (256, 256), (384, 256), (512, 256), (768, 384), (1024, 512))
GPTS = (  # width, heads, blocks, tokens to look back on
    (96, 3, 4, 64),
    (128, 4, 4, 96),
    (192, 4, 4, 128),
    (256, 4, 5, 128),
    (320, 5, 6, 192),
    (384, 6, 6, 256),
    (512, 8, 6, 256),
    (768, 12, 12, 512),
)
READ = 128  # tokens that a BERT reads at once
SIZES: dict[str, list[dict[str, Any]]] = {
    "transformer": [
        {"width": width, "heads": heads, "layers": layers, "hidden": hidden, "norm_first": True}
        for width, heads, layers, hidden in TRANSFORMERS
    ],
    "rnn": [{"width": width, "embedding": embedding} for width, embedding in RECURRENT],
    "gpt": [
        {"width": width, "heads": heads, "layers": layers, "hidden": 4 * width, "longest": longest}
        for width, heads, layers, longest in GPTS
    ],
    "bert": [
        {"width": width, "heads": heads, "layers": layers + 1, "hidden": hidden, "longest": READ, "norm_first": True}
        for width, heads, layers, hidden in TRANSFORMERS
    ],
    "marian": [
        {"width": width, "heads": heads, "layers": layers, "hidden": hidden}
        for width, heads, layers, hidden in TRANSFORMERS
    ],
    "t5": [
        {
            "width": width,
            "heads": heads,
            "head_width": width // heads,
            "layers": layers,
            "hidden": hidden,
            "scaled": True,
        }
        for width, heads, layers, hidden in TRANSFORMERS
    ],
}


class ForClasses(NamedTuple):
    """What a family is given where texts are to be classified: few labels are soon known by heart."""

    sizes: list[dict[str, Any]]
    dropout: float
    steps: int  # that a few thousand texts are good for
    rate: float  # a share of the usual one


CLASSIFIERS = {
    "bag": ForClasses([{"width": 128, "heads": 8}], dropout=0.3, steps=1000, rate=0.5),
    "rnn": ForClasses(
        [{"width": width, "embedding": embedding} for width, embedding in ((128, 128), (256, 128), (512, 256))],
        dropout=0.5,
        steps=1000,
        rate=0.5,
    ),
    "bert": ForClasses(
        [
            {"width": 128, "heads": 4, "layers": 2, "hidden": 256},
            {"width": 192, "heads": 4, "layers": 3, "hidden": 384},
            {"width": 256, "heads": 4, "layers": 4, "hidden": 1024},
            {"width": 512, "heads": 8, "layers": 6, "hidden": 2048},
        ],
        dropout=0.3,
        steps=500,
        rate=0.2,
    ),
}
CLASSIFYING = {"label_smoothing": 0.0, "tokens_per_step": 1024}  # of training, otherwise than for texts to be written
CLASSIFYING_EPOCHS = (4.0, 40.0)  # at least, however many texts there are; at most, however few
IMAGE_RATE = {"mlp": 0.5, "cnn": 0.3, "vit": 0.65}  # a share of the usual one, for families that read images
TOKENS_PER_PARAMETER = 0.6  # to be seen for each parameter that works, or a smaller model learns more in the time
PARAMETERS_PER_TOKEN = 12.0  # of the corpus; a larger model would learn it by heart
# of what plain matrix products reach, torch's or our own: the rest goes into Muon, norms, softmax, dropout, memory.
# Widths 128 to 256 reach 0.49 to 0.63 by our own, validations and saves not counted
EFFICIENCY, EFFICIENCY_OF_OWN = 0.38, 0.5


def work_per_token(config: Any) -> float:
    """Multiplications and additions for a target token and one of the source, forward and back: 6 a parameter used."""
    return 6.0 * config.products_per_token()


USUAL_MACHINE = 5e10  # multiplications and additions a second: two cores of a laptop, where nothing may hang on it


def measure_machine(moments: int = 5, seconds: float = 0.1) -> float:
    """Multiplications and additions a second that training a small model will reach, on the threads torch has now.

    The best of a few moments counts: what else the machine has to do is there for a while, not for the whole run.
    """
    efficiency = EFFICIENCY_OF_OWN if native.has_own_products() else EFFICIENCY
    return efficiency * products_per_second(moments, seconds)


def products_per_second(moments: int, seconds: float) -> float:
    """Multiplications and additions a second in plain products, as training computes them."""
    states, weights, room = torch.randn(2048, 256), torch.randn(256, 1024), torch.empty(2048, 1024)
    product(states, weights, out=room)  # the first one warms up

    def rounds_per_second() -> float:
        rounds, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            product(states, weights, out=room)
            rounds += 1
        return rounds / (time.perf_counter() - start)

    return 2 * 2048 * 256 * 1024 * max(rounds_per_second() for _ in range(moments))


def minutes_for(pairs: int) -> float:
    """How long to train where nobody said: 12 minutes for 10,000 pairs, 37 for 100,000, 115 for a million."""
    return 20 * (pairs / 30_000) ** 0.5


class Budget(NamedTuple):
    """What there is to train with."""

    tokens: int  # in the corpus
    work: float  # multiplications and additions that the time allows
    given: float | None = None  # tokens to see, where steps or epochs were asked for: they count and not the time
    most_epochs: float = math.inf  # that are trained, however long the time is

    def seen(self, config: Any) -> float:
        """Tokens that this model will see."""
        if self.given:
            return self.given
        return min(self.work / work_per_token(config), self.most_epochs * self.tokens)


def is_counted(request: Request) -> bool:
    """Whether steps or epochs were asked for. The plan must then be the same on every machine, at any moment."""
    return bool(request.epochs) or "steps" in request.asked("training")


def tokens_asked(request: Request, tokens: int, usual: Mapping[str, Any] | None = None) -> float | None:
    """What the steps or epochs that were asked for show of a corpus of so many tokens; None where the time decides."""
    asked = request.asked("training")
    if "steps" not in asked:
        return request.epochs and request.epochs * tokens
    training = TrainingConfig.read({**(usual or {}), **asked}, section="training")
    return float(training.steps * min(training.tokens_per_step, tokens))


def plan_model(task: str, fixed: Mapping[str, Any], request: Request, budget: Budget) -> Any:
    """The settings of a model that the budget can train. `fixed` follows from the data."""
    family, asked = find_family(task, request.family), request.asked("model")
    refuse_fixed(fixed, asked)
    sizes = CLASSIFIERS[request.family].sizes if task == "classify" else SIZES[request.family]
    shaping: dict[str, Any] = {
        **fixed,
        **{name: asked[name] for name in ("cell", "attention", "layers") if name in asked},
    }
    if request.preset:
        preset = family.presets[request.preset]
        config = family.config.read({**fixed, **preset}, section="model")
        chosen: dict[str, Any] = {"dropout": dropout_for(config, budget), **preset}
    else:
        candidates = [family.config.read({**size, **shaping}, section="model") for size in sizes]
        config = next((c for c in reversed(candidates) if is_worth_it(c, budget)), candidates[0])
        chosen = {**config.model_dump(), "dropout": dropout_for(config, budget)}
    return family.config.read({**chosen, **fixed, **asked}, section="model")


def refuse_fixed(fixed: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    sizes = {name for name in fixed if name.endswith("vocabulary")} & asked.keys()
    if sizes:
        raise UsageError("E-SET-01", f"model.{min(sizes)} follows from the tokenizer; set tokenizer.vocabulary instead")
    if "classes" in asked:
        raise UsageError("E-SET-01", "model.classes are the labels of the texts; leave it out")


def is_worth_it(config: Any, budget: Budget) -> bool:
    """Enough tokens can be seen for each parameter that learns, and the corpus can fill it."""
    used = config.products_per_token()
    return budget.seen(config) >= TOKENS_PER_PARAMETER * used and used <= PARAMETERS_PER_TOKEN * budget.tokens


def epochs_for_classes(family: str, tokens: int) -> float:
    """So many that the steps are done; more of them only learn a small corpus by heart."""
    fewest, most = CLASSIFYING_EPOCHS
    return min(most, max(fewest, CLASSIFIERS[family].steps * CLASSIFYING["tokens_per_step"] / tokens))


def pairs_for(tokens: int) -> int:
    """Vectors that the pairs of tokens in a bag share: one for ten tokens of the corpus, to a thousand. With fewer,
    pairs that mean different things share one; with more, each is met too seldom to be learned."""
    return 1000 * round(min(32_000, max(4000, tokens / 10)) / 1000)


def dropout_for(config: Any, budget: Budget) -> float:
    """None for up to four epochs, 0.07 for eight, 0.14 for sixteen, up to 0.3: what is seen seldom is not learned by
    heart."""
    epochs = budget.seen(config) / budget.tokens
    return round(min(0.3, max(0.0, 0.07 * math.log2(max(1.0, epochs / 4)))), 2)


def refuse_short_positions(config: Any, prepared: Prepared) -> None:
    if getattr(config, "positions", "") != "learned":
        return
    needed = 1 + max(int(index.lengths().max()) for index in (prepared.train, prepared.valid))
    if config.longest < needed:
        raise UsageError(
            "E-SET-01", f"model.longest = {config.longest} positions and the longest sentence needs {needed}; raise it"
        )


# ── training ──────────────────────────────────────────────────────────────────────────────


RATES = {"sgd": 0.5, "momentum": 0.1, "adagrad": 0.02, "rmsprop": 5e-4, "adam": 1.5e-3, "adamw": 1.5e-3, "muon": 6e-3}


def plan_training(
    config: Any, asked: Mapping[str, Any], steps: int, validations: int, *, fine_tuning: bool
) -> TrainingConfig:
    """Steps are known by now, from --steps or from the timing."""
    default = str(TrainingConfig.model_fields["optimizer"].default)
    chosen = {
        "steps": steps,
        "rate": rate_for(str(asked.get("optimizer", default)), config.width, fine_tuning, rate_share(config)),
        "warmup": max(20, steps // 20),
        "validate_every": max(1, math.ceil(steps / validations)),
        "save_every": max(1, math.ceil(steps / validations)),
        "report_every": max(1, min(50, steps // 50)),
    }
    return TrainingConfig.read({**chosen, **asked}, section="training")


def rate_for(optimizer: str, width: int, fine_tuning: bool, share: float = 1.0) -> float:
    """The rate at width 192, falling with the root of the width; a quarter of it where weights are learned already."""
    share = min(0.25, share) if fine_tuning else share
    return float(f"{RATES.get(optimizer, 1e-3) * math.sqrt(192 / width) * share:.2g}")


def rate_share(config: Any) -> float:
    task, family = task_and_family_of(config)
    return IMAGE_RATE.get(family) or (CLASSIFIERS[family].rate if task == "classify" else 1.0)


def plan_search(prepared: Prepared, config: Any, asked: Mapping[str, Any]) -> SearchConfig:
    """Outputs may be as long as the longest in training were for their source, and somewhat longer."""
    lengths = prepared.train.lengths()[:200_000].astype(float) + 1
    ratio = float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.99))
    extra = float(np.quantile(lengths[:, 1] - ratio * lengths[:, 0], 0.999))
    chosen = {"longest_ratio": round(1.2 * ratio, 2), "longest_extra": max(10, math.ceil(extra) + 5)}
    if getattr(config, "positions", "") == "learned":
        chosen["longest_output"] = config.longest - 1  # <start> takes the first place
    return SearchConfig.read({**chosen, **asked}, section="search")
