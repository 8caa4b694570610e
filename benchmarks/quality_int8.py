"""Question: what does int8 cost on a trained model, ours and CTranslate2's?

    python benchmarks/quality_int8.py [--run DIR] [--minutes 10]

A translator of Multi30k de-en, trained for so many minutes where no run is given; test_2016_flickr, beam 5, sacreBLEU
(cased, 13a) and chrF. CTranslate2 has the same weights, in a process of its own. Its beam search is another one: it
ranks by log p / |Y|, ours by log p / (5 + |Y|), and it stops when five outputs have ended, ours when no better one can
come. So an engine's int8 is compared with its own float32. Greedy search is the same in both: there nearly all outputs
must be equal, or the weights did not arrive. At last, ours in int8 in random batchings: a sentence's translation must
not depend on its neighbours.
"""

import argparse
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from peers import Ask, Peer, tell
from quality_multi30k import pair
from runs import DATA, DRAGOMAN, lines

BEAM, BATCH = 5, 32
PRECISIONS = ("float32", "int8")
DIRECTION = "de-en"
MOST_LESS = 0.3  # BLEU that int8 may cost
LEAST_EQUAL = 98.0  # percent of CTranslate2's greedy outputs; a tie in the last digit may go either way
POSITIONS = 1024  # told to CTranslate2, which has no others


class Test(NamedTuple):
    texts: list[str]
    references: list[str]
    sources: list[list[int]]  # the texts as ids
    longest: list[int]  # tokens that each output may have
    names: list[str]  # of all tokens, as CTranslate2 is given them
    end: str
    never: list[str]  # those that no output may hold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a translator trained before, of the family transformer")
    parser.add_argument("--minutes", type=float, default=10.0, help="to train one, where none is given")
    parser.add_argument("--sentences", type=int, default=500, help="in each batching")
    parser.add_argument("--batchings", type=int, default=20)
    options = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"the data are not in {DATA}; this benchmark needs them")
    with TemporaryDirectory() as scratch:
        run = options.run or train(Path(scratch) / "run", options.minutes)
        translator, test = open_run(run)
        measure_ours(translator, test)
        measure_theirs(translator, test, run, Path(scratch))
        measure_batchings(translator, test.texts[: options.sentences], options.batchings)


def train(run: Path, minutes: float) -> Path:
    valid = ["--valid", *pair("val", DIRECTION)]
    lines([*DRAGOMAN, "train", *pair("train", DIRECTION), *valid, "--minutes", minutes, "--out", run, "--json"])
    return run


def open_run(run: Path) -> tuple[Any, Test]:
    from dragoman.decoding.translate import Translator
    from dragoman.jobs.open import load_as
    from dragoman.models.transformer import Transformer
    from dragoman.text.reading import clean, read_lines

    translator = load_as(Translator, run)
    if not isinstance(translator.model, Transformer) or not translator.tokenizers.joint:
        sys.exit(f"{run} is no transformer with one vocabulary; CTranslate2 is given the weights of such a one here")
    texts, references = ([*read_lines(path)] for path in pair("test_2016_flickr", DIRECTION))
    sources = translator.tokenizers.source.encode([clean(text) for text in texts])
    special, size = translator.tokenizers.special, translator.model.config.source_vocabulary
    names = [special.pieces().get(token, f"t{token}") for token in range(size)]
    longest = [translator.search.longest(len(source)) for source in sources]
    never = [names[token] for token in special.never_written()]
    return translator, Test(texts, references, sources, longest, names, names[special.end], never)


def measure_ours(translator: Any, test: Test) -> None:
    found = {}
    for precision in PRECISIONS:
        outputs = translator.translate(test.texts, beam=BEAM, precision=precision)
        found[precision] = [translation.text for translation in outputs]
    report("dragoman", found, test)


def measure_theirs(translator: Any, test: Test, run: Path, scratch: Path) -> None:
    import torch

    folder = scratch / "ctranslate2"
    maker = Peer(write_for_ctranslate2)
    maker.ask(run=run, folder=folder, names=test.names)
    maker.stop()
    decode, found = translator.tokenizers.target.decode, {}
    for precision in PRECISIONS:
        peer = Peer(ctranslate2_peer, folder, precision, torch.get_num_threads(), test)
        if precision == "float32":
            compare(translator.write_ids(test.sources, beam=1), peer.ask(beam=1))
        found[precision] = [decode(tokens) for tokens in peer.ask(beam=BEAM)]
        peer.stop()
    report("ctranslate2", found, test)


def compare(ours: list[list[int]], theirs: list[list[int]]) -> None:
    """Greedy outputs of the same weights in float32."""
    same = 100 * sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)
    found = {"equal to ours, %": round(same, 1), "wanted": LEAST_EQUAL}
    tell(benchmark="int8", engine="ctranslate2", precision="float32", case="greedy", **found)


def report(engine: str, found: dict[str, list[str]], test: Test) -> None:
    from dragoman.evaluation.scores import bleu, chrf

    whole = bleu(found["float32"], test.references)
    for precision, outputs in found.items():
        score = bleu(outputs, test.references)
        told: dict[str, Any] = {"BLEU": round(score, 2), "chrF": round(chrf(outputs, test.references), 2)}
        if precision == "int8":
            told |= {"less than float32": round(whole - score, 2), "wanted": MOST_LESS}
        tell(benchmark="int8", engine=engine, precision=precision, case=f"beam {BEAM}", **told)


