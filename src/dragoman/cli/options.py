"""Options that several commands have: each with its kind and its sentence, written once.

A command's own options are the fields of a frozen dataclass in its file, each with its sentence below it; `--help` is
made of them. `Parameter(name="*")` there means that a field is an option by its own name.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from cyclopts import Parameter


def whole(_kind: Any, tokens: Sequence[Any]) -> int:
    """Cyclopts would round 2.7 to 3 and say nothing."""
    given = tokens[0].value
    try:
        return int(given)
    except ValueError:
        raise ValueError(f"{given!r} is no whole number.") from None


Whole = Annotated[int, Parameter(converter=whole)]
Model = Annotated[str, Parameter(help="A run's folder, a model's, or one of Hugging Face.")]
Flag = Annotated[bool, Parameter(negative="")]
Repeated = Annotated[list[str] | None, Parameter(negative="")]  # once for each value
Files = Annotated[list[str], Parameter(consume_multiple=1, negative="")]  # SOURCE TARGET, or one corpus

Threads = Annotated[Whole | None, Parameter(help="Processor threads to use; else one for each core.")]
TrainingThreads = Annotated[Threads, Parameter(env_var="DRAGOMAN_THREADS")]
Minutes = Annotated[float | None, Parameter(env_var="DRAGOMAN_MINUTES")]
Epochs = Annotated[float | None, Parameter(env_var="DRAGOMAN_EPOCHS")]
Seed = Annotated[
    Whole,
    Parameter(env_var="DRAGOMAN_SEED", help="Decides the first weights, the order of the batches and the dropout."),
]
SourceLanguage = Annotated[
    str,
    Parameter(
        name=["--source-language", "--src"],
        help="The source's language, such as de, where the file names do not tell; needed for some .tmx and .jsonl.",
    ),
]
TargetLanguage = Annotated[str, Parameter(name=["--target-language", "--tgt"], help="The target's language.")]
Encoding = Annotated[str, Parameter(help="Of the text files.")]
Precision = Annotated[
    Literal["float32", "int8"],
    Parameter(
        help="float32, or int8: faster, and a quarter of the memory; what it costs was measured when the model was "
        "saved."
    ),
]


def given_budgets(options: Any, names: Sequence[str]) -> dict[str, Any]:
    """Of options of which each says how long to train. What only the environment says gives way to what is said as an
    option; that it is another would else be a mistake."""
    given = {name: getattr(options, name) for name in names}
    by_option = {name for name, value in given.items() if value is not None and not is_environments(name, value)}
    return {name: value if name in by_option or not by_option else None for name, value in given.items()}


def is_environments(name: str, value: float | int) -> bool:
    said = os.environ.get(f"DRAGOMAN_{name.upper()}", "")
    with suppress(ValueError):
        return float(said) == value
    return False
