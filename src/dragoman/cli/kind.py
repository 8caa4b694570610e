"""What a model's folder holds, told from its settings, before torch is imported."""

import json
from pathlib import Path

from dragoman.runs.files import no_model


def kind_of(model: Path) -> tuple[str, str]:
    """Task and family; empty words for what is no model, which is said when it is opened."""
    for folder in (model / "model", model / "model.old", model):
        try:
            settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            named = str((settings.get("architectures") or [""])[0])
            if named.startswith("ViT"):  # a folder of Hugging Face's
                return "embed" if named == "ViTModel" else "classify", "vit"
            return settings["model"].get("task", "translate"), settings["model"]["family"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return "", ""


def refuse_no_model(model: str) -> None:
    """What is no folder at all is told at once; what a folder lacks, when it is opened."""
    if not Path(model).exists():
        raise no_model(model)
