"""The page: everything to see of a model, in one file that works from a disk, without a network.

The page itself is built from `web/` into this package. A saved one holds program, style and data; its content policy
lets the browser run this very program, by its hash, and load nothing from anywhere.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import dragoman
from dragoman import models
from dragoman.config import Settings
from dragoman.decoding.images import ImageModel
from dragoman.decoding.translate import Translator
from dragoman.jobs.open import Learned, load
from dragoman.seeing.arithmetic import Arithmetic, model_arithmetic, patch_arithmetic, slides_arithmetic, toy_arithmetic
from dragoman.seeing.embeddings import Embeddings, show_embeddings
from dragoman.seeing.history import Training, history
from dragoman.seeing.look import unfit
from dragoman.seeing.looked import Look
from dragoman.seeing.picture import pixels_of
from dragoman.seeing.positions import Positions, show_positions
from dragoman.seeing.shown import python_for_image

STYLE, PROGRAM = '<link rel="stylesheet" href="app.css">', '<script src="app.js" defer></script>'
STRICT = "base-uri 'none'; form-action 'none'"  # which default-src does not cover
POLICY = '<meta http-equiv="Content-Security-Policy" content="{policy}">'


class ModelCard(Settings):
    name: str
    family: str
    task: str
    parameters: int
    shape: str
    takes_text: bool  # whether there is something to see of a text that it is given


class Answer(Settings):
    """All of the page that hangs on the text looked at."""

    title: str
    look: Look | None
    arithmetic: list[Arithmetic]
    embeddings: Embeddings | None
    python: str  # the lines that give the same numbers


class PageData(Answer):
    version: str
    live: bool
    model: ModelCard | None
    positions: Positions | None
    training: Training | None


def answer(path: Path, learned: Learned | None, seen: Look | None, asked: Mapping[str, Any]) -> Answer:
    """`asked` is what `look` was given beside the text; of an image, the lines that give it."""
    text = seen.text if seen else ""
    own = own_arithmetic(learned, seen)
    return Answer(
        title=(seen.image.name if seen and seen.image else text) or name_of(path.resolve()),
        look=seen,
        arithmetic=[slides_arithmetic(), toy_arithmetic(), *([own] if own else [])],
        embeddings=None if learned is None else show_embeddings(learned, text),
        python=python_for(path, text, asked) if seen else "",
    )


def own_arithmetic(learned: Learned | None, seen: Look | None) -> Arithmetic | None:
    """What the model computes on what was looked at; None where it has no attention, or nothing was looked at."""
    if isinstance(learned, ImageModel):
        return patch_arithmetic(learned, pixels_of(seen.image)) if seen and seen.image else None
    return model_arithmetic(learned, seen.text) if learned is not None and seen and seen.text else None


def python_for(path: Path, text: str, asked: Mapping[str, Any]) -> str:
    if "image" in asked:
        return python_for_image(str(path), asked["image"])
    options = "".join(f", {name}={value!r}" for name, value in asked.items() if value)
    return (
        f"import dragoman\n\nseen = dragoman.look({str(path)!r}, {text!r}{options})\nseen.attention[0].weights.unpack()"
    )


def page_data(
    path: Path,
    learned: Learned | None,
    seen: Look | None,
    asked: Mapping[str, Any] | None = None,
    *,
    live: bool = False,
) -> PageData:
    """All screens of a model and of one text; `learned` is None while a run has not saved a model yet."""
    return PageData(
        **dict(answer(path, learned, seen, asked or {})),
        version=dragoman.__version__,
        live=live,
        model=None if learned is None else card_of(path, learned),
        positions=None if learned is None else show_positions(learned),
        training=history(path, opener_for(path, learned)),
    )


def opener_for(path: Path, learned: Learned | None) -> Callable[[], Translator] | None:
    """A second translator, opened when first needed, for the weights of checkpoints: the first goes on being used."""
    if not isinstance(learned, Translator):
        return None

    @cache
    def second() -> Translator:
        opened = load(path)
        assert isinstance(opened, Translator)
        return opened

    return second


def card_of(path: Path, learned: Any) -> ModelCard:
    model = learned.model
    task, family = models.task_and_family_of(model.config)
    return ModelCard(
        name=name_of(path.resolve()),
        family=family,
        task=task,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        shape=model.config.shape(),
        takes_text=not unfit(learned),
    )


def name_of(path: Path) -> str:
    """The folder's; with that around it where it says little."""
    return f"{path.parent.name}/{path.name}" if path.name in ("run", "model") else path.name


# ── one file ──────────────────────────────────────────────────────────────────────────────


def built(name: str) -> str:
    """A file of the page, as it was built into this package."""
    return (files("dragoman.seeing") / "web" / name).read_text(encoding="utf-8")


def saved_page(data: PageData) -> str:
    style, program = built("app.css"), built("app.js")
    policy = f"default-src 'none'; script-src '{digest(program)}'; style-src '{digest(style)}'; img-src data:; {STRICT}"
    json = data.model_dump_json().replace("<", "\\u003c")  # so that no token can end the element
    page = built("index.html").replace("<!--policy-->", POLICY.format(policy=policy))
    page = page.replace(STYLE, f"<style>{style}</style>").replace(PROGRAM, "")
    inlined = f'<script type="application/json" id="data">{json}</script>\n<script>{program}</script>\n</body>'
    head, body = page.rsplit("</body>", 1)
    return head + inlined + body


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
