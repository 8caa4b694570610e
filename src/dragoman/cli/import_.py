"""dragoman import: a Hugging Face folder as a model's folder of ours."""

import sys
from pathlib import Path


def import_(folder: Path, out: Path, /) -> int:
    """Import BERT, GPT-2, T5, Marian or ViT: weights, tokenizer or levels of images, how `generate` would decode.

    Parameters
    ----------
    folder
        A Hugging Face folder: config.json, weights, tokenizer files.
    out
        Where to write the model; it must not be there yet, or be empty.
    """
    from dragoman.errors import DataError, UsageError

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError("E-USE-03", f"{out} is there already and not empty; remove it, or name another folder")
    if not (folder / "config.json").is_file():
        raise DataError("E-IMP-01", f"{folder} has no config.json; give a Hugging Face folder")

    from dragoman.interop.importing import import_folder
    from dragoman.runs.model import save_model
    from dragoman.runs.weights import weights_of

    saved, story = import_folder(folder, lambda sentence: print(f"dragoman: {sentence}", file=sys.stderr))
    save_model(out, saved.model.config, weights_of(saved.model), saved.tokens, saved.about)
    print(f"imported {story}")
    return 0
