"""What is shown of a model at work is what the model does, to the printed digits."""

import math

import pytest
import torch
from reference import GPT2Config, GPT2LMHeadModel, add_byte_pairs, save

import dragoman
from dragoman import models
from dragoman.decoding.fill import Filler
from dragoman.decoding.generate import TextWriter
from dragoman.decoding.settings import SampleConfig
from dragoman.decoding.translate import Translator
from dragoman.errors import DataError, UsageError
from dragoman.models.bert import BertConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.rnn_writer import RnnWriterConfig
from dragoman.models.t5 import T5Config
from dragoman.models.transformer import TransformerConfig
from dragoman.modules.recurrent import Recurrent, RecurrentStack, watching_gates
from dragoman.seeing.attention import seems_dropped
from dragoman.seeing.look import look
from dragoman.seeing.tokens import show_tokens
from dragoman.seeing.writing import MORE
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, Tokenizers, learn, learn_tokenizers

PAIRS = [("a small dog runs", "ein kleiner Hund rennt"), ("two dogs sleep", "zwei Hunde schlafen")]
SIZES = {"width": 16, "heads": 2, "layers": 2, "hidden": 32, "dropout": 0.0}
ABOUT = {"longest": 40, "search": {}, "languages": ["", ""]}


@pytest.fixture(scope="module")
def tokenizers():
    return learn_tokenizers(TokenizerConfig(kind="characters"), PAIRS)


def translators(tokenizers):
    size = {"source_vocabulary": len(tokenizers.source), "target_vocabulary": len(tokenizers.source)}
    rnn = {"width": 16, "embedding": 16, "dropout": 0.0}
    configs = {
        "transformer": TransformerConfig(**size, **SIZES),
        "t5": T5Config(**size, **SIZES, head_width=8, buckets=8, furthest=12),
        "additive": RnnConfig(**size, **rnn, attention="additive"),
        "dot-two-layers": RnnConfig(**size, **rnn, attention="dot", layers=2, cell="gru"),
        "none": RnnConfig(**size, **rnn, cell="rnn"),
    }
    return {name: Translator(models.build(config), tokenizers, ABOUT) for name, config in configs.items()}


def test_a_look_is_the_translation_with_its_reasons(reverser):
    for source, _ in reverser.held_out[:5]:
        seen, told = look(reverser, source), reverser.translate([source], nbest=5)[0]
        assert seen.translation.text == told.text
        assert [one.text for one in seen.translation.nbest] == [told.text, *(o.text for o in told.alternatives)]
        assert seen.translation.score == pytest.approx(told.score, abs=5e-5)
        assert sum(step.log_prob for step in seen.steps) == pytest.approx(told.log_prob, abs=1e-3)
        assert [step.token for step in seen.steps] == seen.written.pieces
        assert [node.token for node in seen.beams[0].nodes if node.best][1:] == seen.written.pieces


