"""The saved page, in a real browser, from a disk: every screen, its numbers, its keys; and hostile text in it."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from visitor import cells_of, go, screens_of, tab_to, to_fixed

import dragoman
from dragoman import models
from dragoman.cli import explain as command
from dragoman.decoding.fill import Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.images import ImageModel
from dragoman.decoding.maps import AttentionMap
from dragoman.decoding.translate import Translator
from dragoman.models.bert import BertConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.vit import VitClassifierConfig
from dragoman.seeing.heatmap import Shown, attention_page
from dragoman.seeing.insides import insides_page
from dragoman.seeing.page import page_data, saved_page
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers, learn, learn_tokenizers

SCREENS = ["translate", "attention", "steps", "beam", "arithmetic", "positions", "training"]
HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "שלום", "‮abc", "&amp;", "<b>"]


# ── every screen ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_screen_hinders_anyone(visit, reversed_page, run_folder, tmp_path, scheme):
    """axe finds nothing, on any screen; it must get past the content policy to look at all."""
    whole = tmp_path / "run.html"
    seen = dragoman.look(run_folder, "1 2 3")
    whole.write_text(saved_page(page_data(run_folder, dragoman.load(run_folder), seen)), encoding="utf-8")
    for address, expected in ((reversed_page.address, SCREENS[:-1]), (whole.as_uri(), SCREENS)):
        with visit(address, color_scheme=scheme, bypass_csp=True) as page:
            assert screens_of(page) == expected
            for screen in expected:
                go(page, screen)
                found = Axe().run(page)
                assert found.violations_count == 0, f"{screen}: {found.generate_report()}"


def test_the_policy_lets_the_page_run_and_nothing_else(visit, reversed_page):
    html = reversed_page.path.read_text(encoding="utf-8")
    assert "default-src 'none'" in html
    assert "unsafe" not in re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    with visit(reversed_page.address) as page:
        assert [page.inner_text("h2#screen") for screen in screens_of(page) if not go(page, screen)]


def test_screens_may_be_left_before_they_are_drawn(visit, reversed_page):
    """Heads are drawn when they come into view; that word may arrive when the screen is gone. In each of these frames
    the screen is left a little later than in the one before."""
    leave = """async () => {
        const frame = () => new Promise(done => requestAnimationFrame(done));
        const screens = ["attention", "arithmetic", "positions", "steps", "beam"];
        for (let wait = 0; wait < 100; wait++) {
            location.hash = screens[wait % 5];
            for (let n = 0; n < wait % 3; n++) await frame();
            await new Promise(done => setTimeout(done, wait % 8));
            location.hash = "translate";
            await frame();
        }
    }"""
    with visit(reversed_page.address) as page:
        page.evaluate(leave)
        go(page, "attention")


def test_a_narrow_screen_shows_all_of_it_without_moving_sideways(visit, reversed_page):
    with visit(reversed_page.address) as page:
        page.set_viewport_size({"width": 400, "height": 800})
        for screen in screens_of(page):
            go(page, screen)
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, screen


def test_a_long_word_does_not_move_a_narrow_screen_sideways(visit, tmp_path):
    long = "x" * 120
    translator = untrained([(f"a {long}", f"a {long}")])
    seen = dragoman.look(translator, f"a {long}", target=f"{long} a")
    (tmp_path / "run.toml").write_text("[training]\nsteps = 1\n")
    flips = {"kind": "validation", "best": True, "step": 1, "nats_per_token": 1.0, "samples": [[long, long, long]]}
    (tmp_path / "log.jsonl").write_text(json.dumps(flips) + "\n")
    with visit(saved(tmp_path, translator, seen)) as page:
        page.set_viewport_size({"width": 420, "height": 800})
        for screen in screens_of(page):
            go(page, screen)
            assert page.evaluate("document.documentElement.scrollWidth") <= 420, screen


def untrained(pairs, **about):
    """A translator of whole words that has learned nothing."""
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), pairs)
    size = len(tokenizers.source)
    config = TransformerConfig(source_vocabulary=size, target_vocabulary=size, width=16, heads=2, layers=1, hidden=16)
    return Translator(models.build(config), tokenizers, {"longest": 90, "search": {}, "languages": ["", ""], **about})


def saved(folder, learned, seen):
    path = folder / "saved.html"
    path.write_text(saved_page(page_data(folder, learned, seen)), encoding="utf-8")
    return path.as_uri()


# ── tokens that nobody sees ───────────────────────────────────────────────────────────────


def test_a_token_that_nobody_sees_has_a_name_on_every_screen(visit, tmp_path):
    """A space is read aloud, in every table that is headed by tokens."""
    tokenizer = learn("characters", ["a b c", "d e"], 100, SpecialIds())
    size = len(tokenizer)
    sizes = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}
    writer = TextWriter(models.build(GptConfig(vocabulary=size, longest=40, **sizes)), Tokenizers(tokenizer, tokenizer))
    with visit(saved(tmp_path, writer, dragoman.look(writer, "a b c")), bypass_csp=True) as page:
        for screen in screens_of(page):
            go(page, screen)
            found = Axe().run(page)
            assert found.violations_count == 0, f"{screen}: {found.generate_report()}"
        go(page, "attention")
        named = page.locator("table[role=grid] thead th")
        assert "space" in named.all_text_contents()[2]
        page.locator("table[role=grid] tbody tr").nth(2).locator("td").nth(2).click()
        assert "space (key 3)" in page.inner_text(".large [role=status]")


def test_no_text_in_place_of_a_mask_is_read_as_nothing(visit, tmp_path):
    tokenizer = learn("words", ["a b c d e"], 100, SpecialIds(mask=4))
    config = BertConfig(vocabulary=len(tokenizer), longest=40, width=16, heads=2, layers=1, hidden=16)
    filler = Filler(models.build(config), Tokenizers(tokenizer, tokenizer))
    seen = dragoman.look(filler, "a [MASK] b")
    silent = seen.masks[0].candidates[0].model_copy(update={"token": ""})
    masks = (seen.masks[0].model_copy(update={"candidates": [silent]}),)
    with visit(saved(tmp_path, filler, seen.model_copy(update={"masks": masks})), bypass_csp=True) as page:
        for screen in screens_of(page):
            go(page, screen)
            found = Axe().run(page)
            assert found.violations_count == 0, f"{screen}: {found.generate_report()}"
        go(page, "translate")
        assert page.text_content(".mask tbody th") == "nothing"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_small_pages_hinder_nobody_either(visit, tmp_path, scheme):
    config = VitClassifierConfig(size=(8, 8), patch=4, classes=("a", "b"), width=8, heads=2, layers=1, hidden=8)
    model = ImageModel(models.build(config), {"images": {"mean": [0.5], "deviation": [0.5]}})
    weights = torch.tensor([[[0.25, 0.75], [1.0, 0.0]]])
    found = AttentionMap("decoder.blocks.0.source_attention", weights, ["x", "y"], ["a", "b"])
    pages = {
        "attention": attention_page("a b → x y", "a note", [Shown("a b", "x y", [found])]),
        "insides": insides_page(model.look(np.zeros((8, 8, 1), np.uint8)), "an image"),
    }
    for name, html in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(html.replace('<html lang="en"', '<html lang="en" class="ready"'), encoding="utf-8")
        with visit(path.as_uri(), color_scheme=scheme, bypass_csp=True) as page:
            page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true })")
            found_wrong = Axe().run(page)
            assert found_wrong.violations_count == 0, found_wrong.generate_report()


# ── long texts, and others ────────────────────────────────────────────────────────────────


def test_attention_over_a_long_text_keeps_its_words_and_numbers(visit, tmp_path):
    words = [f"w{n}" for n in range(60)]
    translator = untrained([(" ".join(words), " ".join(words))], search={"longest_ratio": 1.0, "longest_extra": 0})
    seen = dragoman.look(translator, " ".join(words))
    layer = seen.attention[0]
    with visit(saved(tmp_path, translator, seen)) as page:
        go(page, "attention", "?kind=encoder&layer=1&head=1")
        picture = page.locator(".picture").bounding_box()
        assert picture["width"] == picture["height"]  # as many queries as keys: square cells
        assert page.locator(".names.above > span").all_inner_texts() == seen.source.pieces
        assert page.locator(".names.beside > span").all_inner_texts() == seen.source.pieces
        page.focus("[role=application]")
        page.keyboard.press("Control+End")
        assert page.locator(".around tbody th").last.inner_text() == seen.source.pieces[-1]
        shown = [float(cell) for cell in page.locator(".around tbody tr").last.locator("td").all_inner_texts()]
        assert shown == layer.weights.unpack()[0, -1, -len(shown) :].tolist()
        seen_part = page.locator(".cursor").evaluate(
            "it => { const [a, b] = [it, it.closest('.board')].map(one => one.getBoundingClientRect());"
            " return a.right <= b.right + 1 && a.bottom <= b.bottom + 1 }"
        )
        assert seen_part  # the picture scrolled along


def test_a_word_that_the_model_does_not_know_keeps_its_name_and_its_side(visit, tmp_path):
    translator = untrained([("a b", "a b")])
    seen = dragoman.look(translator, "שלום עולם a", force=[4])
    assert seen.translation.words.source == ["שלום", "עולם", "a"]
    with visit(saved(tmp_path, translator, seen)) as page:
        first, second = (page.locator("#source-words button").nth(n).bounding_box()["x"] for n in (0, 1))
        assert first > second  # it runs from right to left
        page.locator("#source-words button").nth(0).focus()
        page.keyboard.press("ArrowLeft")
        assert "עולם" in focused(page)


def test_an_output_of_nothing_says_so(visit, tmp_path):
    translator = untrained([("a b", "a b")])
    seen = dragoman.look(translator, "a b", force=[translator.tokenizers.special.end])
    assert seen.translation.text == ""
    with visit(saved(tmp_path, translator, seen)) as page:
        assert page.inner_text("#output-text") == "(nothing)"
        assert "(nothing)" in page.inner_text("#nbest")


def test_the_flip_book_leaves_out_what_a_writer_has_none_of(visit, tmp_path):
    (tmp_path / "run.toml").write_text("[training]\nsteps = 1\n")
    line = {"kind": "validation", "best": True, "step": 1, "nats_per_token": 1.0, "samples": [["", "It goes on", ""]]}
    (tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n")
    with visit(f"{saved(tmp_path, None, None)}#training") as page:
        assert page.locator("article.flip dt").all_inner_texts() == ["output at step 1"]


def test_numbers_beside_a_chart_are_whole(visit, tmp_path):
    """The narrowest label of a chart begins within it: uPlot draws it ending at the axis, as far left as it is long."""
    report = {"kind": "report", "tokens_per_second": 9.0, "gradient_norm": 1.0, "counted": "tokens"}
    log = [{**report, "step": n, "seconds": n, "nats_per_token": 5.0, "rate": n * 1.25e-5} for n in range(1, 5)]
    (tmp_path / "run.toml").write_text("[training]\nsteps = 4\n")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    with visit(f"{saved(tmp_path, None, None)}#training") as page:
        chart = page.locator("figure.chart").filter(has_text="Learning rate").locator("canvas")
        inked = chart.evaluate(
            """canvas => {
              const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              const inked = x => [...Array(height).keys()].some(y => data[4 * (y * width + x) + 3]);
              return [...Array(width).keys()].findIndex(inked);
            }"""
        )
        assert inked > 1


# ── the numbers ───────────────────────────────────────────────────────────────────────────


def test_the_grid_prints_what_python_has(visit, reversed_page):
    look = reversed_page.look
    with visit(reversed_page.address) as page:
        for layer in look.attention:
            for head in range(layer.weights.shape[0]):
                go(page, "attention", f"?kind={layer.kind}&layer={layer.number}&head={head + 1}")
                shown = cells_of(page, layer.weights.shape[1:])
                wanted = layer.weights.unpack()[head]
                for q, row in enumerate(shown):
                    hidden = len(row) if layer.visible is None else layer.visible[q]
                    assert [float(cell) for cell in row] == wanted[q].tolist()
                    assert row[:hidden] == [f"{value:.4f}" for value in wanted[q][:hidden].tolist()]
                    assert all(cell == "0" for cell in row[hidden:])
                    assert sum(map(float, row)) == pytest.approx(1, abs=1e-3)


def test_scores_words_and_the_mask_can_be_switched(visit, reversed_page):
    layer = next(one for one in reversed_page.look.attention if one.kind == "decoder")
    cross = next(one for one in reversed_page.look.attention if one.kind == "cross")
    with visit(reversed_page.address) as page:
        go(page, "attention", "?kind=decoder&layer=1&head=1&view=scores")
        scores = cells_of(page, layer.scores.shape[1:])
        assert scores[0][1:] == ["−∞"] * (len(scores[0]) - 1)
        assert float(scores[1][0]) == layer.scores.unpack()[0, 1, 0]
        go(page, "attention", "?kind=decoder&layer=1&head=1&mask=off")
        open_rows = cells_of(page, layer.weights.shape[1:])
        assert [float(cell) for cell in open_rows[0]] == layer.unmasked.unpack()[0, 0].tolist()
        go(page, "attention", "?kind=cross&layer=1&head=1&unit=words")
        words = cells_of(page, cross.by_word.shape[1:])
        assert [float(cell) for cell in words[0]] == cross.by_word.unpack()[0, 0].tolist()


def test_the_best_head_is_named_and_shown(visit, reversed_page):
    best = reversed_page.look.gold.best
    with visit(reversed_page.address) as page:
        go(page, "attention")
        named = page.inner_text("#best-head")
        assert to_fixed(best.aer, 3) in named
        page.get_by_role("button", name="Show this head").click()
        number = reversed_page.look.attention[best.layer].number
        assert page.inner_text("#head-heading") == f"Block {number}, head {best.head + 1}"


def test_step_k_writes_token_k_after_the_others(visit, reversed_page):
    look = reversed_page.look
    count = len(look.steps)
    with visit(reversed_page.address) as page:
        go(page, "steps")
        for k, step in enumerate(look.steps, start=1):
            go(page, "steps", f"?step={k}")
            expect(page.locator("label[for=step]")).to_contain_text(f"Step {k} of {count}: {k - 1} token")
            assert page.get_attribute("#step", "aria-valuetext").startswith(f"step {k}: after")
            assert page.text_content("#top caption") == f"The likeliest tokens at step {k}"
            assert pieces_in(page, "#prefix") == look.written.pieces[: k - 1]
            assert pieces_in(page, "#now") == [step.token]
            assert page.inner_text("#step-log-prob") == to_fixed(step.log_prob, 3)
            first = page.inner_text("#top tbody tr:first-child")
            assert to_fixed(100 * step.top[0].probability, 2) in first


def pieces_in(page, selector):
    return [one.inner_text() for one in page.query_selector_all(f"{selector} .piece")]


def test_steps_and_the_tree_count_alike(visit, reversed_page):
    """The same number for the same token, wherever it is read; what stands before all steps has none."""
    with visit(reversed_page.address) as page:
        go(page, "beam")
        [start, *best] = page.locator("[role=tree]").first.locator(".node.best").all()
        assert "before step 1" in start.get_attribute("aria-label")
        in_tree = [re.match(r"“(.*)”, step (\d+),", node.get_attribute("aria-label")).groups() for node in best]
        go(page, "beam", "?as=table")
        [_, *rows] = page.locator("table.plain").first.locator("tr.chosen").all()
        in_table = [tuple(row.locator("th, td").all_inner_texts()[1::-1]) for row in rows]
        in_steps = []
        for k in range(1, len(reversed_page.look.steps) + 1):
            go(page, "steps", f"?step={k}")
            expect(page.locator("label[for=step]")).to_contain_text(f"Step {k} ")
            in_steps += [(page.inner_text("#now"), str(k))]
        assert page.locator("button[aria-label='one step on']").is_disabled()
        page.get_by_role("button", name="one step back").click()
        assert page.url.endswith(f"step={k - 1}")
    assert in_tree == in_table == in_steps


def test_a_text_that_nothing_stands_before_is_shown_from_its_first_token(visit, gpt2_writer, tmp_path):
    seen = dragoman.look(gpt2_writer, "the cat sat")
    path = tmp_path / "writer.html"
    path.write_text(saved_page(page_data(tmp_path, gpt2_writer, seen)), encoding="utf-8")
    text = gpt2_writer.tokenizer.pieces(gpt2_writer.read("the cat sat"))
    with visit(f"{path.as_uri()}#steps") as page:
        assert page.inner_text("label[for=step]").startswith(f"Step 1 of {len(seen.steps)}: 1 token before it")
        assert (pieces_in(page, "#prefix"), pieces_in(page, "#now")) == (text[:1], text[1:2])
        assert pieces_in(page, ".line")[: len(text)] == text
        assert f"the first {len(text)} tokens are the given text" in page.inner_text("#given")
        assert page.locator(".piece.given").count() == len(text)


def test_the_leaves_of_the_beam_are_the_n_best(visit, reversed_page):
    look = reversed_page.look
    with visit(reversed_page.address) as page:
        assert page.locator("#nbest tbody tr").count() == len(look.translation.nbest)
        go(page, "beam")
        tree = page.locator("[role=tree]").first
        ranks = [int(re.match(r"\d+", rank)[0]) for rank in tree.locator(".rank").all_inner_texts()]
        assert sorted(ranks) == [rank + 1 for rank in range(len(look.translation.nbest))]
        assert tree.locator("[role=treeitem]").count() == len(look.beams[0].nodes)


def test_pointing_at_a_word_lights_its_sources(visit, reversed_page):
    words = reversed_page.look.translation.words
    with visit(reversed_page.address) as page:
        for place, links in enumerate(words.links):
            page.locator("#target-words button").nth(place).hover()
            lit = page.eval_on_selector_all(
                "#source-words button", "all => all.flatMap((one, i) => one.classList.contains('lit') ? [i] : [])"
            )
            assert lit == links
        assert words.source[words.least] in page.inner_text("#least-covered")


def test_the_verdict_on_the_reference_is_shown(visit, reversed_page):
    with visit(reversed_page.address) as page:
        assert reversed_page.look.reference.sentence in page.inner_text("main")


def test_a_score_that_a_validation_lacks_is_a_gap(visit, tmp_path):
    """Nothing is drawn across it, nor down to zero; the loss of each validation is there, so its curve has no gap."""
    report = {"kind": "report", "tokens_per_second": 9.0, "gradient_norm": 1.0, "counted": "tokens", "rate": 1e-4}
    validation = {"kind": "validation", "best": True, "samples": []}
    log = [{**report, "step": n, "seconds": n, "nats_per_token": 5 - n / 10} for n in range(1, 26)]
    log += [{**validation, "step": 5 * n, "nats_per_token": 6 - n / 2, "bleu": 10.0 + n} for n in range(1, 6)]
    del log[-3]["bleu"]
    (tmp_path / "run.toml").write_text("[training]\nsteps = 30\n")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    path = tmp_path / "run.html"
    path.write_text(saved_page(page_data(tmp_path, None, None)), encoding="utf-8")
    with visit(f"{path.as_uri()}#training") as page:
        loss, bleu = (page.locator("figure.chart").filter(has_text=name) for name in ("Loss", "BLEU"))
        assert widest_hole(loss, 1) < 0.1  # dashes are narrower
        assert widest_hole(bleu, 0) > 0.3  # from the second of five to the fourth
        bleu.get_by_role("button").click()
        assert bleu.locator("td").all_inner_texts() == ["11", "12", "–", "14", "15"]


def widest_hole(chart, series):
    """Between columns of a canvas that a curve's colour is in, as a share of all from its first to its last."""
    colour = chart.locator(".legend line").nth(series).get_attribute("stroke")
    columns = chart.locator("canvas").evaluate(
        r"""(canvas, colour) => {
          const wanted = colour.match(/\w\w/g).map(part => parseInt(part, 16));
          const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const is = place => wanted.every((part, i) => Math.abs(data[4 * place + i] - part) < 20);
          return [...Array(width).keys()].filter(x => [...Array(height).keys()].some(y => is(y * width + x)));
        }""", colour,
    )  # fmt: skip
    assert len(columns) > 50
    return max(right - left for left, right in pairwise(columns)) / (columns[-1] - columns[0])


