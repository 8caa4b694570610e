"""generation_config.json as settings of ours: what the reference's `generate` does with it, our search does too.

    num_beams, length_penalty, early_stopping   how many beginnings, and how a beam is finished: by the mean
    max_length, max_new_tokens                  the longest output; where neither is given, our own rule by the source
    no_repeat_ngram_size, bad_words_ids         what may not be written
    forced_eos_token_id                         an output that is too long ends, at no cost
    eos_token_id                                what ends an output, one or several (with the tokenizer's special ids)

Without any of them `generate` is greedy. Settings that are not here and would change the output are told, not obeyed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.errors import DataError
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

KINDS: dict[str, Any] = {  # of the values that are read here
    "num_beams": int,
    "length_penalty": int | float,
    "early_stopping": bool | str,
    "no_repeat_ngram_size": int,
    "bad_words_ids": list,
    "max_length": int,
    "max_new_tokens": int,
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
        "never": [word for word in given.get("bad_words_ids") or [] if word not in [[end] for end in ends]],
        "force_end": given.get("forced_eos_token_id") is not None,
    }
    longest = given.get("max_new_tokens") or (given.get("max_length") or 1) - 1  # <start> is counted in the second
    return found | ({"longest_output": longest, "longest_extra": longest} if longest else {})


def refuse_other_kinds(folder: Folder, given: Mapping[str, Any]) -> None:
    """A value of a kind that the setting never has, or a number below zero where it counts something."""
    for name, kind in KINDS.items():
        value = given.get(name)
        if value is not None and not (isinstance(value, kind) and (kind is not int or value >= 0)):
            raise DataError(
                "E-IMP-02", f"{folder.path} has {name} = {value!r}, with which nothing can be written; fetch it again"
            )


def sampling(folder: Folder) -> dict[str, Any]:
    refuse_other_kinds(folder, folder.generation)
    names = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "repetition_penalty": "repetition"}
    return {ours: folder.generation[name] for name, ours in names.items() if folder.generation.get(name) is not None}


def not_obeyed(folder: Folder, end: int) -> list[str]:
    given = {name: folder.generation.get(name) for name in UNKNOWN}
    found = [f"{name} = {value}" for name, value in given.items() if value is not None and value != UNKNOWN[name]]
    forced = folder.generation.get("forced_eos_token_id")
    return found if forced in (None, end, [end]) else [*found, f"forced_eos_token_id = {forced}"]