def test_the_numbers_shown_are_those_of_the_python_maps(reverser):
    source = reverser.held_out[1][0]
    seen = look(reverser, source)
    maps = reverser.look(source, seen.translation.text)
    assert [layer.name for layer in seen.attention] == [found.layer for found in maps]
    for layer, found in zip(seen.attention, maps, strict=True):
        shown = layer.weights.unpack()
        torch.testing.assert_close(shown, found.weights.double(), atol=5.1e-5, rtol=0)
        torch.testing.assert_close(shown.sum(-1), torch.ones(shown.shape[:-1]).double(), atol=1e-3, rtol=0)
        assert (layer.visible is not None) == (layer.kind == "decoder")
        if layer.kind == "decoder":
            hidden = torch.ones(shown.shape[-2:]).triu(1).bool()
            assert (shown[:, hidden] == 0).all()
            assert (layer.unmasked.unpack()[:, hidden] > 0).any()
        words = layer.by_word.unpack()
        torch.testing.assert_close(words.sum(-1), torch.ones(words.shape[:-1]).double(), atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", ["transformer", "t5", "additive", "dot-two-layers", "none"])
def test_every_translator_can_be_looked_at(tokenizers, name):
    translator = translators(tokenizers)[name]
    seen = look(translator, "a small dog", target="ein Hund")
    kinds = {layer.kind for layer in seen.attention}
    assert kinds == {"none": set(), "additive": {"cross"}, "dot-two-layers": {"cross"}}.get(
        name, {"encoder", "decoder", "cross"}
    )
    assert (seen.translation.words is None) == (name == "none" or not seen.translation.text)
    gates = {gate.name for gate in seen.steps[0].gates}
    assert gates == {"additive": {"forget", "input", "output"}, "dot-two-layers": {"reset", "update"}}.get(name, set())
    assert (seen.steps[0].norm is not None) == (name in ("additive", "dot-two-layers", "none"))
    for step in seen.steps:
        assert step.looked is None or sum(step.looked) == pytest.approx(1, abs=5e-3)
        chances = [one.probability for one in step.top]
        assert chances == sorted(chances, reverse=True)
    assert type(seen).model_validate_json(seen.model_dump_json()) == seen


def test_watching_the_gates_changes_no_state():
    for cell in ("rnn", "gru", "lstm"):
        stack = RecurrentStack(cell, 5, 8, 2, 0.0).double()
        x = torch.randn(2, 6, 5).double()
        plain, _ = stack(x, stack.zeros(2))
        with watching_gates(stack) as seen:
            watched, _ = stack(x, stack.zeros(2))
        torch.testing.assert_close(watched, plain, atol=1e-12, rtol=0)
        assert [len(turns) for turns in seen] == [6, 6]
        torch.testing.assert_close(torch.stack([turn.state for turn in seen[1]], dim=1), plain)
        assert all(layer.watcher is None for layer in stack)
        assert isinstance(stack.layers[0], Recurrent)


def test_a_forced_token_stays_and_changes_what_follows(reverser):
    source = reverser.held_out[2][0]
    seen = look(reverser, source)
    other = next(one for one in seen.steps[1].top if one.id not in (seen.steps[1].id, 0, 1, 2, 3))
    forced = look(reverser, source, force=[seen.steps[0].id, other.id])
    assert forced.written.pieces[:2] == [seen.steps[0].token, other.token]
    assert forced.forced == 2
    assert forced.written.pieces != seen.written.pieces


def test_who_is_to_blame(reverser):
    """With one beam the search misses what a wider one finds: forced on it as a reference, that is a search error."""
    verdicts = set()
    sources, targets = zip(*reverser.held_out, strict=True)
    wide, narrow = (reverser.translate(sources, beam=width) for width in (12, 1))
    for source, target, best, greedy in zip(sources, targets, wide, narrow, strict=True):
        if best.score > greedy.score + 1e-3:
            seen = look(reverser, source, target=best.text, beam=1)
            assert seen.reference.verdict == "search error"
            assert seen.reference.log_prob == pytest.approx(best.log_prob, abs=1e-3)
            verdicts.add("search error")
        elif best.text != target and "model error" not in verdicts:
            assert look(reverser, source, target=target, beam=12).reference.verdict == "model error"
            verdicts.add("model error")
        if best.text == target and "same" not in verdicts:
            assert look(reverser, source, target=target, beam=12).reference.verdict == "same"
            verdicts.add("same")
    assert verdicts == {"search error", "model error", "same"}


def test_the_end_may_be_forced_and_ends_it(reverser):
    seen = look(reverser, "1 2 3", force=[reverser.tokenizers.target.encode(["3"])[0][0], 2])
    assert seen.written.pieces == ["3", "</s>"]
    assert [node.token for node in seen.beams[0].nodes if node.rank == 1] == ["</s>"]


def test_what_was_forced_is_nobodys_fault(reverser):
    """The reference is held against what the search finds by itself."""
    source = next(s for s, t in reverser.held_out if reverser.translate([s])[0].text == t)
    best = reverser.translate([source])[0].text
    [first, *_] = reverser.tokenizers.target.encode([best])[0]
    other = next(token for token in range(5, 15) if token != first)
    assert look(reverser, source, target=best, force=[other]).reference.verdict == "same"


def test_a_reference_that_no_output_may_equal_blames_nobody(reverser):
    seen = look(reverser, "1 2 3", target="3 Ω 1")
    assert seen.reference.verdict == "unwritable"
    assert "<unk>" in seen.reference.sentence


def test_gold_links_lead_to_the_reference_where_there_is_one(reverser):
    source = reverser.held_out[0][0]
    count = len(source.split())
    target = " ".join(source.split()[::-1])
    links = " ".join(f"{i}-{count - 1 - i}" for i in range(count))
    seen = look(reverser, source, target=f"{target} {target}", gold=f"{links} 0-{2 * count - 1}")
    assert seen.gold.of == "reference"
    right = look(reverser, source, target=target, gold=links)
    assert right.gold.best.aer <= 0.5
    assert look(reverser, source, gold="0-0").gold.of == "output"


def test_gold_links_judge_every_head_and_the_reversal_is_found(reverser):
    long = [(source, target) for source, target in reverser.held_out if len(source.split()) > 5]
    told = reverser.translate([source for source, _ in long])
    right = [source for (source, target), one in zip(long, told, strict=True) if one.text == target]
    found = []
    for source in right[:8]:
        count = len(source.split())
        seen = look(reverser, source, gold=" ".join(f"{i}-{count - 1 - i}" for i in range(count)))
        for layer in seen.attention:
            assert (layer.aer is not None) == (layer.kind == "cross")
        errors = {(i, h): aer for i, layer in enumerate(seen.attention) for h, aer in enumerate(layer.aer or [])}
        best = seen.gold.best
        assert best.aer == errors[best.layer, best.head] == min(errors.values())
        found.append(best.aer)
    assert sum(found) / len(found) < 0.25  # it learned to reverse, so in most sentences some head looks there


# ── writers and readers ───────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def letters():
    return learn("characters", ["the cat sat on the mat"], 100, SpecialIds())


def test_a_writer_is_looked_at_with_how_it_goes_on(letters):
    writer = TextWriter(
        models.build(GptConfig(vocabulary=len(letters), **SIZES, longest=24)), Tokenizers(letters, letters)
    )
    seen = look(writer, "the cat")
    assert seen.kind == "write"
    assert len(seen.written.pieces) == len(seen.given.pieces) == len(seen.steps) == 7 + 16
    assert "".join(seen.written.pieces[:7]) == "the cat"
    assert (seen.opening, seen.prompt, seen.forced) == (0, 7, 0)  # </s> stands before it, as where it generates
    assert seen.given.pieces[:8] == letters.pieces(writer.read("the cat"))
    assert [len(step.looked) for step in seen.steps] == list(range(1, 24))
    assert {layer.kind for layer in seen.attention} == {"decoder"}
    after = [step.token for step in seen.steps[7:]]
    likeliest = [next(one.token for one in step.top if not one.token.startswith("<")) for step in seen.steps[7:]]
    assert after == likeliest or "</s>" in after
    forced = look(writer, "the cat", force=[step.id for step in seen.steps[:3]])
    assert "".join(forced.written.pieces[:10]) == "the catthe"
    assert (forced.prompt, forced.forced) == (7, 3)
    with pytest.raises(DataError, match="31 tokens and this model looks back on 24"):
        look(writer, "the cat sat on the mat the cat")


@pytest.mark.parametrize("text", ["one two\n\nthree", "o", "<|endoftext|>one"])
def test_a_gpt2_of_hugging_face_is_looked_at_as_it_generates(tmp_path, text):
    """It reads the same ids, with nothing put before them: what the reference itself makes of them is shown."""
    sizes = {"vocab_size": 300, "n_positions": 40, "n_embd": 32, "n_head": 2, "n_layer": 2}
    reference = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=299, eos_token_id=299))
    writer = dragoman.load(add_byte_pairs(save(reference, tmp_path / "gpt2")))
    ids = writer.read(text)
    seen = look(writer, text)
    assert seen.given.pieces[: len(ids)] == writer.tokenizer.pieces(ids)
    assert (seen.opening, seen.prompt) == (1, len(ids) - 1)
    assert seen.translation.text == writer.generate(text, tokens=MORE, sampling=SampleConfig(top_k=1))
    whole = [*ids[:1], *(step.id for step in seen.steps)]
    assert whole[: len(ids)] == ids
    with torch.inference_mode():
        wanted = reference(torch.tensor([whole[:-1]])).logits[0].log_softmax(dim=-1)
    found = [step.log_prob for step in seen.steps]
    assert found == pytest.approx([float(wanted[t, token]) for t, token in enumerate(whole[1:])], abs=1e-4)
    assert seen.attention[0].weights.shape[1] == len(whole) - 1 == len(seen.given.words) == len(seen.written.pieces)


