"""Question: how fast do we translate, beside CTranslate2 and transformers? A Marian-shaped base model, in one run.

    python benchmarks/speed_translating.py [--rounds 5] [--cases greedy-1 beam-8 …] [--peers ctranslate2 transformers]

6+6 blocks, width 512, 32,000 tokens, random weights; <end> is never likely, so every output has as many tokens. Each
peer is a process of its own with its best settings, and they take turns. One JSON line for each case: sentences a
second, and our speed over theirs. Two threads have a batch each; CTranslate2 has whichever is fastest of two workers
with one thread, one worker with two, and that with batches twice as large. `lone` is a single sentence at a time with
the whole machine to itself, as somebody who types has it.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from peers import Ask, Peer, race, ratio, tell

VOCABULARY, WIDTH, LAYERS, HEADS, HIDDEN = 32_000, 512, 6, 8, 2048
TOKENS = 25  # of every output
SENTENCES = {1: 16, 8: 48, 32: 128}  # by the size of a batch: a second or two of work
LONE = 10  # sentences one after the other
BEAMS = {"greedy": 1, "beam": 5}
CASES = {f"{kind}-{size}": (beam, size) for kind, beam in BEAMS.items() for size in ("lone", *SENTENCES)}
WAYS = {"2x1": (2, 1), "1x2": (1, 2)}  # CTranslate2's workers and threads
WANTED = {  # times as fast as CTranslate2 in int8; in float32 1.15 everywhere
    "greedy-1": 2.0, "greedy-8": 1.4, "greedy-32": 1.1, "beam-1": 1.5, "beam-8": 1.1, "beam-32": 1.1,
    "greedy-lone": "–", "beam-lone": "–",
}  # fmt: skip
AGAINST_TRANSFORMERS = {"greedy-1": 6.0, "greedy-8": 5.0, "greedy-32": 3.0}  # wanted in int8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--peers", nargs="*", default=["ctranslate2", "transformers"])
    parser.add_argument("--precisions", nargs="+", default=["int8", "float32"])
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        maker = Peer(write_models)
        maker.ask(folder=folder)
        maker.stop()
        for precision in options.precisions:
            race_all(folder, precision, options)


def race_all(folder: Path, precision: str, options: argparse.Namespace) -> None:
    ours = Peer(our_peer, folder, precision)
    ways = {name: Peer(ctranslate2_peer, folder, precision, *way) for name, way in WAYS.items()}
    theirs = Peer(transformers_peer, folder)
    for name in options.cases:
        beam, size = CASES[name]
        lone, batch = size == "lone", 1 if size == "lone" else int(size)
        sentences = LONE if lone else SENTENCES[batch]
        case: dict[str, Any] = {"beam": beam, "batch": batch, "sentences": sentences, "lone": lone, "double": False}
        peers = {"dragoman": ours}
        if "ctranslate2" in options.peers:
            best, case["double"] = best_way(ways, case)
            peers[f"ctranslate2 {best}"] = ways[best]
        if "transformers" in options.peers and name in AGAINST_TRANSFORMERS:
            peers["transformers"] = theirs
        for _ in range(2):
            ours.ask(**case)  # until it has found its pace
        times = race(peers, options.rounds, **case)
        for peer in peers:
            found: dict[str, Any] = {"sentences/s": round(sentences / median(times[peer]), 1)}
            if peer != "dragoman":
                found["ours over it"] = [round(x, 2) for x in ratio(times, "dragoman", peer)]
                found["wanted"] = wanted(peer, precision, name)
            tell(benchmark="translating", precision=precision, case=name, peer=peer, **found)
    for peer in (ours, theirs, *ways.values()):
        peer.stop()


def best_way(ways: dict[str, Peer], case: dict[str, Any]) -> tuple[str, bool]:
    """CTranslate2's workers and threads, and whether its batches are doubled."""
    choices = [
        (way, double) for way in ways for double in (False, True) if not (double and (case["lone"] or way == "2x1"))
    ]
    tried = {
        (way, double): min(ways[way].ask(**{**case, "double": double}) for _ in range(2)) for way, double in choices
    }
    return min(tried, key=lambda choice: tried[choice])


def wanted(peer: str, precision: str, case: str) -> float | str:
    if peer == "transformers":
        return AGAINST_TRANSFORMERS[case] if precision == "int8" else "–"
    return WANTED[case] if precision == "int8" or WANTED[case] == "–" else 1.15


def sources(count: int) -> list[list[int]]:
    from random import Random

    rng = Random(1)
    return [[rng.randrange(10, VOCABULARY - 10) for _ in range(rng.randint(10, 40))] for _ in range(count)]


# ── the peers, each in its own process ────────────────────────────────────────────────────


