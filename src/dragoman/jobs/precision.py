"""What int8 costs a translator: measured on the validation part when training is over, told, and saved with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.decoding.packing import can_pack
from dragoman.decoding.translate import Translator
from dragoman.evaluation.scores import bleu, chrf
from dragoman.jobs.signals import Stop
from dragoman.jobs.task import Task
from dragoman.jobs.translating import Translating, spread
from dragoman.runs.model import open_model, save_model
from dragoman.runs.weights import weights_of

SENTENCES = 500  # of the validation part, at most


def weigh_int8(folder: Path, task: Task, stop: Stop) -> Iterator[str]:
    """One sentence, for a model of which it is not known yet; nothing where it cannot be computed so."""
    if not isinstance(task, Translating) or not (folder / "config.json").exists():
        return
    saved = open_model(folder)
    if "int8" in saved.about or not can_pack(saved.model):
        return
    pairs = spread(task.prepared.valid_texts, SENTENCES)
    translator = Translator(saved.model, saved.tokenizers, saved.about)
    found: dict[str, Any] = {"sentences": len(pairs)}
    for precision in ("float32", "int8"):
        if stop.asked:
            return
        outputs = [t.text for t in translator.translate([pair.source for pair in pairs], beam=1, precision=precision)]
        references = [pair.target for pair in pairs]
        found[precision] = {"bleu": bleu(outputs, references), "chrf": chrf(outputs, references)}
    config: Any = saved.model.config
    about = {**saved.about, "int8": found}
    save_model(folder, config, weights_of(saved.model), saved.tokens, about, saved.shortlist)
    whole, less = found["float32"], found["int8"]
    yield (
        f"in int8 it scores BLEU {less['bleu']:.2f} and chrF {less['chrf']:.2f} on {len(pairs):,} validation "
        f"sentences, in float32 {whole['bleu']:.2f} and {whole['chrf']:.2f}"
    )
