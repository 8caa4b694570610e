"""A real browser, real models, a real run: what the tests of the page share."""

import shutil
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from playwright.sync_api import sync_playwright
from reference import GPT2Config, GPT2LMHeadModel, add_byte_pairs, save

import dragoman
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of
from dragoman.seeing.page import page_data, saved_page
from dragoman.text.generated import generate

FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "these tests need Chromium: make browser"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Open an address as a visitor: no request may leave this machine, and nothing may go wrong in the console."""

    @contextmanager
    def open_page(address, *, allowed=(), **options):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        page = context.new_page()
        wrong = []
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda problem: wrong.append(str(problem)))
        page.on("request", lambda asked: None if is_local(asked.url) else wrong.append(f"request to {asked.url}"))
        page.goto(address)
        page.wait_for_selector("html.ready")
        yield page
        assert [said for said in wrong if not any(word in said for word in allowed)] == []
        context.close()

    return open_page


def is_local(url):
    return url.startswith(("file://", "http://127.0.0.1:", "data:", "blob:"))


@pytest.fixture(scope="session")
def reversed_page(reverser, tmp_path_factory):
    """A saved page of a translator that reverses: the look behind it, and its address."""
    folder = tmp_path_factory.mktemp("saved")
    source = max((s for s, _ in reverser.held_out), key=lambda s: (len(s.split()) < 9, len(s)))
    count = len(source.split())
    output = reverser.translate([source])[0].text
    gold = " ".join(f"{i}-{count - 1 - i}" for i in range(min(count, len(output.split()))) if count - 1 - i >= 0)
    seen = dragoman.look(reverser, source, target=" ".join(source.split()[::-1]), gold=gold if output else None)
    path = folder / "page.html"
    path.write_text(saved_page(page_data(folder, reverser, seen)), encoding="utf-8")
    return SimpleNamespace(look=seen, address=path.as_uri(), path=path)


@pytest.fixture(scope="session")
def model_folder(reverser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reverser") / "model"
    save_model(folder, reverser.model.config, weights_of(reverser.model), reverser.tokenizers, reverser.about)
    return folder


@pytest.fixture(scope="session")
def gpt2_folder(tmp_path_factory):
    """One of Hugging Face."""
    sizes = {"vocab_size": 300, "n_positions": 40, "n_embd": 16, "n_head": 2, "n_layer": 1}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=299, eos_token_id=299))
    return add_byte_pairs(save(model, tmp_path_factory.mktemp("theirs") / "gpt2"))


@pytest.fixture(scope="session")
def gpt2_writer(gpt2_folder):
    """Nothing stands before its texts."""
    return dragoman.load(gpt2_folder)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A run with a log, validations and checkpoints, trained by the command's own job."""
    folder = tmp_path_factory.mktemp("trained")
    pairs, held_out = generate("copy", count=400, seed=1, held_out=20)
    for name, part in (("train", pairs), ("valid", held_out)):
        text = "".join(f"{source}\t{target}\n" for source, target in part)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    settings = {
        "model": {"width": 32, "heads": 2, "layers": 1, "hidden": 64, "dropout": 0.0},
        "training": {"tokens_per_step": 512, "validate_every": 8, "save_every": 8, "report_every": 2},
        "tokenizer": {"kind": "words"},
    }
    return dragoman.train(
        folder / "train.tsv", valid=folder / "valid.tsv", steps=24, out=folder / "run", settings=settings
    )
