"""Question: how fast does a step train, beside a plain `nn.Transformer` loop and transformers' Marian? In one run.

    python benchmarks/speed_training.py [--rounds 5] [--sizes small base]

Forward, backward, clipping and update; target tokens per second. All have the same size, the same batches of 2,048
target tokens (sentences of 8 to 23, hardly any padding), dropout 0.1 and label smoothing 0.1; AdamW, ours by Muon too,
which is what a run has where nobody chose. Each is a process of its own with two threads, and they take turns; all keep
the large blocks of memory that they free (mallopt), and spare Python's collector what was there before, which helps
them as it helps us. Beside them the processor's rate of matrix products, torch's or our own, whichever is faster here:
what share of it a step reaches.
"""

import argparse
import gc
import time
from statistics import median
from typing import Any

from peers import Ask, Peer, race, ratio, tell

SIZES: dict[str, dict[str, int]] = {
    "small": {"vocabulary": 8000, "width": 256, "heads": 4, "layers": 3, "hidden": 1024},
    "base": {"vocabulary": 16_000, "width": 512, "heads": 8, "layers": 6, "hidden": 2048},
}
STEPS = {"small": 5, "base": 2}
WANTED = {  # of ours with AdamW over a peer
    ("small", "plain"): 1.35, ("small", "marian"): 1.2, ("base", "plain"): 1.3, ("base", "marian"): 1.0,
}  # fmt: skip
SHARE = 0.8  # of the products' rate, wanted of ours with AdamW
DROPOUT, SMOOTHING = 0.1, 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    options = parser.parse_args()
    for size in options.sizes:
        given = (SIZES[size], 2 * STEPS[size])
        peers = {
            "adamw": Peer(ours, *given, "adamw"), "muon": Peer(ours, *given, "muon"), "plain": Peer(plain, *given),
            "marian": Peer(marian, *given), "products": Peer(products),
        }  # fmt: skip
        times = race(peers, options.rounds, steps=STEPS[size])
        for peer in peers.values():
            peer.stop()
        report(size, times)


def report(size: str, times: dict[str, list[float]]) -> None:
    """A peer's answer is seconds a token; that of `products` is seconds for a multiplication and an addition."""
    work = 6 * products_per_token(**SIZES[size])
    for name in ("adamw", "muon", "plain", "marian"):
        found: dict[str, Any] = {"benchmark": "training", "size": size, "peer": name}
        found["target tokens/s"] = round(1 / median(times[name]))
        share = median(work * p / t for p, t in zip(times["products"], times[name], strict=True))
        if (size, name) in WANTED:
            found |= {"share of products": round(share, 2)}
            found |= {"ours over it": [round(x, 2) for x in ratio(times, "adamw", name)], "wanted": WANTED[size, name]}
            found["with muon"] = [round(x, 2) for x in ratio(times, "muon", name)]
        else:
            found |= {"share of products": round(share, 2), "wanted share": SHARE if name == "adamw" else "–"}
        tell(**found)


def products_per_token(vocabulary: int, width: int, heads: int, layers: int, hidden: int) -> int:
    """For a target token and one of the source, forwards; attention's own products are a percent or two more."""
    del heads
    return layers * (12 * width**2 + 4 * width * hidden) + vocabulary * width


# ── the peers, each in its own process ────────────────────────────────────────────────────


def data(vocabulary: int, count: int) -> list[Any]:
    from dragoman.jobs.machine import keep_memory

    keep_memory()
    import torch
    from race import batches

    torch.set_num_threads(2)
    torch.manual_seed(0)
    made = batches(count, vocabulary)
    gc.freeze()  # as a run does: what is there by now is not looked through for garbage
    return made


def timed(step: Any, made: list[Any]) -> Ask:
    """Seconds a target token, over some steps; the batches go round."""
    state = {"next": 0}

    def ask(steps: int) -> float:
        tokens, start = 0, time.perf_counter()
        for _ in range(steps):
            batch = made[state["next"] % len(made)]
            state["next"] += 1
            step(batch)
            tokens += int(batch.target_mask.sum())
        return (time.perf_counter() - start) / tokens

    return ask


