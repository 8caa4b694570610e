"""The live page: text typed, tokens forced, a run followed; and what it refuses to answer."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect
from visitor import ask

from dragoman import models
from dragoman.cli import main
from dragoman.errors import MachineError
from dragoman.models.bag import BagConfig
from dragoman.models.cnn import CnnClassifierConfig
from dragoman.models.mlp import MlpClassifierConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.rnn_classifier import RnnClassifierConfig
from dragoman.runs.lock import only_writer
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of
from dragoman.seeing.live import Subject, serve
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers

REFUSED = ["status of 400"]  # the browser's own word about an answer that says what was wrong


@pytest.fixture
def live(model_folder):
    with serve(Subject(model_folder, "1 2 3 4 5"), 0) as address:
        yield address


# ── in the browser ────────────────────────────────────────────────────────────────────────


def test_typed_text_is_translated(visit, live, reverser):
    with visit(live) as page:
        page.fill("#ask-text", "7 8 9 1")
        page.get_by_role("button", name="Translate").click()
        expect(page.locator("#source-text")).to_contain_text("7 8 9 1")
        assert page.inner_text("#output-text").strip() == reverser.translate(["7 8 9 1"])[0].text


def test_a_text_reaches_the_model_as_it_was_typed(visit, gpt2_folder):
    """Blanks around it and its line ends are tokens of a writer's; neither form takes them away."""
    typed = "  one two\n "
    with serve(Subject(gpt2_folder, "one"), 0) as address, visit(address) as page:
        page.fill("#ask-text", typed)
        page.get_by_role("button", name="Write on").click()
        expect(page.locator("#python")).to_contain_text(repr(typed))
        assert page.evaluate("fetch('/api/page').then(a => a.json()).then(a => a.look.text)") == typed
        page.evaluate("location.hash = 'arithmetic?numbers=model'")
        expect(page.locator("#arithmetic-text")).to_have_value(typed)
        with page.expect_request("**/api/arithmetic") as asked:
            page.press("#arithmetic-text", "Control+Enter")
        assert json.loads(asked.value.post_data) == {"text": typed}
        expect(page.get_by_role("button", name="Calculate")).to_be_enabled()


def test_a_forced_token_changes_what_follows_and_can_be_undone(visit, live, reverser):
    before = reverser.translate(["1 2 3 4 5"])[0].text
    with visit(f"{live}#steps?step=2") as page:
        forces = page.locator("#top button")
        forces.nth(1).click()
        page.wait_for_selector(".piece.forced")
        page.evaluate("location.hash = 'translate'")
        page.wait_for_selector("#output-text")
        after = page.inner_text("#output-text").strip()
        assert after != before
        page.evaluate("location.hash = 'steps'")
        page.get_by_role("button", name="Undo forcing").click()
        expect(page.locator(".piece.forced")).to_have_count(0)
        page.evaluate("location.hash = 'translate'")
        expect(page.locator("#output-text")).to_have_text(before)


def test_the_keyboard_goes_on_where_a_token_was_forced(visit, live):
    """The button that was pressed is gone: the scrubber has the focus, and a line says what came of it."""
    with visit(f"{live}#steps?step=3") as page:
        button = page.locator("#top button").first
        token = button.get_attribute("aria-label").removeprefix("force ")
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#forcing")).to_contain_text(f"{token} is forced at step 3. It writes: ")
        expect(page.locator("#step")).to_be_focused()
        expect(page.locator("main")).to_contain_text("the first 3 tokens, held fast up to the last, which was forced")
        page.get_by_role("button", name="Undo forcing").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#forcing")).to_contain_text("Forcing is undone.")
        expect(page.locator("#step")).to_be_focused()


def test_a_text_of_blanks_is_not_asked_about(visit, live):
    with visit(live) as page:
        page.on("request", lambda asked: pytest.fail(asked.url))
        page.fill("#ask-text", "  \n ")
        page.get_by_role("button", name="Translate").click()
        assert page.locator("#ask-text").evaluate("it => it.validationMessage") == "Type a text first."
        assert page.locator("[role=alert]").count() == 0


def test_a_mistake_is_shown_in_words(visit, live):
    with visit(live, allowed=REFUSED) as page:
        page.fill("#ask-text", "1 " * 300)
        page.get_by_role("button", name="Translate").click()
        page.wait_for_selector("[role=alert]")
        assert "trained on up to 64" in page.inner_text("[role=alert]")


