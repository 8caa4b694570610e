"""Question: does anything that people or files can give us end in a traceback, a crash, a long wait or a full memory?

For each class many malformed inputs are made from sound ones: bits flipped, ends missing, pieces doubled or swapped,
numbers made huge, and whatever has broken others before. Each must be read, or refused by one sentence.
"""

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import promises
import sentencepiece
import torch
import trials
import zstandard
from PIL import Image

from dragoman.decoding.translate import Translator
from dragoman.errors import DragomanError
from dragoman.images.corpus import find_images
from dragoman.images.pixels import Form, Size
from dragoman.jobs.recorded import read_recorded
from dragoman.jobs.request import Request, gather_settings
from dragoman.jobs.start import reopen
from dragoman.jobs.tasks import refuse_unknown_settings, resolve
from dragoman.runs.files import MANIFEST, seal
from dragoman.runs.model import open_model
from dragoman.text.check import check
from dragoman.text.corpus import find_corpus
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers, open_tokenizers
from dragoman.training.parallel import ALONE
from dragoman.training.settings import TrainingConfig

AT_ONCE = 250  # inputs read by one child: what leaks or crashes is found between two children
SLOW, LARGE = 2.0, 512 << 20
ENDS = ("read", "refused", "failed")
NASTY = [
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x1c", b"\r", b"\r\n", b"\n\n\n",
    b"\t\t",
    b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe4", b"a" * 3000, b"[" * 5000, b'{"a":' * 2000, b"99999999999999999999",
    b"-1",
    b"NaN", b"1e999", b"null", b"true", b"\\ud800", b'"', b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;",
    b"../../etc/passwd",
    "😀".encode(), "\u202e".encode(), "a\u0300".encode() * 500,
]  # fmt: skip


WORDS = re.compile(rb'"[^"]*"|[\w.+-]+')
OTHERS = [
    b"0", b"-1", b"99999999", b"1e9", b"4294967296", b"1e999", b"NaN", b"null", b"true", b"[]", b"{}", b'""', b'"x"',
    b'"../x"', b"[[1]]", b'"\\ud800"', b"3.5", b'"\xc3\xa4"',
]  # fmt: skip


def mutate(content: bytes, chance: random.Random) -> bytes:
    """A word or two of a text others than they were, or one to four kinds of damage."""
    words = list(WORDS.finditer(content, 0, 100_000)) if chance.random() < 0.5 and b"\0" not in content else []
    if words:
        place = chance.choice(words)
        other = chance.choice([*OTHERS, chance.choice(words).group()])
        return content[: place.start()] + other + content[place.end() :]
    made = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        place = chance.randrange(len(made) + 1)
        other = chance.randrange(len(made) + 1)
        low, high = min(place, other), max(place, other)
        match chance.choice([0, 0, 0, 1, 2, 2, 3, 4, 5, 6]):
            case 0:
                if made:
                    made[place % len(made)] ^= 1 << chance.randrange(8)
            case 1:
                del made[place:]
            case 2:
                made[place:place] = chance.choice(NASTY)
            case 3:
                del made[low : min(high, low + 50)]
            case 4:
                made[place:place] = made[low : min(high, low + 200)]
            case 5:
                made[place : place + 8] = chance.randbytes(8)
            case 6:
                made[place : place + 4] = chance.choice([b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff"])
    return bytes(made)


# ── classes of input ──────────────────────────────────────────────────────────────────────


def corpora(folder: Path) -> Callable[[random.Random], None]:
    """Two files, .tsv, .jsonl, .tmx, and packed ones: found, read to the end, and looked through."""
    lines = [(f"ein Satz {n}", f"a sentence {n}") for n in range(40)]
    plain = "".join(f"{source}\n" for source, _ in lines).encode()
    jsonl = "".join(json.dumps({"translation": {"de": s, "en": t}}) + "\n" for s, t in lines).encode()
    body = "".join(
        f"<tu><tuv xml:lang='de'><seg>{s}</seg></tuv><tuv xml:lang='en'><seg>{t}</seg></tuv></tu>" for s, t in lines
    )
    kinds = {
        "a.de": plain, "a.tsv": "".join(f"{s}\t{t}\n" for s, t in lines).encode(), "a.jsonl": jsonl,
        "a.tmx": f"<tmx version='1.4'><header srclang='de'/><body>{body}</body></tmx>".encode(),
        "a.de.gz": gzip.compress(plain), "a.de.bz2": bz2.compress(plain), "a.de.xz": lzma.compress(plain),
        "a.de.zst": zstandard.compress(plain), "bomb.de.gz": gzip.compress(b"a" * (1 << 24)),
    }  # fmt: skip

    def read(chance: random.Random) -> None:
        name = chance.choice(list(kinds))
        path = folder / name
        path.write_bytes(mutate(kinds[name], chance))
        paths = [str(path)]
        if ".de" in name:
            partner = folder / name.replace(".de", ".en")
            partner.write_bytes(kinds[name])
            paths.append(str(partner))
        corpus = find_corpus(paths, source_language="de", target_language="en")
        _ = corpus.languages, corpus.name
        for _ in corpus.pairs():
            pass
        check(corpus)

    return read


def sentences(folder: Path) -> Callable[[random.Random], None]:
    """Any text: one line in, one line out."""
    run = folder / "run"
    assert trials.follow(trials.request_for(trials.corpus_in(folder / "corpus"), run, "transformer", steps=2)) == 0
    saved = open_model(run)
    translator = Translator(saved.model, saved.tokens, saved.about)
    words = b"a b c d e f g"

    def read(chance: random.Random) -> None:
        text = mutate(words, chance).decode("utf-8", chance.choice(["replace", "surrogateescape", "ignore"]))
        texts = [text * chance.choice([1, 1, 1, 3]), "a b"] if chance.random() < 0.997 else ["wort " * 10_000]
        found = translator.translate(texts, beam=1)
        assert len(found) == len(texts)
        assert all("\n" not in one.text for one in found)

    return read


def tokenizers(folder: Path) -> Callable[[random.Random], None]:
    """A folder of each kind, one of its files damaged; what opens must encode and decode."""
    pairs = [(f"ein Satz {n} über Züge", f"a sentence {n} about trains") for n in range(200)]
    made: dict[str, dict[str, bytes]] = {}
    for kind in ("unigram", "bpe", "bytes", "characters", "words"):
        learn_tokenizers(TokenizerConfig(kind=kind, vocabulary=400), pairs).save(folder / kind)
        made[kind] = {path.name: path.read_bytes() for path in (folder / kind).iterdir()}
    proto = io.BytesIO()  # with a table of normalisation, as foreign ones have
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([s for s, _ in pairs]), model_writer=proto, vocab_size=60, hard_vocab_limit=False,
        minloglevel=2, pad_id=0, bos_id=1, eos_id=2, unk_id=3,
    )  # fmt: skip
    about = json.dumps({"sides": ["joint"], "special": SpecialIds().model_dump()}).encode()
    made["foreign"] = {"joint.model": proto.getvalue(), "tokenizer.json": about}
    made["pipeline"] = {"joint.pipeline.json": made["bytes"]["joint.bytes.json"], "tokenizer.json": about}

    def read(chance: random.Random) -> None:
        files = dict(chance.choice(list(made.values())))
        name = chance.choice(list(files))
        files[name] = mutate(files[name], chance)
        place = folder / "trial"
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for file, content in files.items():
            (place / file).write_bytes(content)
        opened = open_tokenizers(place)
        for tokenizer in (opened.source, opened.target):
            ids = tokenizer.encode(["ein Satz über Züge", ""])[0]
            tokenizer.decode(ids)
            tokenizer.pieces(ids)

    return read


def models(folder: Path) -> Callable[[random.Random], None]:
    """A model's folder, damaged; sometimes with a manifest that vouches for the damage."""
    run = folder / "run"
    assert trials.follow(trials.request_for(trials.corpus_in(folder / "corpus"), run, "transformer", steps=2)) == 0
    sound = {
        path.relative_to(run / "model"): path.read_bytes() for path in (run / "model").rglob("*") if path.is_file()
    }

    def read(chance: random.Random) -> None:
        place = folder / "trial"
        (place / "tokenizer").mkdir(parents=True, exist_ok=True)
        files = dict(sound)
        name = chance.choice(list(files))
        files[name] = mutate(files[name], chance)
        for file, content in files.items():
            (place / file).write_bytes(content)
        if chance.random() < 0.9 and name != Path(MANIFEST):
            (place / MANIFEST).unlink()
            seal(place)
        opened = open_model(place)
        opened.about["search"] = {**opened.about.get("search", {}), "longest_output": 30}  # it may write, but not long
        Translator(opened.model, opened.tokenizers, opened.about).translate(["a b"], beam=1)

    return read


def checkpoints(folder: Path) -> Callable[[random.Random], None]:
    """The newest checkpoint of a run, damaged; mostly with a manifest that vouches for the damage."""
    run = folder / "run"
    assert trials.follow(trials.request_for(trials.corpus_in(folder / "corpus"), run, "transformer", steps=2)) == 0
    recorded = read_recorded(run)
    training = TrainingConfig.read(recorded["training"], section="training")
    newest = run / "checkpoints" / "step-00000002"
    sound = {path.name: path.read_bytes() for path in newest.iterdir()}

    def read(chance: random.Random) -> None:
        for old in newest.parent.glob(f"{newest.name}*"):
            shutil.rmtree(old)
        newest.mkdir()
        name = chance.choice(list(sound))
        files = sound | {name: mutate(sound[name], chance)}
        if chance.random() < 0.1:
            del files[name]
        for file, content in files.items():
            (newest / file).write_bytes(content)
        if chance.random() < 0.9 and name != MANIFEST:
            (newest / MANIFEST).unlink()
            seal(newest)
        reopen(run, recorded, training, ALONE).resume()

    return read


def settings(folder: Path) -> Callable[[random.Random], None]:
    """A TOML file, --set and DRAGOMAN_*: gathered, and checked as before a run."""
    toml = (
        b'[model]\nwidth = 64\nheads = 4\ndropout = 0.1\n[training]\nsteps = 10\noptimizer = "adam"\nrate = 1e-3\n'
        b'[tokenizer]\nkind = "words"\nspecial = { pad = 0, end = 2 }\n[data]\nmax_empty = 0.1\n[search]\nbeam = 4\n'
    )
    corpus = trials.corpus_in(folder / "corpus")
    known = ["model.width=64", "training.rate=0.1", "tokenizer.special.pad=0", "data.max_empty=0.2", "search.beam=2"]

    def read(chance: random.Random) -> None:
        file = folder / "settings.toml"
        file.write_bytes(mutate(toml, chance))
        sets = [mutate(chance.choice(known).encode(), chance).decode("utf-8", "replace")]
        given = [(sets, None), ([], file), (known[:1], file)][chance.randrange(3)]
        found = gather_settings(
            *given, environment={"DRAGOMAN_TRAINING_WARMUP": sets[0]} if chance.random() < 0.2 else {}
        )
        files = {"corpora": [str(corpus / "train.source"), str(corpus / "train.target")], "settings": found}
        request = resolve(Request.read(files, section="train"))
        refuse_unknown_settings(request, request.task)

    return read


def images(folder: Path) -> Callable[[random.Random], None]:
    """PNG and JPEG in folders, idx, and .npz."""
    picture, files = Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)), dict[str, bytes]()
    for ending, kind in (("png", "PNG"), ("jpg", "JPEG"), ("gif", "GIF"), ("webp", "WEBP"), ("tif", "TIFF")):
        picture.save(buffer := io.BytesIO(), kind)
        files[f"tree/one/a.{ending if ending in ('png', 'jpg') else 'png'}"] = files[f"{ending}"] = buffer.getvalue()
    pixels, labels = np.zeros((6, 4, 4), np.uint8), np.arange(6, dtype=np.uint8) % 2
    np.savez(buffer := io.BytesIO(), images=pixels, labels=labels)
    npz = buffer.getvalue()
    np.savez_compressed(buffer := io.BytesIO(), images=pixels.astype(np.float32), numbers=labels * 1.5)
    packed = buffer.getvalue()
    idx = (b"\0\0\x08\x03" + np.array([6, 4, 4], ">i4").tobytes() + pixels.tobytes(),
           b"\0\0\x08\x01" + np.array([6], ">i4").tobytes() + labels.tobytes())  # fmt: skip
    for part in ("one", "two"):
        (folder / "tree" / part).mkdir(parents=True, exist_ok=True)
        picture.save(folder / "tree" / part / "sound.png")

    def read(chance: random.Random) -> None:
        match chance.randrange(4):
            case 0:
                ending = chance.choice(["png", "jpg", "gif", "webp", "tif"])
                (folder / "tree" / "one" / "a.png").write_bytes(mutate(files[ending], chance))
                paths = [folder / "tree"]
            case 1:
                (folder / "a.npz").write_bytes(mutate(chance.choice([npz, packed]), chance))
                paths = [folder / "a.npz"]
            case 2:
                paths = [folder / "a-images-idx3-ubyte", folder / "a-labels-idx1-ubyte"]
                for path, content in zip(paths, idx, strict=True):
                    path.write_bytes(mutate(content, chance) if chance.random() < 0.7 else content)
            case 3:
                paths = [folder / "b-images-idx3-ubyte.gz", folder / "b-labels-idx1-ubyte.gz"]
                for path, content in zip(paths, idx, strict=True):
                    path.write_bytes(mutate(gzip.compress(content), chance))
        corpus = find_images([str(path) for path in paths])
        corpus.task()
        read_all(corpus)

    return read


