"""Question: how fast does a small GPT train, beside a plain PyTorch loop of the same model?

    python benchmarks/speed_writer.py

Tokens per second in one run: 4 blocks, 4 heads, width 128, windows of 64, 12 of them a step, AdamW. The plain one is
what a tutorial would write, without any of our layers.
"""

from collections.abc import Iterator

import torch
from race import race
from torch import nn
from torch.nn import functional as F

from dragoman.jobs.machine import keep_memory
from dragoman.models.gpt import Gpt, GptConfig
from dragoman.text.stream import Window
from dragoman.training.loop import train
from dragoman.training.objectives import WritingLoss
from dragoman.training.optimizers import make_optimizer

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, ROWS = 68, 128, 4, 4, 64, 12


class PlainBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.inward, self.outward = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.view(*part.shape[:2], HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(WIDTH, 2)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.outward(F.gelu(self.inward(self.norm2(x))))


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(PlainBlock() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, bias=False)

    def forward(self, window: Window) -> torch.Tensor:
        x = self.tokens(window.tokens) + self.places(torch.arange(LENGTH))
        logits = self.norm(self.blocks(x)) @ self.tokens.weight.T
        return F.cross_entropy(logits.flatten(0, 1), window.wanted.flatten())


def plain_steps(data: list[Window]) -> Iterator[int]:
    model = Plain()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    while True:
        for window in data:
            optimizer.zero_grad(set_to_none=True)
            model(window).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            yield window.wanted.numel()


def our_steps(data: list[Window], optimizer: str) -> Iterator[int]:
    config = GptConfig(
        vocabulary=VOCABULARY, width=WIDTH, heads=HEADS, layers=LAYERS, hidden=4 * WIDTH, longest=LENGTH,
        dropout=0.0, biases=False,
    )  # fmt: skip
    model = Gpt(config)
    made = make_optimizer(optimizer, model, 1e-3, 0.1)
    while True:
        for step in train(model, [[window] for window in data], WritingLoss(), made, rate=lambda _: 1e-3):
            yield step.tokens


def main() -> None:
    keep_memory()
    ids = torch.randint(4, VOCABULARY, (40, ROWS, LENGTH + 1))
    data = [Window(part[:, :-1], part[:, 1:], first=True) for part in ids]
    cases = {"plain": plain_steps(data), "adamw": our_steps(data, "adamw"), "muon": our_steps(data, "muon")}
    race("writer training", cases, against="plain", steps=40)


if __name__ == "__main__":
    main()
