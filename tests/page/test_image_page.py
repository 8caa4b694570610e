"""The page of a vit, in a real browser: saved and live, its numbers and its keys."""

import base64
import io
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image, ImageDraw
from playwright.sync_api import expect
from visitor import ask, cells_of, go, screens_of, tab_to, to_fixed

import dragoman
from dragoman import models
from dragoman.cli.page import family_of
from dragoman.decoding.images import ImageClassifier, ImageSegmenter
from dragoman.models.vit import VitClassifierConfig, VitSegmenterConfig
from dragoman.seeing import picture
from dragoman.seeing.live import serve
from dragoman.seeing.live_images import LARGEST_IMAGE, ImageSubject
from dragoman.seeing.page import page_data, saved_page

SCREENS = ["see", "attention", "arithmetic", "positions", "training"]
VIT = {"size": (12, 12), "channels": 3, "patch": 4, "width": 16, "heads": 2, "layers": 2, "hidden": 16}
ABOUT = {"images": {"mean": [0.5] * 3, "deviation": [0.25] * 3}, "masks": [0, 7]}

REFUSED = ["status of 400"]  # the browser's own word about an answer that says what was wrong


def draw(number):
    """A bright square, or a dark one, somewhere on grey."""
    image = Image.new("RGB", (12, 12), (128, 128, 128))
    left, top = np.random.default_rng(number).integers(0, 7, 2).tolist()
    ImageDraw.Draw(image).rectangle((left, top, left + 5, top + 5), fill=("white", "black")[number % 2])
    return np.asarray(image)


@pytest.fixture(scope="module")
def vit_run(tmp_path_factory):
    """A run with a log and validation images, trained by the command's own job on a few drawn pictures."""
    folder = tmp_path_factory.mktemp("drawn")
    for name, numbers in (("train", range(60)), ("valid", range(60, 72))):
        labels = [("bright", "dark")[number % 2] for number in numbers]
        np.savez(folder / f"{name}.npz", images=np.stack([draw(number) for number in numbers]), labels=labels)
    settings = {
        "model": {"patch": 4, "width": 16, "heads": 2, "layers": 2, "hidden": 16, "dropout": 0.0},
        "training": {"images_per_step": 10, "validate_every": 10, "save_every": 10, "report_every": 5},
    }
    return dragoman.train(
        folder / "train.npz", valid=folder / "valid.npz", family="vit", steps=20, out=folder / "run", settings=settings
    )


@pytest.fixture(scope="module")
def seen_page(vit_run, tmp_path_factory):
    model = dragoman.load(vit_run)
    seen = dragoman.look(model, draw(3))
    path = tmp_path_factory.mktemp("seen") / "seen.html"
    path.write_text(saved_page(page_data(vit_run, model, seen)), encoding="utf-8")
    return SimpleNamespace(look=seen, address=path.as_uri())


def saved(model, folder):
    seen = dragoman.look(model, draw(5))
    path = folder / "saved.html"
    path.write_text(saved_page(page_data(folder, model, seen)), encoding="utf-8")
    return seen, path.as_uri()


# ── saved ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_screen_of_an_image_hinders_anyone(visit, seen_page, scheme):
    with visit(seen_page.address, color_scheme=scheme, bypass_csp=True) as page:
        assert screens_of(page) == SCREENS
        for screen, state in [*((screen, "") for screen in SCREENS), ("attention", "?as=matrix")]:
            go(page, screen, state)
            found = Axe().run(page)
            assert found.violations_count == 0, f"{screen}: {found.generate_report()}"


def test_a_narrow_screen_shows_all_of_an_image(visit, seen_page):
    with visit(seen_page.address) as page:
        page.set_viewport_size({"width": 400, "height": 800})
        for screen in SCREENS:
            go(page, screen)
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, screen


def test_the_answer_and_the_rollout_are_printed(visit, seen_page):
    picture = seen_page.look.image
    with visit(seen_page.address) as page:
        told = page.locator("#told tbody tr")
        assert told.locator("th").all_inner_texts() == [one.name for one in picture.told]
        assert told.locator("td:last-child").all_inner_texts() == [one.value for one in picture.told]
        assert page.evaluate("document.getElementById('image').naturalWidth") == 12
        shown = page.locator("table.cells tbody tr")
        rows = [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in shown.all()]
        assert rows == picture.rollout.unpack().tolist()


def test_each_patch_shows_where_it_looks(visit, seen_page):
    """Chosen by address, by click and by arrow; the numbers are those of its row."""
    with visit(seen_page.address) as page:
        for layer in seen_page.look.attention:
            for head in range(2):
                for query in (0, 4, 9):
                    go(page, "attention", f"?layer={layer.number}&head={head + 1}&query={query}")
                    wanted = layer.weights.unpack()[head, query]
                    assert numbers_in(page) == wanted[1:].unflatten(0, (3, 3)).tolist()
                    assert f"at the class token {to_fixed(100 * wanted[0].item(), 2)} %" in page.inner_text("#looks")
        mean = seen_page.look.attention[1].mean.unpack()
        go(page, "attention", "?layer=2&of=mean&query=5")
        assert numbers_in(page) == mean[5, 1:].unflatten(0, (3, 3)).tolist()
        page.locator(".patches td").nth(6).click()
        assert "Patch 3,1 looks most" in page.inner_text("#looks")
        assert numbers_in(page) == mean[7, 1:].unflatten(0, (3, 3)).tolist()