def read_all(corpus: Any) -> None:
    """Every pixel and every answer, as a run would."""
    size = Size(4, 4)
    form = corpus.form(size)
    for _ in corpus.pixels(Form(form.channels, *size)):
        pass
    answers = {"classify": corpus.labels, "regress": corpus.numbers, "segment": lambda: list(corpus.masks(size))}
    answers.get(corpus.task(), list)()


CLASSES = {one.__name__: one for one in (corpora, sentences, tokenizers, models, checkpoints, settings, images)}


# ── trials ────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="inputs of each class")
    parser.add_argument("--classes", nargs="+", default=list(CLASSES), choices=list(CLASSES))
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for name in asked.classes:
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            read = CLASSES[name](Path(scratch))
            found = prove(read, asked.count, asked.seed)
            promises.tell(found["failed"] == 0, proof="inputs", **{"class": name}, **found)
            os.chdir("/")
    promises.end()


def prove(read: Callable[[random.Random], None], count: int, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = {**dict.fromkeys(ENDS, 0), "slowest s": 0.0, "most MB more": 0.0}
    for first in range(0, count, AT_ONCE):
        found = together(found, in_child(read, range(first, min(count, first + AT_ONCE)), seed))
    return {"inputs": count} | {key: value if key in ENDS else round(value, 2) for key, value in found.items()}


def in_child(read: Callable[[random.Random], None], numbers: range, seed: int) -> dict[str, Any]:
    """Some of them, in a fork; a crash of the fork is a failure of the input it was at."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2) if "--debug" not in sys.argv else None
        lines = os.fdopen(send, "w")
        for number in numbers:
            print(json.dumps(try_one(read, seed, number)), file=lines, flush=True)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as lines:
        found = [json.loads(line) for line in lines]
    status = os.waitpid(pid, 0)[1]
    total: dict[str, Any] = {key: sum(one["end"] == key for one in found) for key in ENDS}
    for one in found:
        if one["end"] == "failed":
            print(one["why"], file=sys.stderr)
    if status:
        total["failed"] += 1
        print(f"input {seed}/{numbers.start + len(found)} crashed: status {status}", file=sys.stderr)
    slowest = max((one["seconds"] for one in found), default=0.0)
    total |= {"slowest s": slowest, "most MB more": max((one["more"] for one in found), default=0) / 1e6}
    left = range(numbers.start + len(found) + 1, numbers.stop)
    return together(total, in_child(read, left, seed)) if status and left else total


def together(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {key: (one[key] + other[key] if key in ENDS else max(one[key], other[key])) for key in one}


def try_one(read: Callable[[random.Random], None], seed: int, number: int) -> dict[str, Any]:
    before, start, end, why = begin_anew(), time.process_time(), "read", ""
    try:
        read(random.Random(seed * 1_000_003 + number))
    except DragomanError:
        end = "refused"
    except BaseException:
        end, why = "failed", f"input {seed}/{number}: {traceback.format_exc()}"
    seconds, more = time.process_time() - start, memory("VmHWM") - before
    if end != "failed" and (seconds > SLOW or more > LARGE):
        end, why = "failed", f"input {seed}/{number} took {seconds:.1f} s and {more / 1e6:.0f} MB"
    return {"end": end, "why": why, "seconds": seconds, "more": more}


def begin_anew() -> int:
    """Bytes that this process holds; from now on the most that it holds is counted anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(kind: str) -> int:
    status = Path("/proc/self/status").read_text().split("\n")
    return next(int(line.split()[1]) for line in status if line.startswith(kind)) * 1024


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
