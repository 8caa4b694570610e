"""The task `write`: from a text to windows of it, and to how well a model foresees the text it has not read."""

from math import exp, inf
from typing import Any

from dragoman.config import Settings
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.settings import SampleConfig
from dragoman.evaluation.perplexity import text_nats
from dragoman.jobs.task import Measured, Sample, lost
from dragoman.jobs.texts import TextTask
from dragoman.models.gpt import GptConfig
from dragoman.text.stream import ShuffledWindows, WindowOrder
from dragoman.training.objectives import WritingLoss
from dragoman.training.settings import TrainingConfig

SHOWN = 160  # tokens written at each validation, to be looked at


class Writing(TextTask):
    name = "write"
    keep_spaces = True
    measured = 100_000

    def plan_training(self, config: Settings) -> dict[str, Any]:
        """No smoothing: then the validation loss is the perplexity's logarithm. A model that looks back over a window
        is shown windows of that length in random order; one that carries its state reads on from window to window."""
        alone = {"window": config.longest, "shuffle": True} if isinstance(config, GptConfig) else {}
        return {"label_smoothing": 0.0, **alone}

    def order(self, training: TrainingConfig, seed: int) -> WindowOrder | ShuffledWindows:
        rows = training.tokens_per_step // training.accumulate // training.window
        kind = ShuffledWindows if training.shuffle else WindowOrder
        return kind(self.data.train, rows, training.window, seed)

    def objective(self, training: TrainingConfig) -> WritingLoss:
        return WritingLoss(training.label_smoothing)

    def validation_loss(self, model: Any, training: TrainingConfig) -> float:
        nats, tokens = text_nats(model, self.valid, label_smoothing=training.label_smoothing)
        return nats / tokens

    def measure(self, model: Any, training: TrainingConfig) -> Measured:
        nats = self.validation_loss(model, training)
        if lost(nats):
            return Measured(nats, {"perplexity": inf}, [])
        plain = nats if training.label_smoothing == 0 else self.validation_loss(model, training.without_smoothing())
        text = TextWriter(model, self.tokenizers).generate(tokens=SHOWN, sampling=SampleConfig(seed=1))
        return Measured(nats, {"perplexity": exp(min(plain, 80))}, [Sample("", " ".join(text.split()), "")])