def test_the_page_saves_itself(visit, live, tmp_path):
    with visit(live) as page:
        with page.expect_download() as waiting:
            page.get_by_role("link", name="Save as HTML").click()
        saved = tmp_path / "saved.html"
        waiting.value.save_as(saved)
    with visit(saved.as_uri()) as page:
        assert page.query_selector("#source-text")
        assert page.query_selector("#ask-text") is None  # a saved page has no model behind it


def test_what_is_saved_is_what_was_looked_at_last(model_folder):
    with serve(Subject(model_folder, "1 2 3"), 0) as address:
        assert ask(address, "POST", "/api/look", json.dumps({"text": "4 5", "target": "5 4", "beam": 3}))[0] == 200
        saved = ask(address, "GET", "/save")[1]
        again = json.loads(ask(address, "GET", "/api/page")[1])
    assert '"text":"4 5"' in saved
    assert again["look"]["beams"][0]["width"] == 3
    assert again["title"] == "4 5"
    assert "target='5 4', beam=3" in again["python"]


def test_a_run_is_followed_with_its_sentences(visit, run_folder):
    with serve(Subject(run_folder), 0) as address, visit(f"{address}#training") as page:
        assert "24" in page.inner_text("#progress")
        assert page.inner_text("#flips-heading") == "The dev sentences through the training"
        assert page.locator("article.flip").count() > 0
        assert page.locator("article.flip table[role=grid], article.flip table").count() > 0


def test_the_flip_book_counts_from_one_in_its_address_too(visit, run_folder):
    with serve(Subject(run_folder), 0) as address, visit(f"{address}#training?flip=1") as page:
        told = page.locator("label[for=flip]")
        expect(told).to_contain_text("Validation 1 of 3, at step 8")
        page.focus("#flip")
        page.keyboard.press("ArrowRight")
        expect(told).to_contain_text("Validation 2 of 3, at step 16")
        assert page.evaluate("location.hash") == "#training?flip=2"


def run_of(folder, config, tokenizers, about):
    """A run that has validated once, as the trainer leaves it; its sample is no text for every model."""
    save_model(folder / "model", config, weights_of(models.build(config)), tokenizers, about)
    report = {"kind": "report", "tokens_per_second": 9.0, "gradient_norm": 1.0, "counted": "images", "rate": 1e-4}
    log = [{**report, "step": 4, "seconds": 1.0, "nats_per_token": 2.0}]
    samples = [["image 8", "dog", "cat"]]
    log.append({"kind": "validation", "best": True, "step": 4, "nats_per_token": 2.5, "samples": samples})
    (folder / "run.toml").write_text("[training]\nsteps = 8\n")
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    return folder


@pytest.mark.parametrize("family", ["rnn", "bag", "cnn", "mlp"])
def test_a_model_that_cannot_be_looked_at_has_its_training_on_the_page(visit, tmp_path, family):
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), [("image 8", "image 8")])
    size, images = len(tokenizers.source), {"size": (8, 8), "classes": ("a", "b")}
    config = {
        "rnn": RnnClassifierConfig(vocabulary=size, classes=("a", "b"), width=8, embedding=8),
        "bag": BagConfig(vocabulary=size, classes=("a", "b"), width=8),
        "cnn": CnnClassifierConfig(**images, width=8, layers=2),
        "mlp": MlpClassifierConfig(**images, width=8),
    }[family]
    texts, about = (tokenizers, {"longest": 20}), {"images": {"mean": [0.5], "deviation": [0.5]}}
    run = run_of(tmp_path / "run", config, *(texts if family in ("rnn", "bag") else (None, about)))
    with serve(Subject(run), 0) as address, visit(address) as page:
        expect(page.locator("h2#screen")).to_have_text("Training")
        expect(page.locator("article.flip")).to_contain_text("dog")
        assert page.locator("form.ask").count() == 0
        page.evaluate("location.hash = 'arithmetic'")
        expect(page.locator("h2#screen")).to_have_text("Arithmetic")
        assert page.locator("form.ask").count() == 0


