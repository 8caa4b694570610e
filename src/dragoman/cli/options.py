"""Options that several commands have: each with its kind and its sentence, written once.

A command's own options are the fields of a frozen dataclass in its file, each with its sentence below it; `--help` is
made of them. `Parameter(name="*")` there means that a field is an option by its own name.
"""

from typing import Annotated, Literal

from cyclopts import Parameter

Model = Annotated[str, Parameter(help="A run's folder, a model's, or one of Hugging Face.")]
Flag = Annotated[bool, Parameter(negative="")]
Repeated = Annotated[list[str] | None, Parameter(negative="")]  # once for each value
Files = Annotated[list[str], Parameter(consume_multiple=True, negative="")]  # SOURCE TARGET, or one corpus

Threads = Annotated[int | None, Parameter(help="Processor threads to use; else one for each core.")]
TrainingThreads = Annotated[Threads, Parameter(env_var="DRAGOMAN_THREADS")]
Minutes = Annotated[float | None, Parameter(env_var="DRAGOMAN_MINUTES")]
Epochs = Annotated[float | None, Parameter(env_var="DRAGOMAN_EPOCHS")]
Seed = Annotated[
    int,
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
