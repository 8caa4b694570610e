"""Imported translators write what `generate` writes, token for token: greedy and with beams, by the folder's settings.

The models have learned a little, to reverse: their outputs vary in tokens and in length, and are often wrong.
"""

import random

import pytest
import torch
from reference import (
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
    add_marian_pieces,
    add_spiece,
    transformers,
)

from dragoman.decoding.settings import SampleConfig
from dragoman.decoding.translate import Part, Translator
from dragoman.interop.importing import import_folder

WORDS = range(5, 25)
ENDS = [6, 17, 23]  # beside the model's own
STEPS = 220
INPUTS = 200


def lines(count, seed):
    drawn = random.Random(seed)
    return [[drawn.choice(WORDS) for _ in range(drawn.randint(1, 9))] for _ in range(count)]


def padded(sentences, end, pad):
    longest = max(map(len, sentences)) + 1
    return torch.tensor([[*one, end, *[pad] * (longest - len(one) - 1)] for one in sentences])


def teach(model, end, pad):
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    for step in range(STEPS):
        given = lines(32, step)
        source, target = padded(given, end, pad), padded([one[::-1] for one in given], end, -100)
        loss = model(source, attention_mask=(source != pad).long(), labels=target).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=250, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
        activation_function="swish", scale_embedding=True, init_std=0.1, pad_token_id=249, decoder_start_token_id=249,
        dropout=0.0,
    )  # fmt: skip
    model = MarianMTModel(config)
    model.final_logits_bias[0, WORDS].normal_(std=0.3)
    folder = add_marian_pieces(tmp_path_factory.mktemp("marian"))
    teach(model, 0, 249).save_pretrained(folder)
    return model, folder


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=280, d_model=32, d_kv=16, d_ff=64, num_heads=2, num_layers=1, decoder_start_token_id=0,
        dropout_rate=0.0,
    )  # fmt: skip
    folder = add_spiece(tmp_path_factory.mktemp("t5"))
    model = teach(T5ForConditionalGeneration(config), 1, 0)
    model.save_pretrained(folder)
    return model, folder


