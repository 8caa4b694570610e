"""Imported = reference: the same logits on random weights, several shapes each, padding included."""

import pytest
import torch
from reference import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
    add_byte_pairs,
    add_marian_pieces,
    add_spiece,
    add_word_pieces,
    differences,
    rows,
    save,
)

from dragoman.interop.importing import import_folder
from dragoman.modules.positions import RelativePositions, split_sinusoids


def bring_in(folder):
    said = []
    found = import_folder(folder, said.append)
    assert said == []
    return found.saved.model


def both_precisions(reference, model, compare, exact):
    """In float32, and in float64, where less may differ."""
    with torch.inference_mode():
        assert compare(reference, model) <= 1e-4
        assert compare(reference.double(), model.double()) <= exact


# ── BERT ──────────────────────────────────────────────────────────────────────────────────

BERTS = {
    "gelu": {"hidden_act": "gelu", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2},
    "relu-one-layer": {"hidden_act": "relu", "hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 1},
    "gelu-new-loose-norms": {
        "hidden_act": "gelu_new", "hidden_size": 32, "num_attention_heads": 8, "num_hidden_layers": 3,
        "layer_norm_eps": 1e-3, "type_vocab_size": 3,
    },
}  # fmt: skip


@pytest.mark.parametrize("shape", BERTS.values(), ids=BERTS)
@pytest.mark.parametrize("kind", [BertForMaskedLM, BertModel])
def test_bert(kind, shape, tmp_path):
    config = BertConfig(vocab_size=230, intermediate_size=48, max_position_embeddings=40, **shape)
    reference = kind(config)
    model = bring_in(add_word_pieces(save(reference, tmp_path)))
    tokens, real = rows(230, [9, 3, 17])
    segments = (torch.arange(17) > 4).long().expand(3, -1)

    def compare(reference, model):
        found = reference(tokens, attention_mask=real.long(), token_type_ids=segments)
        return differences(model(tokens, real, segments), found[0], real)

    both_precisions(reference, model, compare, 1e-10)


@pytest.mark.parametrize("shape", BERTS.values(), ids=BERTS)
def test_a_bert_that_classifies(shape, tmp_path):
    labels = {0: "bad", 1: "good", 2: "neither"}
    config = BertConfig(vocab_size=230, intermediate_size=48, max_position_embeddings=40, id2label=labels, **shape)
    reference = BertForSequenceClassification(config)
    model = bring_in(add_word_pieces(save(reference, tmp_path)))
    assert model.config.classes == ("bad", "good", "neither")
    tokens, real = rows(230, [9, 3, 17])
    segments = (torch.arange(17) > 4).long().expand(3, -1)

    def compare(reference, model):
        found = reference(tokens, attention_mask=real.long(), token_type_ids=segments).logits
        return (model(tokens, real, segments) - found).abs().max().item()

    both_precisions(reference, model, compare, 1e-10)


# ── GPT-2 ─────────────────────────────────────────────────────────────────────────────────

GPTS = {
    "two-layers": {"n_embd": 32, "n_head": 4, "n_layer": 2},
    "narrow-inner": {"n_embd": 24, "n_head": 2, "n_layer": 1, "n_inner": 24},
    "relu": {"n_embd": 16, "n_head": 1, "n_layer": 3, "activation_function": "relu", "layer_norm_epsilon": 1e-3},
    "untied": {"n_embd": 32, "n_head": 4, "n_layer": 2, "tie_word_embeddings": False},
}


@pytest.mark.parametrize("shape", GPTS.values(), ids=GPTS)
def test_gpt2(shape, tmp_path):
    reference = GPT2LMHeadModel(GPT2Config(vocab_size=300, n_positions=40, **END, **shape))
    model = bring_in(add_byte_pairs(save(reference, tmp_path)))
    tokens, real = rows(300, [9, 3, 17])

    def compare(reference, model):
        return differences(model(tokens), reference(tokens, attention_mask=real.long()).logits, real)

    both_precisions(reference, model, compare, 1e-10)


END = {"bos_token_id": 299, "eos_token_id": 299}


def test_gpt2_without_its_head_and_prefix(tmp_path):
    reference = GPT2Model(GPT2Config(vocab_size=300, n_positions=40, n_embd=32, n_head=4, n_layer=2, **END))
    model = bring_in(add_byte_pairs(save(reference, tmp_path)))
    tokens, _ = rows(300, [12, 12])

    def compare(reference, model):
        return differences(model.write(tokens, model.begin(2))[0], reference(tokens)[0])

    both_precisions(reference, model, compare, 1e-10)


# ── T5 ────────────────────────────────────────────────────────────────────────────────────

T5S = {
    "1.0": {"d_model": 32, "num_heads": 4, "d_kv": 8, "num_layers": 2},
    "1.0-wide-heads": {"d_model": 24, "num_heads": 3, "d_kv": 12, "num_layers": 1, "num_decoder_layers": 3},
    "1.1-own-head": {"d_model": 32, "num_heads": 4, "d_kv": 6, "num_layers": 2, "feed_forward_proj": "gated-gelu"},
    "1.1-one-table": {
        "d_model": 16, "num_heads": 2, "d_kv": 8, "num_layers": 1, "feed_forward_proj": "gated-gelu",
        "initializer_factor": 0.3,
    },
    "1.1-buckets-own-head": {
        "d_model": 32, "num_heads": 2, "d_kv": 16, "num_layers": 2, "feed_forward_proj": "gated-gelu",
        "relative_attention_num_buckets": 12, "relative_attention_max_distance": 20,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", T5S)
def test_t5(name, tmp_path):
    version_1 = {} if name.startswith("1.0") else {"tie_word_embeddings": False}
    reference = T5ForConditionalGeneration(
        T5Config(vocab_size=280, d_ff=48, decoder_start_token_id=0, **T5S[name], **version_1)
    )
    if name.endswith("own-head"):
        reference.lm_head.weight = torch.nn.Parameter(0.1 * torch.randn(280, 32))
        reference.all_tied_weights_keys.pop("lm_head.weight")
    model = bring_in(add_spiece(save(reference, tmp_path, noise=0.02)))
    source, source_real = rows(280, [9, 3, 30])
    target, target_real = rows(280, [4, 25, 11])

    def compare(reference, model):
        found = reference(source, attention_mask=source_real.long(), decoder_input_ids=target).logits
        return differences(model(source, source_real, target), found, target_real)

    both_precisions(reference, model, compare, 1e-6)
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(reference.decoder.final_layer_norm), "forward", norm_as_given)
        assert compare(reference, model) <= 1e-12


def norm_as_given(self, x):
    """The reference's norm without its detour over float32."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 20), (12, 100)])
def test_relative_buckets_are_the_references(both_ways, buckets, furthest):
    from transformers.models.t5.modeling_t5 import T5Attention

    distances = torch.arange(-300, 301)[None]
    theirs = T5Attention._relative_position_bucket(distances, both_ways, buckets, furthest)
    assert torch.equal(RelativePositions(2, buckets, furthest, both_ways=both_ways).bucket(distances), theirs)


# ── Marian ────────────────────────────────────────────────────────────────────────────────

MARIANS = {
    "opus": {"d_model": 32, "activation_function": "swish", "scale_embedding": True},
    "unscaled-gelu": {"d_model": 24, "activation_function": "gelu", "encoder_layers": 1, "decoder_layers": 3},
    "odd-sizes": {
        "d_model": 32, "activation_function": "relu", "decoder_ffn_dim": 40, "decoder_attention_heads": 2,
        "scale_embedding": True,
    },
    "apart": {
        "d_model": 32, "activation_function": "silu", "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": 260,
    },
}  # fmt: skip


def marian(shape):
    usual = {
        "vocab_size": 250, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 60,
        "pad_token_id": 249, "decoder_start_token_id": 249,
    }  # fmt: skip
    model = MarianMTModel(MarianConfig(**(usual | shape)))
    model.final_logits_bias.normal_()
    return model


@pytest.mark.parametrize("shape", MARIANS.values(), ids=MARIANS)
def test_marian(shape, tmp_path):
    reference = marian(shape)
    model = bring_in(add_marian_pieces(save(reference, tmp_path)))
    source, source_real = rows(249, [9, 3, 30])
    target, target_real = rows(249, [4, 25, 11])

    def compare(reference, model):
        found = reference(source, attention_mask=source_real.long(), decoder_input_ids=target).logits
        return differences(model(source, source_real, target), found, target_real)

    both_precisions(reference, model, compare, 1e-6)


def test_marians_waves_are_ours_in_another_order():
    theirs = marian(MARIANS["opus"]).model.encoder.embed_positions.weight
    torch.testing.assert_close(split_sinusoids(60, 32).float(), theirs, atol=1e-6, rtol=0)
