"""Search and translation, on a model that has learned: its outputs vary in tokens and in length."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.decoding.beam import SearchConfig, beam_search
from dragoman.decoding.finish import length_penalty
from dragoman.decoding.maps import align_words
from dragoman.decoding.sample import SampleConfig, keep_likely
from dragoman.decoding.split import split_text
from dragoman.decoding.translate import Translator, as_strings
from dragoman.errors import DataError, UsageError
from dragoman.text.batches import make_source


@pytest.fixture(scope="module")
def sources(reverser):
    return [source for source, _ in reverser.held_out]


def test_the_model_has_learned_and_its_outputs_vary(reverser, sources):
    outputs = [t.text for t in reverser.translate(sources, beam=4)]
    right = sum(output == target for output, (_, target) in zip(outputs, reverser.held_out, strict=True))
    assert 0.3 * len(outputs) < right < len(outputs)
    assert len(set(outputs)) > 0.9 * len(outputs)
    assert len({len(output.split()) for output in outputs}) > 5


@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_does_not_depend_on_its_neighbours(reverser, sources, beam):
    together = {source: t.text for source, t in zip(sources, reverser.translate(sources, beam=beam), strict=True)}
    shuffle = random.Random(0)
    for size in (1, 2, 7, 50):
        chosen = shuffle.sample(sources, 50)
        for start in range(0, 50, size):
            some = chosen[start : start + size]
            assert [t.text for t in reverser.translate(some, beam=beam)] == [together[source] for source in some]


def test_results_come_in_the_order_of_the_input(reverser, sources):
    forward = [t.text for t in reverser.translate(sources[:40])]
    assert [t.text for t in reverser.translate(sources[:40][::-1])] == forward[::-1]


def test_a_beam_finds_nothing_less_likely_than_greedy(reverser, sources):
    """Where beam 8 ends elsewhere than greedy search, it has the better score."""
    narrow, wide = reverser.translate(sources, beam=1), reverser.translate(sources, beam=8)
    worse = sum(w.score < n.score - 1e-4 for n, w in zip(narrow, wide, strict=True))
    assert worse <= 0.02 * len(sources)
    assert any(w.text != n.text for n, w in zip(narrow, wide, strict=True))


def test_every_hypothesis_rescored_afresh_keeps_its_score(reverser, sources):
    model, tokens = reverser.model, reverser.tokenizers
    for source in sources[:20]:
        [best] = reverser.translate([source], beam=4, nbest=4)
        for one in [best, *best.alternatives]:
            [ids], [wanted] = tokens.source.encode([source]), tokens.target.encode([one.text])
            state = model.encode(*make_source([ids], tokens.special))
            logits = model.decode(torch.tensor([[tokens.special.start, *wanted]]), state).logits[0].log_softmax(-1)
            log_prob = logits[range(len(wanted) + 1), [*wanted, tokens.special.end]].sum().item()
            assert one.log_prob == pytest.approx(log_prob, abs=1e-3)
            assert one.score == pytest.approx(log_prob / length_penalty(len(wanted) + 1, 1.0), abs=1e-3)


def test_n_best_are_distinct_and_ranked(reverser, sources):
    for best in reverser.translate(sources[:30], beam=5, nbest=5):
        ranked = [best, *best.alternatives]
        assert len({one.text for one in ranked}) == 5
        assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)


def test_a_prefix_is_kept_and_gone_on_with(reverser, sources):
    prefixes = ["a b", "", "9"] * 10
    for prefix, found in zip(prefixes, reverser.translate(sources[:30], prefixes=prefixes), strict=True):
        assert found.text.startswith(prefix)


def test_a_prefix_is_kept_when_drawing_too(reverser, sources):
    drawn = reverser.translate(sources[:10], prefixes=["a b"] * 10, sampling=SampleConfig(temperature=2.0))
    assert all(found.text.startswith("a b") for found in drawn)


def test_one_string_is_not_taken_for_its_letters(reverser):
    with pytest.raises(UsageError, match=r"texts must be a list of strings and is one string; write \['a b'\]"):
        reverser.translate("a b")
    with pytest.raises(UsageError, match="prefixes must be a list of strings and is one string"):
        reverser.translate(["a b"], prefixes="a")


def test_what_is_no_string_is_refused_and_any_row_of_strings_is_taken(reverser):
    for wrong in (["a b", 7], ["a b", None], [b"a b"], [["a b"]]):
        with pytest.raises(UsageError, match=r"texts must be strings, and .* is none"):
            as_strings("texts", wrong)
    assert as_strings("texts", (text for text in ("a", "b"))) == ["a", "b"]
    assert reverser.translate([]) == []


def test_there_is_a_prefix_for_each_text(reverser):
    with pytest.raises(UsageError, match="there are 1 prefixes for 2 texts; give one for each, or none"):
        reverser.translate(["a b", "c"], prefixes=["a"])


def test_a_prefix_of_unknown_letters_is_refused(reverser):
    with pytest.raises(UsageError, match="the prefix '☃' holds what this model cannot write"):
        reverser.translate(["a b"], prefixes=["☃"])


def test_no_output_is_longer_than_its_source_allows(reverser, sources):
    search = SearchConfig(beam=3, longest_ratio=0.5, longest_extra=1)
    tokens = reverser.tokenizers
    ids = tokens.source.encode(sources[:20])
    state = reverser.model.encode(*make_source(ids, tokens.special))
    found = beam_search(reverser.model, state, [search.longest(len(i)) for i in ids], tokens.special, search)
    assert all(len(h[0].tokens) <= len(i) // 2 + 1 for h, i in zip(found, ids, strict=True))


def test_special_tokens_are_never_written(reverser, sources):
    written = {
        token for t in reverser.translate(sources[:50], sampling=SampleConfig(temperature=5.0)) for token in t.tokens
    }
    assert written.isdisjoint({"<pad>", "<s>", "<unk>", "</s>"})


# ── sampling ──────────────────────────────────────────────────────────────────────────────


def test_the_same_seed_draws_the_same_text_whatever_is_beside_it(reverser, sources):
    config = SampleConfig(temperature=2.0, seed=4)
    together = [t.text for t in reverser.translate(sources[:12], sampling=config)]
    alone = [
        reverser.translate([s], sampling=config, first_line=n)[0].text for n, s in enumerate(sources[:12], start=1)
    ]
    assert together == alone
    assert together != [
        t.text for t in reverser.translate(sources[:12], sampling=SampleConfig(temperature=2.0, seed=5))
    ]


def test_sampling_follows_the_probabilities(reverser, sources):
    """One source, drawn 400 times: each text comes up about as often as its probability says."""
    source = max(sources[:60], key=lambda s: -reverser.translate([s])[0].log_prob)
    drawn = reverser.translate([source] * 400, sampling=SampleConfig(seed=1))
    best = max(drawn, key=lambda t: t.log_prob)
    share = sum(t.text == best.text for t in drawn) / 400
    expected = torch.tensor(best.log_prob).exp().item()
    assert share == pytest.approx(expected, abs=4 * (expected * (1 - expected) / 400) ** 0.5 + 0.005)


def test_top_k_of_one_is_greedy_search(reverser, sources):
    greedy = [t.text for t in reverser.translate(sources[:30], beam=1)]
    assert [t.text for t in reverser.translate(sources[:30], sampling=SampleConfig(top_k=1))] == greedy


@given(p=st.floats(0.05, 1), k=st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_kept_tokens_are_the_likeliest_and_have_the_share(p, k):
    log_p = torch.randn(3, 10).log_softmax(-1)
    kept = keep_likely(log_p, SampleConfig(top_p=p, top_k=k)).isfinite()
    assert kept.any(-1).all()
    for row, keep in zip(log_p, kept, strict=True):
        assert row[keep].min() >= row[~keep].max() if (~keep).any() else True
        if k == 0 and keep.sum() > 1:
            assert row[keep].exp().sum() - row[keep].min().exp() < p + 1e-5  # one fewer would not do


# ── hostile lines ─────────────────────────────────────────────────────────────────────────

HOSTILE = ["", " ", "\t", "\x00", "\u2028", "a\u2028b", "🦊", "a" * 3000, "\ud800", "a\r", "…", "́", "<pad> </s>", "▁▁"]


def test_one_line_in_is_one_line_out(reverser):
    found = reverser.translate(HOSTILE)
    assert len(found) == len(HOSTILE)
    assert all("\n" not in t.text for t in found)
    assert [t.text for t in found[:5]] == [""] * 5


@given(lines=st.lists(st.text(max_size=30), max_size=6))
@settings(max_examples=40, deadline=None)
def test_any_lines_can_be_translated(reverser, lines):
    found = reverser.translate(lines, beam=2)
    assert len(found) == len(lines)
    assert all("\n" not in t.text for t in found)


# ── long input ────────────────────────────────────────────────────────────────────────────


def test_a_long_line_is_split_and_it_is_said(reverser):
    said = []
    text = ". ".join(["a b c d e f g h i j k l"] * 10)
    [found] = reverser.translate([text], notice=said.append, first_line=7)
    assert len(said) == 1
    assert said[0].startswith("line 7 has 120 tokens and this model was trained on up to 64; it was split into 2 parts")
    assert len(found.source_tokens) == 120  # all of it was read


def test_a_long_line_can_be_refused_instead(reverser):
    with pytest.raises(
        DataError, match="line 1 has 100 tokens and this model was trained on up to 64; split it"
    ) as caught:
        reverser.translate([" ".join("a" * 100)], split=False)
    assert caught.value.exit_code == 3


@given(words=st.lists(st.text("abc.,!?", min_size=1, max_size=9), max_size=40), room=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_a_split_loses_nothing_and_every_part_fits(words, room):
    text = " ".join(words)
    parts = split_text(text, lambda part: len(part) <= room)
    assert all(len(part) <= room for part in parts)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("text", ["1,000,000 dollars on (re)building", "一。二。三。四。", "well-known e.g. here"])
def test_a_split_leaves_the_words_as_they_were(text):
    for room in range(4, 20):
        parts = split_text(text, lambda part, room=room: len(part) <= room)
        place = 0
        for part in parts:
            place = text.index(part, place) + len(part)  # each part stands in the text as it is
        assert not {"1,", "000,"} & set(" ".join(parts).split()) or room < 9


def test_a_split_is_made_where_sentences_end():
    assert split_text("One two. Three four. Five.", lambda part: len(part) <= 12) == [
        "One two.",
        "Three four.",
        "Five.",
    ]


# ── alignments ────────────────────────────────────────────────────────────────────────────


def test_a_word_is_aligned_to_what_its_tokens_looked_at():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    assert align_words(weights, [0, 0, 1], [0, 1, 1]) == [(1, 0), (0, 1)]
    assert align_words(weights, [], [0]) == []


def test_reversing_aligns_in_reverse(reverser):
    [found] = reverser.translate(["a b c d e f"], alignments=True)
    if found.text == "f e d c b a":
        assert len({source for source, _ in found.alignment}) > 2
    assert [target for _, target in found.alignment] == list(range(len(found.text.split())))


def test_looking_gives_every_layer_and_head(reverser):
    maps = reverser.look("a b c")
    assert len(maps) == 2 * 3
    for one in maps:
        assert one.weights.shape == (4, len(one.queries), len(one.keys))
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:2]))


@pytest.mark.parametrize("beam", [1, 3])
def test_an_output_has_room_for_the_shortest_that_may_be(reverser, beam):
    search = {"longest_ratio": 1.0, "longest_extra": 0, "shortest": 12}
    assert [SearchConfig(**search).longest(tokens) for tokens in (3, 12, 40)] == [12, 12, 40]
    patient = Translator(reverser.model, reverser.tokenizers, {**reverser.about, "search": search})
    assert [len(t.tokens) for t in patient.translate(["a b c", "a"], beam=beam)] == [12, 12]
    with pytest.raises(UsageError, match="shortest = 60 is more than longest_output = 50"):
        SearchConfig.read({"shortest": 60, "longest_output": 50}, section="search")