SETTINGS = {
    "greedy": {"num_beams": 1, "max_length": 20},
    "greedy-cut": {"num_beams": 1, "max_new_tokens": 4},
    "greedy-no-repeats": {"num_beams": 1, "max_length": 20, "no_repeat_ngram_size": 2},
    "beam-4": {"num_beams": 4, "max_length": 20},
    "beam-4-early": {"num_beams": 4, "max_length": 20, "early_stopping": True},
    "beam-4-never-early": {"num_beams": 4, "max_length": 20, "early_stopping": "never", "length_penalty": 0.6},
    "beam-4-long": {"num_beams": 4, "max_length": 14, "length_penalty": 2.0},
    "beam-4-short": {"num_beams": 4, "max_length": 20, "length_penalty": -0.5},
    "beam-4-cut": {"num_beams": 4, "max_new_tokens": 4},
    "beam-4-no-repeats": {"num_beams": 4, "max_length": 20, "no_repeat_ngram_size": 2},
    "greedy-several-ends": {"num_beams": 1, "max_length": 20, "eos_token_id": ENDS},
    "greedy-several-ends-cut": {"num_beams": 1, "max_new_tokens": 4, "eos_token_id": ENDS},
    "beam-4-several-ends": {"num_beams": 4, "max_length": 20, "eos_token_id": ENDS},
    "beam-4-several-ends-early": {"num_beams": 4, "max_length": 20, "early_stopping": True, "eos_token_id": ENDS},
    "beam-4-several-ends-cut": {"num_beams": 4, "max_new_tokens": 4, "length_penalty": 2.0, "eos_token_id": ENDS},
    "beam-4-several-ends-no-repeats": {
        "num_beams": 4,
        "max_length": 20,
        "no_repeat_ngram_size": 2,
        "eos_token_id": ENDS,
    },
    "greedy-repetition": {"num_beams": 1, "max_length": 20, "repetition_penalty": 1.5},
    "beam-4-repetition": {"num_beams": 4, "max_length": 20, "repetition_penalty": 1.5},
    "greedy-not-short": {"num_beams": 1, "max_length": 20, "min_new_tokens": 6},
    "beam-2-not-short": {"num_beams": 2, "max_length": 20, "min_length": 8},
    "beam-3-first": {"num_beams": 3, "max_length": 20, "forced_bos_token_id": 9},
    "beam-3-suppressed": {"num_beams": 3, "max_length": 20, "suppress_tokens": [7, 12]},
    "beam-4-renormalised": {"num_beams": 4, "max_length": 20, "renormalize_logits": True, "bad_words_ids": [[7]]},
    "beam-3-all-rules": {
        "num_beams": 3,
        "max_length": 20,
        "renormalize_logits": True,
        "bad_words_ids": [[7], [8, 9]],
        "repetition_penalty": 1.2,
        "no_repeat_ngram_size": 3,
        "min_length": 5,
        "forced_bos_token_id": 11,
        "suppress_tokens": [13],
    },
    "beam-3-bad-words": {"num_beams": 3, "max_length": 20, "bad_words_ids": [[7], [8, 9], [10, 11, 12]]},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", ["marian", "t5"])
def test_the_same_tokens_as_generate(kind, settings, request):
    reference, folder = request.getfixturevalue(kind)
    given = lines(INPUTS, seed=-1)
    theirs = generate(reference, folder, given, settings)
    saved = import_folder(folder, lambda sentence: pytest.fail(sentence)).saved
    translator = Translator(saved.model, saved.tokenizers, saved.about)
    ours = translator.write_ids(given, beam=translator.search.beam)
    assert ours == theirs
    assert len({tuple(tokens) for tokens in ours}) > 100
    assert len({len(tokens) for tokens in ours}) > 2


@pytest.mark.parametrize("ends", ["one", "several"])
def test_the_next_best_are_the_references_too(marian, ends):
    reference, folder = marian
    given = lines(40, seed=-2)
    several = {"eos_token_id": ENDS} if ends == "several" else {}
    settings = {"num_beams": 4, "max_length": 20, "num_return_sequences": 4, **several}
    theirs = generate(reference, folder, given, settings)
    saved = import_folder(folder, lambda sentence: pytest.fail(sentence)).saved
    translator = Translator(saved.model, saved.tokenizers, saved.about)
    search = translator.search.changed({"nbest": 4}, section="search")
    parts = [Part(number, number, source, []) for number, source in enumerate(given)]
    found = translator.write(parts, search, None, translator.writer("float32", pytest.fail))
    assert [hypothesis.tokens for part in parts for hypothesis in found[part.number]] == theirs


def test_a_draw_ends_where_generate_ends(marian):
    """Of the likeliest token alone: a draw without luck is greedy search."""
    reference, folder = marian
    given = lines(INPUTS, seed=-3)
    theirs = generate(reference, folder, given, {"num_beams": 1, "max_length": 20, "eos_token_id": ENDS})
    saved = import_folder(folder, lambda sentence: pytest.fail(sentence)).saved
    translator = Translator(saved.model, saved.tokenizers, saved.about)
    parts = [Part(number, number, source, []) for number, source in enumerate(given)]
    for writer in (translator.writer("float32", pytest.fail), saved.model):
        found = translator.write(parts, translator.search, SampleConfig(top_k=1), writer)
        assert [found[part.number][0].tokens for part in parts] == theirs
    assert len([tokens for tokens in theirs if tokens and tokens[-1] in ENDS]) > 50


def generate(reference, folder, given, settings):
    """Outputs as ids, without start and end, but with any other token that ended them. The settings are written into
    the folder, as a model hub has them."""
    config = reference.config
    end, pad = config.eos_token_id, config.pad_token_id
    settings, others = dict(settings), settings.get("eos_token_id", [])
    settings["eos_token_id"] = [end, *others] if others else end
    special = {"pad_token_id": pad, "decoder_start_token_id": config.decoder_start_token_id}
    if isinstance(reference, MarianMTModel):
        bad = [[pad], *settings.get("bad_words_ids", [])]
        special |= {"forced_eos_token_id": end}
        settings["bad_words_ids"] = bad
    generation = transformers.GenerationConfig(**special, **settings)
    generation.save_pretrained(folder)
    source = padded(given, end, pad)
    found = reference.generate(source, attention_mask=(source != pad).long(), generation_config=generation)
    return [list(written(row[1:], end, others)) for row in found.tolist()]


def written(row, end, others):
    """Up to `end`, or with the first of the other ends."""
    for token in row:
        if token == end:
            return
        yield token
        if token in others:
            return