def numbers_in(page):
    shown = page.locator(".large table.cells tbody tr")
    return [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in shown.all()]


def test_the_matrix_holds_every_word_and_its_scores(visit, seen_page):
    [layer, _] = seen_page.look.attention
    with visit(seen_page.address) as page:
        go(page, "attention", "?as=matrix&layer=1&head=2")
        shown = cells_of(page, (10, 10))
        assert [[float(cell) for cell in row] for row in shown] == layer.weights.unpack()[1].tolist()
        page.get_by_role("radio", name="scores").check()
        assert float(cells_of(page, (10, 10))[0][3]) == layer.scores.unpack()[1, 0, 3]


def test_a_patch_is_chosen_without_a_mouse(visit, seen_page):
    with visit(f"{seen_page.address}#attention") as page:
        tab_to(page, ".patches td")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        assert page.url.endswith("query=5")
        assert page.inner_text("#looks").startswith("Patch 2,2 looks most at patch")
        assert page.evaluate("document.activeElement.className") == "chosen"
        page.keyboard.press("Home")
        assert page.evaluate("document.activeElement.id") == "class-token"
        assert page.inner_text("#looks").startswith("The class token looks most")
        page.keyboard.press("]")
        assert page.inner_text("#head-heading") == "Block 1, head 2"
        go(page, "positions")
        tab_to(page, ".patches td")
        page.keyboard.press("ArrowUp")
        assert "place 1,2" in page.inner_text("#place")


def test_places_are_compared_as_python_compares_them(visit, vit_run, seen_page):
    cosines = page_data(vit_run, dragoman.load(vit_run), None).positions.places.cosines.unpack()
    with visit(seen_page.address) as page:
        for place in (1, 9):
            go(page, "positions", f"?place={place}")
            shown = page.locator("section[aria-labelledby=places-heading] table.cells tbody tr")
            rows = [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in shown.all()]
            assert rows == cosines[place - 1].unflatten(0, (3, 3)).tolist()


def test_the_flip_book_speaks_of_images(visit, seen_page):
    with visit(seen_page.address) as page:
        go(page, "training")
        assert page.inner_text("#flips-heading") == "The dev images through the training"
        assert page.get_by_role("article", name="image 1").count() == 1


def test_a_segmenter_shows_what_is_where_and_its_patches_ask(visit, tmp_path):
    config = VitSegmenterConfig(**VIT, classes=("<b>sky", "ground"))
    seen, address = saved(ImageSegmenter(models.build(config), ABOUT), tmp_path)
    with visit(address, bypass_csp=True) as page:
        shown = page.locator("table.cells tbody td").all_inner_texts()
        assert shown == seen.image.area.patches
        assert page.locator(".legend li").all_inner_texts() == ["<b>sky", "ground"]
        page.get_by_role("radio", name="labels", exact=True).check()
        assert page.locator(".patches img").count() == 1
        assert page.locator("#rollout-heading").count() == 0
        assert Axe().run(page).violations_count == 0
        go(page, "attention")
        assert page.inner_text("#looks").startswith("Patch 2,2 looks most")
        assert "goes nowhere" in page.inner_text("main")


def test_what_was_left_out_is_said_and_the_mean_can_be_asked(visit, tmp_path, monkeypatch):
    monkeypatch.setattr(picture, "MOST", 1)
    config = VitClassifierConfig(**VIT, classes=("a", "b"))
    seen, address = saved(ImageClassifier(models.build(config), ABOUT), tmp_path)
    first = seen.attention[0]
    with visit(f"{address}#attention?head=2", bypass_csp=True) as page:
        assert page.inner_text("#left-out") == seen.image.left_out
        assert page.inner_text("#looks").startswith("The class token looks")
        assert numbers_in(page) == first.weights.unpack()[1, 0, 1:].unflatten(0, (3, 3)).tolist()
        assert Axe().run(page).violations_count == 0
        page.locator(".patches td").nth(1).click()
        assert page.inner_text("#head-heading") == "Block 1, mean of its heads"
        assert page.inner_text("#looks").startswith("Patch 1,2 looks")
        assert numbers_in(page) == first.mean.unpack()[2, 1:].unflatten(0, (3, 3)).tolist()
        page.keyboard.press("]")
        assert page.inner_text("#head-heading") == "Block 1, head 1"
        go(page, "attention", "?as=matrix")
        assert [float(cell) for cell in cells_of(page, (1, 10))[0]] == first.weights.unpack()[0, 0].tolist()