def test_a_gpt2_is_over_where_it_ends_its_text(tmp_path):
    """As `generate` has it; the token that ends it is the last step, and may be forced as the last one."""
    sizes = {"vocab_size": 300, "n_positions": 40, "n_embd": 16, "n_head": 2, "n_layer": 1}
    model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=299, eos_token_id=299, tie_word_embeddings=False))
    writer = dragoman.load(add_byte_pairs(save(model, tmp_path / "gpt2")))
    before = look(writer, "one two")
    third = before.steps[before.prompt + 2]
    with torch.no_grad():  # so that it ends instead of writing that token
        table = writer.model.scores.table.weight
        table[299], table[third.id] = table[third.id].clone(), -table[third.id]
    seen = look(writer, "one two")
    ends = [step.id == 299 for step in seen.steps[seen.prompt :]]
    assert ends == [False, False, True]
    assert seen.translation.text == writer.generate("one two", tokens=MORE, sampling=SampleConfig(top_k=1))
    assert "<|endoftext|>" not in seen.translation.text
    forced = look(writer, "one two", force=[5, 299])
    assert [step.id for step in forced.steps[forced.prompt :]] == [5, 299]
    with pytest.raises(UsageError, match="ends a text, and 2 tokens were forced"):
        look(writer, "one two", force=[299, 5])