def test_a_run_has_not_finished_while_it_is_being_written(run_folder):
    """Its last report is logged before the last validation, and the mean of its checkpoints comes after that."""
    subject = Subject(run_folder)
    with only_writer(run_folder):
        assert not subject.training().finished
        assert subject.waiting()  # a page asked, and was not told the end
        subject.page_for_a_browser()
        assert subject.waiting()
    assert subject.training().finished
    subject.page_for_a_browser()
    assert not subject.waiting()


def test_an_open_page_shows_the_last_validation_before_its_run_ends(visit, run_folder, tmp_path):
    data = run_folder.parent
    command = [sys.executable, "-m", "dragoman", "train", str(data / "train.tsv"), "--valid", str(data / "valid.tsv")]
    command += ["--steps", "120", "--set", "tokenizer.kind=words", "--set", "model.width=16", "--set", "model.heads=2"]
    command += ["--set", "model.layers=1", "--set", "model.hidden=16", "--set", "training.validate_every=50", "--page"]
    command += ["--threads", "1", "--out", str(tmp_path / "run")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = next(line for line in process.stderr if "the page of this run" in line)
        address = re.search(r"http://127\.0\.0\.1:\d+/", said)[0]
        with visit(f"{address}#training", allowed=["ERR_CONNECTION_REFUSED"]) as page:
            process.stderr.read()
            shows_the_end(page)
    assert process.returncode == 0


def shows_the_end(page):
    told = page.locator("#progress")
    expect(told).to_contain_text("step 120 of 120")
    expect(told).to_contain_text("finished")
    expect(page.locator("label[for=flip]")).to_contain_text("Validation 3 of 3, at step 120")


# ── what it refuses ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "named"),
    [
        ("GET", "/api/page", None, {"Host": "evil.example"}, 403, "answers only under"),
        ("POST", "/api/look", '{"text": "1"}', {"Origin": "http://evil.example"}, 403, "answers only under"),
        ("POST", "/api/look", '{"text": "1"}', {"Content-Type": "text/plain"}, 400, "is JSON"),
        ("POST", "/api/look", "{", {}, 400, "no JSON"),
        ("POST", "/api/look", "{}", {"Content-Length": "abc"}, 400, "is JSON"),
        ("POST", "/api/look", "[1]", {}, 400, "JSON object"),
        ("POST", "/api/look", '{"txt": "1"}', {}, 400, "look.text is missing"),
        ("POST", "/api/look", '{"text": "1", "beam": 99}', {}, 400, "look.beam"),
        ("POST", "/api/look", json.dumps({"text": "x" * 6000}), {}, 400, "look.text"),
        ("POST", "/api/look", '{"text": " "}', {}, 400, "no text"),
        ("GET", "/../run.toml", None, {}, 404, "no /../run.toml"),
        ("POST", "/", "{}", {}, 404, "no /"),
    ],
)  # fmt: skip
def test_what_is_no_question_gets_an_answer_in_words(live, method, path, body, headers, status, named):
    found, text = ask(live, method, path, body, **headers)
    assert found == status
    assert named in json.loads(text)["error"]


def test_a_body_too_large_is_not_read(live):
    connection = http.client.HTTPConnection(live.removeprefix("http://").strip("/"), timeout=60)
    connection.putrequest("POST", "/api/look")
    for name, value in (("Content-Type", "application/json"), ("Content-Length", str(1 << 21))):
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()  # before a byte of it was sent
    assert answer.status == 400
    assert "at most" in answer.read().decode()
    connection.close()


def test_answers_are_for_nobody_else(live):
    connection = http.client.HTTPConnection(live.removeprefix("http://").strip("/"))
    connection.request("GET", "/")
    answer = connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    answer.read()
    connection.close()
    assert "access-control-allow-origin" not in headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(MachineError, match=f"port {port} cannot be used"), serve(Subject(Path("nowhere")), port):
            pass


# ── the commands ──────────────────────────────────────────────────────────────────────────


def test_the_command_serves_until_it_is_stopped(model_folder):
    command = [sys.executable, "-m", "dragoman", "page", str(model_folder), "1 2 3", "--port", "0"]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also where these tests run unheard
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    address = process.stdout.readline().strip()
    status, text = ask(address, "GET", "/api/page")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert status == 200
    assert json.loads(text)["look"]["text"] == "1 2 3"
    assert process.returncode == 130
    assert "Traceback" not in said


