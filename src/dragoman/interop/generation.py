"""generation_config.json as settings of ours: what the reference's `generate` does with it, our search does too.

    num_beams, length_penalty, early_stopping   how many beginnings, and how a beam is finished: by the mean
    max_length, max_new_tokens                  the longest output; where neither is given, our own rule by the source
    no_repeat_ngram_size, bad_words_ids         what may not be written
    forced_eos_token_id                         an output that is too long ends, at no cost

Without any of them `generate` is greedy. Settings that are not here and would change the output are told, not obeyed.
"""

from collections.abc import Mapping
from typing import Any

from dragoman.interop.huggingface import Folder

UNKNOWN: dict[str, Any] = {  # settings that we do not have, and the values with which they do nothing
    "min_length": 0,
    "min_new_tokens": 0,
    "repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "forced_bos_token_id": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "guidance_scale": None,
    "do_sample": False,
}


def search(folder: Folder, usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`usual` is what the reference takes for granted in a folder without generation_config.json."""
    taken = usual if usual and folder.generation is folder.config else {}
    given, end = {**taken, **folder.generation}, folder.token_id("eos_token_id", -1)
    found: dict[str, Any] = {
        "finish": "mean",
        "beam": given.get("num_beams") or 1,
        "length_penalty": given.get("length_penalty", 1.0),
        "early_stopping": given.get("early_stopping") or False,
        "no_repeat": given.get("no_repeat_ngram_size") or 0,
        "never": [word for word in given.get("bad_words_ids") or [] if word != [end]],
        "force_end": given.get("forced_eos_token_id") is not None,
    }
    longest = given.get("max_new_tokens") or (given.get("max_length") or 1) - 1  # <start> is counted in the second
    return found | ({"longest_output": longest, "longest_extra": longest} if longest else {})


def sampling(folder: Folder) -> dict[str, Any]:
    names = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "repetition_penalty": "repetition"}
    return {ours: folder.generation[name] for name, ours in names.items() if folder.generation.get(name) is not None}


def not_obeyed(folder: Folder) -> list[str]:
    given = {name: folder.generation.get(name) for name in UNKNOWN}
    found = [f"{name} = {value}" for name, value in given.items() if value is not None and value != UNKNOWN[name]]
    ends = folder.generation.get("eos_token_id")
    several = isinstance(ends, list) and len({*ends}) > 1  # an output ends at the first of them only
    return [*found, f"eos_token_id = {ends}"] if several else found
