"""Question: how much faster than a plain `nn.Transformer` does a step train? Target tokens per second, in one run.

Both models have the same size, data and optimizer family; rounds alternate, and the best round of each counts.
"""

from collections.abc import Iterator

import torch
from race import batches, race
from torch import nn

from dragoman.jobs.machine import keep_memory
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.modules.positions import sinusoids
from dragoman.text.batches import Batch
from dragoman.training.loop import train
from dragoman.training.objectives import translation_loss
from dragoman.training.optimizers import make_optimizer

VOCABULARY, WIDTH, LAYERS, HIDDEN, HEADS, DROPOUT = 8000, 256, 3, 1024, 4, 0.1


class Plain(nn.Module):
    """What a tutorial would write."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Buffer(sinusoids(256, WIDTH).float())
        self.body = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, DROPOUT, batch_first=True, norm_first=True)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, batch: Batch) -> torch.Tensor:
        source = self.embedding(batch.source) * WIDTH**0.5 + self.positions[: batch.source.shape[1]]
        target = self.embedding(batch.target_in) * WIDTH**0.5 + self.positions[: batch.target_in.shape[1]]
        future = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool)
        hidden = ~batch.source_mask
        states = self.body(source, target, None, future, None, hidden, ~batch.target_mask, hidden)
        logits = self.output(states).flatten(0, 1)
        wanted = batch.target_out.masked_fill(~batch.target_mask, -100).flatten()
        return nn.functional.cross_entropy(logits, wanted, label_smoothing=0.1)


def plain_steps(data: list[Batch]) -> Iterator[int]:
    model = Plain()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    while True:
        for batch in data:
            optimizer.zero_grad()
            model(batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            yield int(batch.target_mask.sum())


def our_steps(data: list[Batch], optimizer: str) -> Iterator[int]:
    config = TransformerConfig(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, width=WIDTH, heads=HEADS, layers=LAYERS,
        hidden=HIDDEN, dropout=DROPOUT, norm_first=True,
    )  # fmt: skip
    model = Transformer(config)
    made = make_optimizer(optimizer, model, 1e-4)
    while True:
        for step in train(model, [[batch] for batch in data], translation_loss, made, rate=lambda _: 1e-4):
            yield step.tokens


def main() -> None:
    keep_memory()
    data = batches(12, VOCABULARY)
    cases = {"plain": plain_steps(data), "adamw": our_steps(data, "adamw"), "muon": our_steps(data, "muon")}
    race("training", cases, against="plain")


if __name__ == "__main__":
    main()