def ours(size: dict[str, int], count: int, optimizer: str) -> Ask:
    made = data(size["vocabulary"], count)
    from dragoman.models.transformer import Transformer, TransformerConfig
    from dragoman.training.loop import train
    from dragoman.training.micro_batches import cut
    from dragoman.training.objectives import TranslationLoss
    from dragoman.training.optimizers import make_optimizer
    from dragoman.training.team import team_size

    vocabulary, rest = size["vocabulary"], {key: value for key, value in size.items() if key != "vocabulary"}
    model = Transformer(
        TransformerConfig(
            source_vocabulary=vocabulary, target_vocabulary=vocabulary, dropout=DROPOUT, norm_first=True, **rest
        )
    )
    chosen, waiting = make_optimizer(optimizer, model, 1e-4), list[Any]()
    steps = train(model, iter(waiting.pop, None), TranslationLoss(SMOOTHING), chosen, rate=lambda _: 1e-4)

    def step(batch: Any) -> None:
        waiting.append(cut(batch, team_size()))  # as a run does
        next(steps)

    return timed(step, made)


def plain(size: dict[str, int], count: int) -> Ask:
    """What a tutorial would write."""
    made = data(size["vocabulary"], count)
    import torch
    from torch import nn

    width, vocabulary, longest = size["width"], size["vocabulary"], 64
    place, wave = torch.arange(longest)[:, None], torch.arange(0, width, 2)[None] / width
    angles = place / 10_000**wave
    positions = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    embedding, output = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
    body = nn.Transformer(
        width, size["heads"], size["layers"], size["layers"], size["hidden"], DROPOUT, batch_first=True, norm_first=True
    )
    parameters = [*embedding.parameters(), *body.parameters(), *output.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-4, fused=True)

    def step(batch: Any) -> None:
        source = embedding(batch.source) * width**0.5 + positions[: batch.source.shape[1]]
        target = embedding(batch.target_in) * width**0.5 + positions[: batch.target_in.shape[1]]
        future = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool)
        hidden = ~batch.source_mask
        states = body(source, target, None, future, None, hidden, ~batch.target_mask, hidden)
        wanted = batch.target_out.masked_fill(~batch.target_mask, -100).flatten()
        loss = nn.functional.cross_entropy(output(states).flatten(0, 1), wanted, label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return timed(step, made)


def marian(size: dict[str, int], count: int) -> Ask:
    made = data(size["vocabulary"], count)
    import torch
    from transformers import MarianConfig, MarianMTModel

    both = ("encoder", "decoder")
    sizes: dict[str, Any] = {f"{side}_layers": size["layers"] for side in both}
    sizes |= {f"{side}_attention_heads": size["heads"] for side in both}
    sizes |= {f"{side}_ffn_dim": size["hidden"] for side in both}
    config = MarianConfig(
        vocab_size=size["vocabulary"], d_model=size["width"], dropout=DROPOUT, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=1, activation_function="relu", scale_embedding=True, use_cache=False, **sizes,
    )  # fmt: skip
    model = MarianMTModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)

    def step(batch: Any) -> None:
        logits = model(
            input_ids=batch.source, attention_mask=batch.source_mask, decoder_input_ids=batch.target_in,
            decoder_attention_mask=batch.target_mask, use_cache=False,
        ).logits  # fmt: skip
        wanted = batch.target_out.masked_fill(~batch.target_mask, -100).flatten()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted, label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return timed(step, made)


def products() -> Ask:
    """The best that products of a model's shape reach, written into memory that is there already."""
    import torch

    from dragoman.modules.products import product

    torch.set_num_threads(2)
    states, weights, room = torch.randn(2048, 512), torch.randn(512, 2048), torch.empty(2048, 2048)

    def ask(steps: int) -> float:
        del steps
        best = float("inf")
        for _ in range(20):
            for multiply in (torch.mm, product):
                start = time.perf_counter()
                multiply(states, weights, out=room)
                best = min(best, time.perf_counter() - start)
        return best / (2 * 2048 * 512 * 2048)

    return ask


if __name__ == "__main__":
    main()