# ── by keyboard alone ─────────────────────────────────────────────────────────────────────


def focused(page):
    return page.evaluate("document.activeElement.innerText")


def test_a_journey_through_five_screens_needs_no_mouse(visit, reversed_page):
    look = reversed_page.look
    with visit(reversed_page.address) as page:
        tab_to(page, "#target-words button")
        page.keyboard.press("ArrowRight")
        assert look.translation.words.target[1] in focused(page)
        assert look.translation.words.target[1] in page.inner_text("#links-status")
        open_by_key(page, "attention")
        tab_to(page, "table[role=grid] td")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        assert "query 2" in page.inner_text(".large [role=status]")
        page.keyboard.press("]")
        assert page.inner_text("#head-heading").endswith("head 2")
        open_by_key(page, "steps")
        tab_to(page, "#step")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#prefix .piece")).to_have_count(1)
        open_by_key(page, "beam")
        tab_to(page, "[role=treeitem]")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.getAttribute('role')") == "treeitem"
        assert "step 1" in page.evaluate("document.activeElement.getAttribute('aria-label')")
        open_by_key(page, "arithmetic")
        tab_to(page, "input[type=radio]")
        page.keyboard.press("ArrowRight")
        tab_to(page, ".terms table[role=grid] td")
        page.keyboard.press("ArrowRight")
        assert "=" in page.inner_text("#expansion")