# ── live ──────────────────────────────────────────────────────────────────────────────────


def as_file(image, kind="PNG"):
    whole = io.BytesIO()
    Image.fromarray(image).save(whole, format=kind)
    return whole.getvalue()


def test_a_run_begins_with_its_validation_and_another_image_is_chosen(visit, vit_run, tmp_path):
    with serve(ImageSubject(vit_run), 0) as address, visit(address, bypass_csp=True) as page:
        assert page.inner_text("h1") == "image 1 of the validation data"
        assert Axe().run(page).violations_count == 0
        file = {"name": "a<b>.png", "mimeType": "image/png", "buffer": as_file(draw(4))}
        page.set_input_files("#ask-image", file)
        page.get_by_role("button", name="Look at it").click()
        expect(page.locator("h1")).to_have_text("a<b>.png")
        [said] = dragoman.load(vit_run).classify([draw(4)])
        assert page.inner_text("#told tbody tr:first-child td:last-child") == f"{100 * said.probability:.2f} %"
        go(page, "arithmetic", "?numbers=model")
        assert page.locator("#arithmetic-text").count() == 0  # the image is chosen on its own screen
        assert "pixels in a row" in page.inner_text("main")
        with page.expect_download() as waiting:
            page.get_by_role("link", name="Save as HTML").click()
        waiting.value.save_as(tmp_path / "saved.html")
    with visit((tmp_path / "saved.html").as_uri()) as page:
        assert page.inner_text("h1") == "a<b>.png"
        assert page.query_selector("#ask-image") is None


def test_a_damaged_image_is_refused_in_words(visit, vit_run):
    with serve(ImageSubject(vit_run), 0) as address, visit(address, allowed=REFUSED) as page:
        page.set_input_files("#ask-image", {"name": "x.png", "mimeType": "image/png", "buffer": b"no image"})
        page.get_by_role("button", name="Look at it").click()
        expect(page.locator("[role=alert]")).to_contain_text("the image x.png cannot be read (it is no PNG or JPEG)")
        page.set_input_files(
            "#ask-image", {"name": "y.png", "mimeType": "image/png", "buffer": bytes(LARGEST_IMAGE + 1)}
        )
        page.get_by_role("button", name="Look at it").click()
        expect(page.locator("[role=alert]")).to_contain_text("12,582,912 are the most")


def test_the_command_names_the_first_image(vit_run, tmp_path):
    (tmp_path / "b.jpg").write_bytes(as_file(draw(7), "JPEG"))
    with serve(ImageSubject(vit_run, str(tmp_path / "b.jpg")), 0) as address:
        found = json.loads(ask(address, "GET", "/api/page")[1])
    assert found["look"]["image"]["name"] == "b.jpg"
    assert found["look"] == json.loads(dragoman.look(vit_run, tmp_path / "b.jpg").model_dump_json())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "/etc/passwd"}, "there is no image to look at"),
        ({"text": "x", "image": "***"}, "no base64"),
        ({"text": "x.png", "image": base64.b64encode(b"GIF89a").decode()}, "it is no PNG or JPEG"),
        ({"text": "x" * 501, "image": "AAAA"}, "look.text"),
        ({"image": "AAAA", "beam": 3}, "look.beam"),
    ],
)
def test_only_an_image_is_a_question(vit_run, body, said):
    """No path that a browser names is opened."""
    with serve(ImageSubject(vit_run), 0) as address:
        status, told = ask(address, "POST", "/api/look", json.dumps(body))
    assert status == 400
    assert said in json.loads(told)["error"]


def test_a_folder_without_a_run_waits_for_an_image(visit, vit_run):
    with serve(ImageSubject(vit_run / "model"), 0) as address, visit(address) as page:
        assert "No image has been looked at yet" in page.inner_text("main")
        assert screens_of(page)[0] == "see"
        page.set_input_files("#ask-image", {"name": "c.png", "mimeType": "image/png", "buffer": as_file(draw(2))})
        page.get_by_role("button", name="Look at it").click()
        expect(page.locator("#image")).to_have_attribute("alt", "c.png")


def test_a_run_that_has_saved_no_model_yet_shows_its_training_and_then_its_image(visit, vit_run, tmp_path):
    """The family is read from its record, since there is no model to ask."""
    shutil.copytree(vit_run, tmp_path / "run", ignore=shutil.ignore_patterns("model", "checkpoints"))
    assert family_of(tmp_path / "run") == "vit"
    with serve(ImageSubject(tmp_path / "run"), 0) as address:
        with visit(f"{address}#training") as page:
            assert screens_of(page) == ["arithmetic", "training"]
        shutil.copytree(vit_run / "model", tmp_path / "run" / "model")
        with visit(address) as page:
            assert screens_of(page) == SCREENS
            assert page.inner_text("h1") == "image 1 of the validation data"