def test_a_recurrent_writer_has_gates_and_no_attention(letters):
    config = RnnWriterConfig(vocabulary=len(letters), width=16, embedding=16, dropout=0.0)
    seen = look(TextWriter(models.build(config), Tokenizers(letters, letters)), "the cat")
    assert seen.attention == []
    assert {gate.name for gate in seen.steps[0].gates} == {"forget", "input", "output"}


def test_a_reader_is_looked_at_with_what_fits_its_masks():
    special = SpecialIds(mask=4)
    tokenizer = learn("words", ["the cat sat on the mat"], 100, special)
    filler = Filler(
        models.build(BertConfig(vocabulary=len(tokenizer), **SIZES, longest=16)), Tokenizers(tokenizer, tokenizer)
    )
    seen = look(filler, "the [MASK] sat")
    assert seen.source.pieces == ["<s>", "the", "<mask>", "sat", "</s>"]
    assert {layer.kind for layer in seen.attention} == {"encoder"}
    assert [mask.place for mask in seen.masks] == [2]
    found = filler.fill("the [MASK] sat", top=8)[0]
    assert [one.token for one in seen.masks[0].candidates] == [one.token for one in found]
    assert look(filler, "the cat").masks == ()
    assert (seen.kind, look(filler, "the cat").kind) == ("fill", "read")
    with pytest.raises(UsageError, match="for translators"):
        look(filler, "the cat", target="x")


def test_entropy_is_in_bits(reverser):
    seen = look(reverser, reverser.held_out[0][0])
    for layer in seen.attention:
        assert all(0 <= bits <= layer.most_entropy + 1e-2 for bits in layer.entropy)
        if layer.kind == "cross":
            assert layer.most_entropy == pytest.approx(math.log2(layer.weights.shape[2]), abs=1e-3)


@pytest.mark.parametrize(
    ("asked", "error", "named"),
    [
        ({"text": "  "}, UsageError, "no text"),
        ({"text": " ".join("1" * 200)}, DataError, "trained on up to"),
        ({"text": "1 2", "gold": "0-9"}, UsageError, "leads out"),
        ({"text": "1 2", "force": [10**6]}, UsageError, "no token 1000000 to force"),
        ({"text": "1 2", "force": [2, 5]}, UsageError, "</s> cannot be forced here"),
        ({"text": "1 2", "force": [3]}, UsageError, "<unk> cannot be forced here"),
        ({"text": "1 2", "beam": 0}, UsageError, "beam"),
        ({"text": "1 2", "beam": 100_000}, UsageError, "beam"),
    ],
)
def test_a_mistake_is_said_in_words(reverser, asked, error, named):
    with pytest.raises(error, match=named):
        look(reverser, **asked)


def test_look_is_a_public_name(reverser):
    assert dragoman.look(reverser, "1 2 3").kind == "translate"


def test_a_word_seems_dropped_only_against_what_a_word_gets_on_the_mean():
    assert seems_dropped(torch.tensor([1.2, 0.1, 1.1, 0.6]), written=3)
    assert not seems_dropped(torch.tensor([1.2, 0.2, 1.1, 0.5]), written=3)  # 0.27 of the mean, 0.75
    assert not seems_dropped(torch.tensor([0.04, 0.05, 0.25, 0.15, 0.42]), written=1)  # a date in words: each gets 0.2


def test_a_source_word_that_the_tokenizer_does_not_know_keeps_its_text(tokenizers):
    [ids] = tokenizers.source.encode(["a ж dog"])
    assert show_tokens(tokenizers.source, ids, text="a ж dog", after=2).names == ["a", "ж", "dog", "</s>"]
