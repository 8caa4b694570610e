"""The settings of a training run. Importing this is quick: a mistake in them is answered at once."""

from typing import Literal

from pydantic import Field, model_validator

from dragoman.config import Settings
from dragoman.training import schedules

OptimizerName = Literal["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"]


class TrainingConfig(Settings):
    steps: int = Field(10_000, gt=0, description="optimizer steps in all")
    tokens_per_step: int = Field(2048, gt=0, description="tokens a step learns from: the mean of both sides, padded")
    images_per_step: int = Field(128, gt=0, description="images a step learns from, where there are images")
    window: int = Field(64, gt=0, description="tokens of a text in a row that gradients flow back through")
    shuffle: bool = Field(False, description="windows of a text in random order; for models that carry no state")
    accumulate: int = Field(1, gt=0, description="micro-batches that a step is made of; more need less memory")
    slices: int = Field(
        1, gt=0, description="parts that each batch is cut into by rows, for threads or workers to share out"
    )
    reproducible: bool = Field(False, description="the same bits for any number of workers; a worker has one thread")
    sharding: bool = Field(False, description="workers share out the model itself; for one too large for each of them")
    optimizer: OptimizerName = Field("muon", description="how parameters follow their gradients")
    rate: float = Field(3e-3, gt=0, description="learning rate at its peak")
    schedule: schedules.Name = Field("linear", description="how the rate falls after the warm-up")
    warmup: int = Field(100, ge=0, description="steps over which the rate rises to its peak")
    weight_decay: float = Field(0.0, ge=0, description="how much parameters shrink at each step, times the rate")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="probability spread evenly over all tokens")
    clip: float = Field(1.0, gt=0, description="longest gradient; a longer one is shortened to it")
    validate_every: int = Field(500, gt=0, description="steps between two looks at the validation data")
    save_every: int = Field(500, gt=0, description="steps between two checkpoints")
    report_every: int = Field(50, gt=0, description="steps between two lines of the log")
    patience: int = Field(8, ge=0, description="validations without a better one before training stops; 0: never")
    average: int = Field(3, gt=0, description="newest checkpoints kept, and averaged at the end if that is better")

    @model_validator(mode="after")
    def parts_fit_together(self) -> "TrainingConfig":
        if self.accumulate > self.tokens_per_step:
            raise ValueError(f"{self.tokens_per_step} tokens cannot be split into {self.accumulate} micro-batches")
        return self

    def without_smoothing(self) -> "TrainingConfig":
        return self.changed({"label_smoothing": 0.0}, section="training")