def open_by_key(page, screen):
    """Back to the list of screens, along it, and in."""
    tab_to(page, "nav[aria-label=Screens] a", "Shift+Tab")
    page.keyboard.press("Home")
    for _ in range(8):
        if page.evaluate("document.activeElement.getAttribute('href')").partition("?")[0] == f"#{screen}":
            break
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"nav[aria-label=Screens] a[href^='#{screen}'][aria-current=page]")


# ── recurrent models ──────────────────────────────────────────────────────────────────────


def test_recurrent_attention_is_worked_through_on_the_page(visit, tmp_path):
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), [("a b c d e", "f g h i j")])
    size = len(tokenizers.source)
    sizes = {"source_vocabulary": size, "target_vocabulary": size, "width": 8, "embedding": 8}
    translator = Translator(models.build(RnnConfig(**sizes, attention="additive")), tokenizers, {"longest": 40})
    data = page_data(tmp_path, translator, dragoman.look(translator, "a b c"))
    [own] = [one for one in data.arithmetic if one.source == "model"]
    [terms] = [stage.terms for stage in own.stages if stage.terms]
    path = tmp_path / "rnn.html"
    path.write_text(saved_page(data), encoding="utf-8")
    with visit(path.as_uri(), bypass_csp=True) as page:
        go(page, "arithmetic", "?numbers=model")
        expect(page.locator("section.stage h3")).to_have_text(
            [f"{number}. {stage.title}" for number, stage in enumerate(own.stages, start=1)]
        )
        page.locator(".terms table[role=grid] tbody tr").last.locator("td").nth(1).click()
        told = page.inner_text("#expansion")
        assert told.startswith(f"v · tanh(q({terms.rows[-1]}) + k(b)) =")
        assert told.endswith(f"= {command.number(terms.sums.unpack()[-1, 1].item(), terms.sums.digits)}")
        lines = page.locator(".terms table.plain tbody tr")
        assert lines.locator("th").all_inner_texts() == ["q", "k", "tanh(q + k)", "v", "v · tanh(q + k)"]
        products = [float(cell) for cell in lines.last.locator("td").all_inner_texts()]
        assert products == terms.products.unpack()[-1, 1].tolist()
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


# ── hostile text ──────────────────────────────────────────────────────────────────────────


def test_tokens_are_text_whatever_they_say(visit, tmp_path):
    pairs = [(" ".join(HOSTILE), " ".join(reversed(HOSTILE)))]
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), pairs)
    size = len(tokenizers.source)
    config = TransformerConfig(source_vocabulary=size, target_vocabulary=size, width=16, heads=2, layers=1, hidden=16)
    translator = Translator(models.build(config), tokenizers, {"longest": 40, "search": {}, "languages": ["", ""]})
    seen = dragoman.look(translator, " ".join(HOSTILE), target=" ".join(HOSTILE))
    path = tmp_path / "hostile.html"
    path.write_text(saved_page(page_data(tmp_path, translator, seen)), encoding="utf-8")
    with visit(path.as_uri()) as page:
        page.on("dialog", lambda _: pytest.fail("a token was run"))
        for screen in screens_of(page):
            go(page, screen)
            assert page.evaluate("document.querySelectorAll('img, b[onerror], main script').length") == 0
        go(page, "translate")
        assert "<img" in page.inner_text("#source-text")
        assert "שלום" in page.inner_text("#source-text")
