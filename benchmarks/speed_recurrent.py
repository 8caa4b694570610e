"""Question: how fast does an LSTM with attention train, beside a plain `nn.LSTM` encoder-decoder with dot attention?

Target tokens per second at width 512, in one run. Sizes, data and optimizer are the same; the plain one is what a
tutorial would write, without any of our layers.
"""

from collections.abc import Iterator

import torch
from race import batches, race
from torch import nn

from dragoman.jobs.machine import keep_memory
from dragoman.models.rnn import Rnn, RnnConfig
from dragoman.text.batches import Batch
from dragoman.training.loop import train
from dragoman.training.micro_batches import cut
from dragoman.training.objectives import translation_loss
from dragoman.training.optimizers import make_optimizer
from dragoman.training.team import team_size

VOCABULARY, WIDTH, EMBEDDING, DROPOUT = 8000, 512, 256, 0.2


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDING)
        self.encoder = nn.LSTM(EMBEDDING, WIDTH // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(EMBEDDING, WIDTH, batch_first=True)
        self.bridge = nn.Linear(WIDTH, WIDTH)
        self.combine = nn.Linear(2 * WIDTH, EMBEDDING)
        self.output = nn.Linear(EMBEDDING, VOCABULARY)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, batch: Batch) -> torch.Tensor:
        lengths = batch.source_mask.sum(dim=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.embedding(batch.source)), lengths, batch_first=True, enforce_sorted=False
        )
        found, (last, _) = self.encoder(packed)
        keys, _ = nn.utils.rnn.pad_packed_sequence(found, batch_first=True)
        first = torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=-1)))[None]
        states, _ = self.decoder(self.dropout(self.embedding(batch.target_in)), (first, torch.zeros_like(first)))
        scores = (states @ keys.transpose(1, 2)).masked_fill(~batch.source_mask[:, None], -torch.inf)
        context = scores.softmax(dim=-1) @ keys
        readout = self.dropout(torch.tanh(self.combine(torch.cat([context, states], dim=-1))))
        wanted = batch.target_out.masked_fill(~batch.target_mask, -100).flatten()
        return nn.functional.cross_entropy(self.output(readout).flatten(0, 1), wanted, label_smoothing=0.1)


def plain_steps(data: list[Batch]) -> Iterator[int]:
    model = Plain()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    while True:
        for batch in data:
            optimizer.zero_grad()
            model(batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            yield int(batch.target_mask.sum())


def our_steps(data: list[Batch], optimizer: str, attention: str) -> Iterator[int]:
    sizes = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "width": WIDTH, "embedding": EMBEDDING}
    model = Rnn(RnnConfig.model_validate({**sizes, "attention": attention, "dropout": DROPOUT}))
    made = make_optimizer(optimizer, model, 1e-4)
    parts = [cut(batch, team_size()) for batch in data]  # as a run does
    while True:
        for step in train(model, parts, translation_loss, made, rate=lambda _: 1e-4):
            yield step.tokens


def main() -> None:
    keep_memory()
    data = batches(12, VOCABULARY)
    cases = {"plain": plain_steps(data)}
    cases |= {f"{attention}, adam": our_steps(data, "adam", attention) for attention in ("dot", "additive", "none")}
    cases["dot, muon"] = our_steps(data, "muon", "dot")
    race("recurrent training", cases, against="plain")


if __name__ == "__main__":
    main()