def test_training_with_a_page_tells_where_it_is_and_ends_as_without(run_folder, tmp_path):
    """The same weights: the page looks on from a process of its own."""
    data = run_folder.parent
    command = ["train", str(data / "train.tsv"), "--valid", str(data / "valid.tsv")]
    command += ["--steps", "6", "--set", "tokenizer.kind=words", "--set", "model.width=32", "--set", "model.heads=2"]
    command += ["--set", "model.layers=1", "--set", "model.hidden=64", "--threads", "1"]
    assert main([*command, "--out", str(tmp_path / "plain")]) == 0
    with_page = [sys.executable, "-m", "dragoman", *command, "--out", str(tmp_path / "page"), "--page"]
    done = subprocess.run(with_page, stderr=subprocess.PIPE, text=True, check=True)
    told = r"the page of this run: http://127\.0\.0\.1:\d+/"
    assert re.search(told, done.stderr)
    weights = [(tmp_path / name / "model" / "weights.safetensors").read_bytes() for name in ("plain", "page")]
    assert weights[0] == weights[1]
    longer = [word if word != "6" else "8" for word in with_page]
    done = subprocess.run(longer, stderr=subprocess.PIPE, text=True, check=True)
    assert re.search(told, done.stderr)  # a run that goes on has one, too


@pytest.mark.parametrize("ending", ["html", "json", "svg", "png"])
def test_look_writes_what_the_name_says(model_folder, tmp_path, capsys, ending):
    out = tmp_path / f"seen.{ending}"
    assert main(["look", str(model_folder), "1 2 3", "--target", "3 2 1", "--out", str(out)]) == 0
    written = out.read_bytes()
    begins = {"html": b"<!doctype html>", "json": b"{", "svg": b"<?xml", "png": b"\x89PNG"}[ending]
    assert written.startswith(begins)
    if ending == "json":
        assert json.loads(written)["kind"] == "translate"
    told = capsys.readouterr().out
    assert told.strip().endswith(str(out))
    assert "block 2" in told


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["look", "MODEL", "1 2", "--out", "x.gif"], 2, "none of .html, .json, .png, .svg"),
        (["look", "MODEL", "1 2", "--out", "nowhere/x.html"], 2, "make it: mkdir -p nowhere"),
        (["look", "MODEL", "1 2", "--gold", "a-b"], 2, "'a-b' is no link"),
        (["look", "MODEL", ""], 2, "no text"),
        (["look", "nowhere", "1 2"], 3, "there is no model at nowhere"),
        (["look", "MODEL", "1 2", "--beam", "100000"], 2, "1,000"),
        (["look", "MODEL", "1 2", "--number", "3"], 2, "--number 3 says which image"),
        (["page", "nowhere"], 3, "there is no model at nowhere"),
        (["page", "MODEL", "--port", "70000"], 2, "--port 70000 is none"),
    ],
)
def test_mistakes_of_the_commands(model_folder, tmp_path, monkeypatch, capsys, arguments, code, named):
    monkeypatch.chdir(tmp_path)
    assert main([str(model_folder) if word == "MODEL" else word for word in arguments]) == code
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1


def test_a_blank_reference_is_none(model_folder, tmp_path, capsys):
    out = tmp_path / "seen.json"
    assert main(["look", str(model_folder), "1 2 3", "--target", " ", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["reference"] is None
    assert "model error" not in capsys.readouterr().out


def test_what_has_no_attention_is_not_drawn(tmp_path, capsys):
    config = RnnConfig(source_vocabulary=9, target_vocabulary=9, width=8, embedding=8)
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), [("a b c d e", "a b c d e")])
    model = models.build(config)
    about = {"longest": 20, "search": {}, "languages": ["", ""]}
    save_model(tmp_path / "rnn", config, weights_of(model), tokenizers, about)
    assert main(["look", str(tmp_path / "rnn"), "a b", "--out", str(tmp_path / "x.svg")]) == 3
    assert "no attention to draw" in capsys.readouterr().err
    assert main(["look", str(tmp_path / "rnn"), "a b", "--out", str(tmp_path / "x.html")]) == 0


def test_a_page_of_a_model_that_is_being_replaced_shows_the_new_one(model_folder, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(model_folder, copy)
    subject = Subject(copy)
    first = subject.learned()
    assert subject.learned() is first
    os.utime(copy / "config.json", (1, 1))
    assert subject.learned() is not first
