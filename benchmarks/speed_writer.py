"""Question: how fast does a GPT train, beside a plain PyTorch loop of the same model? In one run.

    python benchmarks/speed_writer.py [--rounds 5]

Tokens per second, AdamW, no dropout: 4 blocks of width 128 with windows of 64, 12 of them a step, and 6 of width 384
with windows of 256, 4 of them a step. The plain one is what a tutorial would write (fused queries, keys and values,
torch's causal attention, fused AdamW), without any of our layers. Each in its own process, with two threads, in turn;
both keep the large blocks of memory that they free.
"""

import argparse
import time
from statistics import median
from typing import Any

from peers import Ask, Peer, race, ratio, tell

VOCABULARY = 68
SIZES = {
    "4/4/128": {"width": 128, "heads": 4, "layers": 4, "length": 64, "rows": 12},
    "6/6/384": {"width": 384, "heads": 6, "layers": 6, "length": 256, "rows": 4},
}
STEPS = {"4/4/128": 40, "6/6/384": 3}
WANTED = {"4/4/128": 1.25, "6/6/384": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name, size in SIZES.items():
        peers = {"adamw": Peer(ours, size, "adamw"), "muon": Peer(ours, size, "muon"), "plain": Peer(plain, size)}
        times = race(peers, options.rounds, steps=STEPS[name])
        for peer in peers.values():
            peer.stop()
        for peer in peers:
            found: dict[str, Any] = {"benchmark": "writer training", "size": name, "peer": peer}
            found["tokens/s"] = round(size["rows"] * size["length"] * STEPS[name] / median(times[peer]))
            if peer == "plain":
                over = [round(x, 2) for x in ratio(times, "adamw", "plain")]
                found |= {"ours over it": over, "wanted": WANTED[name]}
            tell(**found)


def data(size: dict[str, int]) -> list[Any]:
    from dragoman.jobs.machine import keep_memory

    keep_memory()
    import torch

    from dragoman.text.stream import Window

    torch.set_num_threads(2)
    torch.manual_seed(0)
    ids = torch.randint(4, VOCABULARY, (20, size["rows"], size["length"] + 1))
    return [Window(part[:, :-1], part[:, 1:], first=True) for part in ids]


def timed(step: Any, windows: list[Any]) -> Ask:
    def ask(steps: int) -> float:
        start = time.perf_counter()
        for number in range(steps):
            step(windows[number % len(windows)])
        return time.perf_counter() - start

    return ask


def ours(size: dict[str, int], optimizer: str) -> Ask:
    windows = data(size)
    from dragoman.models.gpt import Gpt, GptConfig
    from dragoman.training.loop import train
    from dragoman.training.micro_batches import cut
    from dragoman.training.objectives import WritingLoss
    from dragoman.training.optimizers import make_optimizer
    from dragoman.training.team import team_size

    config = GptConfig(
        vocabulary=VOCABULARY, width=size["width"], heads=size["heads"], layers=size["layers"],
        hidden=4 * size["width"], longest=size["length"], dropout=0.0, biases=False,
    )  # fmt: skip
    model = Gpt(config)
    waiting = list[Any]()
    chosen = make_optimizer(optimizer, model, 1e-3, 0.1)
    steps = train(model, iter(waiting.pop, None), WritingLoss(), chosen, rate=lambda _: 1e-3)

    def step(window: Any) -> None:
        waiting.append(cut(window, team_size()))  # as a run does
        next(steps)

    return timed(step, windows)


def plain(size: dict[str, int]) -> Ask:
    windows = data(size)
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, heads, length = size["width"], size["heads"], size["length"]

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.inward, self.outward = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (
                part.view(*part.shape[:2], heads, -1).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, 2)
            )
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(found.transpose(1, 2).flatten(2))
            return x + self.outward(F.gelu(self.inward(self.norm2(x))))

    tokens, places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
    blocks, norm = nn.Sequential(*(Block() for _ in range(size["layers"]))), nn.LayerNorm(width, bias=False)
    parameters = [p for part in (tokens, places, blocks, norm) for p in part.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)

    def step(window: Any) -> None:
        x = tokens(window.tokens) + places(torch.arange(length))
        logits = norm(blocks(x)) @ tokens.weight.T
        loss = F.cross_entropy(logits.flatten(0, 1), window.wanted.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return timed(step, windows)


if __name__ == "__main__":
    main()