def measure_batchings(translator: Any, texts: list[str], count: int) -> None:
    """The same sentences in random order, cut into chunks of random sizes."""
    chance, places = random.Random(1), list(range(len(texts)))
    written: list[set[str]] = [set() for _ in texts]
    for _ in range(count):
        chance.shuffle(places)
        for chunk in cut(places, chance):
            outputs = translator.translate([texts[place] for place in chunk], beam=BEAM, precision="int8")
            for place, translation in zip(chunk, outputs, strict=True):
                written[place].add(translation.text)
    same = 100 * sum(len(several) == 1 for several in written) / len(texts)
    found = {"sentences": len(texts), "batchings": count, "same text always, %": round(same, 1), "wanted": 100.0}
    tell(benchmark="int8", engine="dragoman", precision="int8", case="batchings", **found)


def cut(places: list[int], chance: random.Random) -> list[list[int]]:
    """Into chunks of 1 up to all of them, small sizes as likely as large ones."""
    chunks, rest = [], places
    while rest:
        size = round(len(places) ** chance.random())
        chunks.append(rest[:size])
        rest = rest[size:]
    return chunks


# ── CTranslate2, in its own process ───────────────────────────────────────────────────────


def ctranslate2_peer(folder: Path, precision: str, threads: int, test: Test) -> Ask:
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), compute_type=precision, intra_threads=threads)
    sources = [[*(test.names[token] for token in source), test.end] for source in test.sources]
    ids = {name: token for token, name in enumerate(test.names)}

    def ask(beam: int) -> Any:
        found = translator.translate_batch(
            sources,
            beam_size=beam,
            length_penalty=1,
            max_batch_size=BATCH,
            max_decoding_length=min(max(test.longest), POSITIONS - 1),
            suppress_sequences=[[name] for name in test.never],
        )
        outputs = [[ids[name] for name in one.hypotheses[0]] for one in found]
        return [tokens[:most] for tokens, most in zip(outputs, test.longest, strict=True)]

    return ask


def write_for_ctranslate2() -> Any:
    """Our weights as CTranslate2 reads them; what is not given to it, or does not fit, it refuses."""
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    from dragoman.runs.model import open_model

    def write(run: Path, folder: Path, names: list[str]) -> None:
        saved = open_model(run)
        model: Any = saved.model.requires_grad_(False)
        c, special = model.config, saved.tokenizers.special
        kind = Activation[c.activation.upper()]
        blocks = (c.layers, c.blocks_that_write)
        spec = TransformerSpec.from_config(blocks, c.heads, pre_norm=c.norm_first, activation=kind)
        fill_side(spec.encoder, model.source_embedding, model.source_positions, model.encoder)
        fill_side(spec.decoder, model.target_embedding, model.target_positions, model.decoder)
        spec.encoder.embeddings[0].weight = model.source_embedding.table.weight.numpy()
        spec.decoder.embeddings.weight = model.target_embedding.table.weight.numpy()
        spec.decoder.projection.weight = model.scores.table.weight.numpy()
        spec.register_source_vocabulary(names)
        spec.register_target_vocabulary(names)
        spec.config.eos_token, spec.config.unk_token = names[special.end], names[special.unknown]
        spec.config.bos_token = spec.config.decoder_start_token = names[special.start]
        spec.config.layer_norm_epsilon = model.encoder.blocks[0].around_self.norm.eps
        spec.validate()
        folder.mkdir()
        spec.save(str(folder))

    return write


def fill_side(spec: Any, embedding: Any, positions: Any, stack: Any) -> None:
    from dragoman.modules.positions import LearnedPositions

    spec.scale_embeddings = embedding.scale
    learned = isinstance(positions, LearnedPositions)
    count = positions.table.num_embeddings if learned else POSITIONS
    spec.position_encodings.encodings = positions(0, count).numpy()
    for layer, block in zip(spec.layer, stack, strict=True):
        a = block.self_attention
        fill_linear(layer.self_attention.linear[0], a.to_query, a.to_key, a.to_value)
        fill_linear(layer.self_attention.linear[1], a.to_output)
        fill_norm(layer.self_attention.layer_norm, block.around_self.norm)
        if (a := block.source_attention) is not None:
            fill_linear(layer.attention.linear[0], a.to_query)
            fill_linear(layer.attention.linear[1], a.to_key, a.to_value)
            fill_linear(layer.attention.linear[2], a.to_output)
            fill_norm(layer.attention.layer_norm, block.around_source.norm)
        fill_linear(layer.ffn.linear_0, block.feedforward[0])
        fill_linear(layer.ffn.linear_1, block.feedforward[2])
        fill_norm(layer.ffn.layer_norm, block.around_feedforward.norm)
    if stack.blocks[0].around_self.norm_first:
        fill_norm(spec.layer_norm, stack.final_norm)


def fill_linear(spec: Any, *linears: Any) -> None:
    """One matrix of those that read the same: their outputs follow one another."""
    import torch

    spec.weight = torch.cat([linear.weight for linear in linears]).numpy()
    spec.bias = torch.cat([linear.bias for linear in linears]).numpy()


def fill_norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = norm.weight.numpy(), norm.bias.numpy()


if __name__ == "__main__":
    main()