def write_models() -> Any:
    import ctranslate2
    import torch
    from ctranslate2.converters.transformers import MarianMTLoader
    from transformers import MarianConfig, MarianMTModel

    def write(folder: Path) -> float:
        torch.manual_seed(0)
        sizes = {"d_model": WIDTH, "encoder_layers": LAYERS, "decoder_layers": LAYERS, "vocab_size": VOCABULARY}
        sizes |= {f"{side}_attention_heads": HEADS for side in ("encoder", "decoder")}
        sizes |= {f"{side}_ffn_dim": HIDDEN for side in ("encoder", "decoder")}
        ends = {"pad_token_id": VOCABULARY - 1, "decoder_start_token_id": VOCABULARY - 1, "eos_token_id": 0}
        config = MarianConfig(
            **sizes, **ends, forced_eos_token_id=None, activation_function="swish", scale_embedding=True
        )
        model = MarianMTModel(config).eval()
        model.final_logits_bias[0, 0] = -1e4
        model.generation_config.forced_eos_token_id = None
        model.save_pretrained(folder / "hf")
        spec = MarianMTLoader().get_model_spec(model)
        names = ["</s>", "<unk>", *(f"t{i}" for i in range(2, VOCABULARY - 1))]  # it takes <pad> out
        spec.register_source_vocabulary(names)
        spec.register_target_vocabulary(names)
        spec.config.eos_token, spec.config.unk_token, spec.config.decoder_start_token = "</s>", "<unk>", "</s>"
        spec.validate()
        (folder / "ct2").mkdir()
        spec.save(str(folder / "ct2"))
        return float(bool(ctranslate2.__version__))

    return write


def our_peer(folder: Path, precision: str) -> Ask:
    from dragoman.jobs.machine import use_large_pages

    use_large_pages()
    import torch

    from dragoman import models
    from dragoman.decoding.beam import SearchConfig
    from dragoman.decoding.engine import Engine
    from dragoman.decoding.flow import Waiting, search_all
    from dragoman.interop.huggingface import open_folder, read_weights
    from dragoman.interop.marian import MARIAN
    from dragoman.interop.tables import move_in
    from dragoman.text.special import SpecialIds

    torch.set_num_threads(2)
    path = open_folder(folder / "hf")
    model = models.build(MARIAN.config(path))
    weights = read_weights(folder / "hf", print)
    move_in(weights, MARIAN.table(path, weights.keys()), model, "")
    engine = Engine(model.eval(), precision)  # type: ignore[arg-type]
    special = SpecialIds(pad=VOCABULARY - 1, start=VOCABULARY - 1, end=0, unknown=1)

    def ask(beam: int, batch: int, sentences: int, lone: bool, double: bool) -> float:
        del double  # ours chooses by itself
        config = SearchConfig(beam=beam, finish="mean", never=((VOCABULARY - 1,), (1,)))
        waiting = [Waiting(number, source, TOKENS) for number, source in enumerate(sources(sentences))]
        found = {}
        start = time.perf_counter()
        for some in [[one] for one in waiting] if lone else [waiting]:
            found |= search_all(engine, some, special, config, rows=beam * batch, threads=2)
        seconds = time.perf_counter() - start
        assert all(len(best[0].tokens) == TOKENS for best in found.values())
        return seconds

    return ask


def ctranslate2_peer(folder: Path, precision: str, workers: int, threads: int) -> Ask:
    import ctranslate2

    kind = "int8" if precision == "int8" else "float32"
    translator = ctranslate2.Translator(
        str(folder / "ct2"), compute_type=kind, inter_threads=workers, intra_threads=threads
    )

    def ask(beam: int, batch: int, sentences: int, lone: bool, double: bool) -> float:
        texts = [[*(f"t{i}" for i in source), "</s>"] for source in sources(sentences)]
        size, found = 2 * batch if double else batch, []
        start = time.perf_counter()
        for some in [[text] for text in texts] if lone else [texts]:
            found += translator.translate_batch(
                some, beam_size=beam, max_batch_size=size, max_decoding_length=TOKENS, min_decoding_length=TOKENS
            )
        seconds = time.perf_counter() - start
        assert all(len(one.hypotheses[0]) == TOKENS for one in found)
        return seconds

    return ask


def transformers_peer(folder: Path) -> Ask:
    import torch
    from transformers import MarianMTModel

    torch.set_num_threads(2)
    model = MarianMTModel.from_pretrained(folder / "hf").eval()

    def ask(beam: int, batch: int, sentences: int, lone: bool, double: bool) -> float:
        del lone, double
        texts = sorted(([*source, 0] for source in sources(sentences)), key=len)
        start = time.perf_counter()
        for first in range(0, len(texts), batch):
            some = texts[first : first + batch]
            length = max(map(len, some))
            ids = torch.tensor([[*text, *[VOCABULARY - 1] * (length - len(text))] for text in some])
            real = torch.tensor([[i < len(text) for i in range(length)] for text in some])
            with torch.inference_mode():
                model.generate(
                    ids, attention_mask=real, num_beams=beam, do_sample=False, max_new_tokens=TOKENS,
                    min_new_tokens=TOKENS,
                )  # fmt: skip
        return time.perf_counter() - start

    return ask


if __name__ == "__main__":
    main()
