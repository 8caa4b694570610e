"""generation_config.json as settings of ours: what the reference's `generate` does with it, we do too.

Translators (`search`):

    num_beams, length_penalty, early_stopping   how many beginnings, and how a beam is finished: by the mean
    max_length, max_new_tokens                  the longest output; where neither is given, our own rule by the source
    min_length, min_new_tokens                  the shortest
    no_repeat_ngram_size, repetition_penalty    what is not written twice, or less likely
    bad_words_ids, suppress_tokens              what may not be written; renormalize_logits: what is left sums to one
    forced_bos_token_id, forced_eos_token_id    an output begins with it; one that is too long ends, at no cost
    eos_token_id                                what ends an output, one or several (with the tokenizer's special ids)

Without any of them `generate` is greedy. Language models (`sampling`):

    do_sample                                   false: always the likeliest token
    temperature, top_k, top_p                   how tokens are drawn; of the 50 likeliest where only do_sample is said
    repetition_penalty, max_new_tokens          as above

Any other setting that would change the output is told, not obeyed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.errors import DataError
from dragoman.interop.huggingface import Folder

SEARCHED = {
    "num_beams", "length_penalty", "early_stopping", "max_length", "max_new_tokens", "min_length", "min_new_tokens",
    "no_repeat_ngram_size", "repetition_penalty", "bad_words_ids", "suppress_tokens", "renormalize_logits",
    "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
}  # fmt: skip
DRAWN = {"do_sample", "temperature", "top_k", "top_p", "repetition_penalty", "max_new_tokens"}
IDLE: dict[str, Any] = {  # settings that we do not have, and the values with which they do nothing
    "num_beams": 1,
    "min_length": 0,
    "min_new_tokens": 0,
    "max_length": 20,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "bad_words_ids": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "guidance_scale": 1.0,
    "do_sample": False,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "min_p": 0.0,
    "length_penalty": 1.0,
}
WITH_LUCK = {"temperature", "top_k", "top_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "min_p", "top_h"}
HARMLESS = {  # whatever they say, the same text is written
    "_from_model_config", "transformers_version", "use_cache", "cache_implementation", "cache_config", "max_cache_len",
    "return_dict_in_generate", "output_attentions", "output_hidden_states", "output_scores", "output_logits",
    "num_return_sequences",
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "low_memory", "compile_config",
    "disable_compile", "prefill_chunk_size", "early_stopping", "remove_invalid_values", "renormalize_logits",
    "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold",
    "assistant_lookbehind", "target_lookbehind", "assistant_early_exit", "prompt_lookup_num_tokens",
    "max_matching_ngram_size", "continuous_batching_config",
}  # fmt: skip
LIKELY = 50  # tokens that the reference draws from where its folder says no more than that it draws

KINDS: dict[str, Any] = {  # of the values that are read here
    "num_beams": int,
    "length_penalty": int | float,
    "early_stopping": bool | str,
    "no_repeat_ngram_size": int,
    "bad_words_ids": list,
    "max_length": int,
    "max_new_tokens": int,
    "min_length": int,
    "min_new_tokens": int,
    "suppress_tokens": list,
    "forced_bos_token_id": int,
    "temperature": int | float,
    "top_k": int,
    "top_p": int | float,
    "repetition_penalty": int | float,
}


def search(folder: Folder, ends: Sequence[int], usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`usual` is what the reference takes for granted in a folder without generation_config.json."""
    taken = usual if usual and folder.generation is folder.config else {}
    given = {**taken, **folder.generation}
    refuse_other_kinds(folder, given)
    found: dict[str, Any] = {
        "finish": "mean",
        "beam": given.get("num_beams") or 1,
        "length_penalty": given.get("length_penalty", 1.0),
        "early_stopping": given.get("early_stopping") or False,
        "no_repeat": given.get("no_repeat_ngram_size") or 0,
        "repetition": given.get("repetition_penalty") or 1.0,
        "never": never(given, ends),
        "renormalise": bool(given.get("renormalize_logits")),
        "shortest": given.get("min_new_tokens") or max(0, (given.get("min_length") or 0) - 1),  # <start> counts there
        "first": given.get("forced_bos_token_id"),
        "force_end": given.get("forced_eos_token_id") is not None,
    }
    longest = given.get("max_new_tokens") or (given.get("max_length") or 1) - 1  # <start> is counted in the second
    return found | ({"longest_output": longest, "longest_extra": longest} if longest else {})


def never(given: Mapping[str, Any], ends: Sequence[int]) -> list[list[int]]:
    bad = [word for word in given.get("bad_words_ids") or [] if word not in [[end] for end in ends]]
    return bad + [[token] for token in given.get("suppress_tokens") or [] if [token] not in bad]


def refuse_other_kinds(folder: Folder, given: Mapping[str, Any]) -> None:
    """A value of a kind that the setting never has, or a number below zero where it counts something."""
    for name, kind in KINDS.items():
        value = given.get(name)
        if value is not None and not (isinstance(value, kind) and (kind is not int or value >= 0)):
            raise DataError(
                "E-IMP-02", f"{folder.path} has {name} = {value!r}, with which nothing can be written; fetch it again"
            )


def sampling(folder: Folder) -> dict[str, Any]:
    given = folder.generation
    refuse_other_kinds(folder, given)
    names = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "repetition_penalty": "repetition"}
    found = {ours: given[name] for name, ours in names.items() if given.get(name) is not None}
    if given.get("do_sample") is not None and folder.generation is not folder.config:
        found["top_k"] = found.get("top_k", LIKELY) if given["do_sample"] else 1
    return found | ({"tokens": given["max_new_tokens"]} if given.get("max_new_tokens") else {})


def not_obeyed(folder: Folder, obeyed: set[str], end: int) -> list[str]:
    """Settings that would change what is written, and do not."""
    known = IDLE if folder.generation is folder.config else folder.generation  # config.json is full of other things
    without_luck = set() if folder.generation.get("do_sample") else WITH_LUCK
    found = [
        f"{name} = {value}"
        for name in known
        if name not in obeyed | HARMLESS | without_luck
        and (value := folder.generation.get(name)) not in (None, False, [], IDLE.get(name))
    ]
    forced = folder.generation.get("forced_eos_token_id")
    if "forced_eos_token_id" in obeyed and forced not in (None, end, [end]):
        found.append(f"forced_eos_token_id = {forced}")
    return found
