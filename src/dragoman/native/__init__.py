"""The C++ part: its structs as ctypes knows them, and the build of it that suits this processor.

    engine.cpp      writing text, a whole step in one call      used by decoding/engine.py
    training.cpp    attention and cross-entropy, with slopes    used by modules/short_attention.py, training/entropy.py
    heads.cpp       one head of one short text, with slopes     used by training.cpp and sublayers.cpp
    sublayers.cpp   blocks' sublayers, with slopes              used by modules/sublayers.py
    products.cpp    large products of matrices                  used by sublayers.cpp, modules/products.py
    updates.cpp     gradients summed and followed               used by training/updates.py

It is not a Python module but a plain library: nothing in it knows Python or torch, every call works on memory that
belongs to tensors of ours, and Python's lock is free while it runs.
"""

import ctypes
import os
from ctypes import POINTER, c_double, c_float, c_int32, c_int64, c_void_p
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

PANEL = 64  # outputs of a matrix that are packed together
LEVELS = ("plain", "avx2", "avx512")  # of processors, by what `processor_level` answers


class Linear(ctypes.Structure):
    _fields_ = (
        ("inward", c_int32), ("outward", c_int32), ("weights", c_void_p), ("scales", c_void_p), ("sums", c_void_p),
        ("bias", c_void_p),
    )  # fmt: skip


class Norm(ctypes.Structure):
    _fields_ = (("gain", c_void_p), ("shift", c_void_p), ("epsilon", c_float), ("kind", c_int32))


class Attention(ctypes.Structure):
    _fields_ = (
        ("inward", Linear), ("memory", Linear), ("outward", Linear), ("heads", c_int32), ("head_width", c_int32),
        ("scale", c_float),
    )  # fmt: skip


class Block(ctypes.Structure):
    _fields_ = (
        ("self_attention", Attention), ("source_attention", Attention), ("inward", Linear), ("gate", Linear),
        ("outward", Linear), ("around_self", Norm), ("around_source", Norm), ("around_feedforward", Norm),
        ("activation", c_int32), ("norm_first", c_int32),
    )  # fmt: skip


class Stack(ctypes.Structure):
    _fields_ = (
        ("width", c_int32), ("blocks", c_int32), ("block", POINTER(Block)), ("final_norm", Norm),
        ("distances", c_void_p), ("reach", c_int32),
    )  # fmt: skip


class Embedding(ctypes.Structure):
    _fields_ = (("table", c_void_p), ("scale", c_float), ("positions", c_void_p))


class Step(ctypes.Structure):
    _fields_ = (
        ("threads", c_int32), ("rows", c_int32), ("tokens", c_int32), ("ids", c_void_p), ("lengths", c_void_p),
        ("slots", c_void_p), ("where", c_void_p), ("places", c_int32), ("cache", c_void_p), ("sources", c_void_p),
        ("source_of", c_void_p),
        ("logits", c_void_p), ("count", c_int32), ("ahead", c_int32), ("never", c_void_p), ("renormalise", c_int32),
        ("end", c_int32), ("best", c_void_p), ("best_ids", c_void_p), ("ended", c_void_p),
    )  # fmt: skip


class Heads(ctypes.Structure):
    _fields_ = (("data", c_void_p), ("text", c_int64), ("head", c_int64), ("place", c_int64))


class Attending(ctypes.Structure):
    _fields_ = (
        ("threads", c_int32), ("texts", c_int32), ("heads", c_int32), ("queries", c_int32), ("keys", c_int32),
        ("width", c_int32), ("scale", c_float), ("query", Heads), ("key", Heads), ("value", Heads), ("context", Heads),
        ("mask", c_void_p), ("mask_steps", c_int64 * 4), ("bias", c_void_p), ("bias_steps", c_int64 * 4),
        ("weights", c_void_p), ("to_query", Heads), ("to_key", Heads), ("to_value", Heads), ("to_bias", c_void_p),
    )  # fmt: skip


class Sublayer(ctypes.Structure):
    _fields_ = (
        ("kind", c_int32), ("norm_first", c_int32), ("centred", c_int32), ("activation", c_int32), ("heads", c_int32),
        ("inner", c_int32), ("epsilon", c_float), ("scale", c_float), ("boost", c_float), ("kept", c_void_p),
        ("keys", c_int32), ("key", Heads), ("value", Heads), ("to_key", Heads), ("to_value", Heads),
    )  # fmt: skip


class Shown(ctypes.Structure):
    _fields_ = (("mask", c_void_p), ("steps", c_int64 * 4))


class Run(ctypes.Structure):
    _fields_ = (
        ("threads", c_int32), ("texts", c_int32), ("length", c_int32), ("width", c_int32), ("count", c_int32),
        ("sublayers", POINTER(Sublayer)), ("parameters", POINTER(c_void_p)), ("slopes", POINTER(c_void_p)),
        ("own", Shown), ("source", Shown), ("bias", c_void_p), ("bias_steps", c_int64 * 4), ("x", c_void_p),
        ("y", c_void_p), ("projected", c_void_p), ("room", c_void_p), ("scratch", c_void_p), ("above", c_void_p),
        ("more", c_void_p), ("to_x", c_void_p), ("to_bias", c_void_p),
    )  # fmt: skip


class Tensors(ctypes.Structure):
    _fields_ = (("threads", c_int32), ("count", c_int32), ("sizes", c_void_p), ("data", c_void_p))


class Adam(ctypes.Structure):
    _fields_ = (
        ("parameters", Tensors), ("gradients", c_void_p), ("means", c_void_p), ("squares", c_void_p),
        ("first", c_float), ("second", c_float), ("rate", c_float), ("correction", c_float), ("epsilon", c_float),
        ("kept", c_float), ("pull", c_float),
    )  # fmt: skip


SIGNATURES = {
    "packed_size": (c_int64, c_int32, c_int32, c_int32),
    "pack_floats": (None, c_void_p, c_int32, c_int32, c_void_p),
    "pack_bytes": (None, c_void_p, c_int32, c_int32, c_void_p, c_void_p, c_void_p),
    "list_size": (c_int64, POINTER(Linear), c_int32),
    "make_list": (None, POINTER(Linear), c_void_p, c_void_p, c_int32, c_void_p),
    "encode": (None, POINTER(Stack), POINTER(Embedding), c_void_p, c_void_p, c_int32, c_int32, c_void_p),
    "remember": (None, POINTER(Stack), c_void_p, c_int32, c_int32, c_void_p),
    "step": (c_int32, POINTER(Stack), POINTER(Embedding), POINTER(Linear), c_float, POINTER(Step)),
    "use_parallel": (None, c_void_p),
    "use_product": (None, c_void_p),
    "product_of": (None, *(c_int32,) * 6, *(c_void_p,) * 3, c_int32, c_int32),
    "made_by_intel": (c_int32,),
    "measure": (None, POINTER(Run), POINTER(c_int64), POINTER(c_int64)),
    "forwards": (None, POINTER(Run)),
    "backwards": (None, POINTER(Run)),
    "sum_of_squares": (c_double, POINTER(Tensors)),
    "multiply_all": (None, POINTER(Tensors), c_float),
    "add_all": (None, POINTER(Tensors), c_void_p),
    "adam": (None, POINTER(Adam)),
    "attend": (None, POINTER(Attending)),
    "attend_backward": (None, POINTER(Attending)),
    "cross_entropy": (None, c_void_p, c_int64, c_int64, c_void_p, c_float, c_int32, c_int32, c_void_p),
}


@cache
def library() -> ctypes.CDLL | None:
    """The best build that this processor can run; None where the package was installed without a compiler."""
    plain = open_build("plain")
    if plain is None:
        return None
    asked = os.environ.get("DRAGOMAN_ENGINE", "")
    level = LEVELS.index(asked) if asked in LEVELS else plain.processor_level()
    builds = (open_build(name) for name in reversed(LEVELS[: level + 1]))
    return next(build for build in builds if build is not None)


def level() -> str:
    """Which build is used: the last digits hang on it."""
    found = library()
    return Path(found._name).name.partition(".")[0] if found else "none"


def open_build(level: str) -> ctypes.CDLL | None:
    folder = Path(__file__).parent
    path = next((folder / f"{level}{end}" for end in EXTENSION_SUFFIXES if (folder / f"{level}{end}").exists()), None)
    if path is None:
        return None
    build = ctypes.CDLL(str(path))
    for name, (answer, *given) in SIGNATURES.items():
        function = getattr(build, name)
        function.restype, function.argtypes = answer, given
    build.use_parallel(threads_of_torch())
    build.use_product(None if is_faster(build, level) else product_of_torch())
    return build


def threads_of_torch() -> int | None:
    """Where the OpenMP that torch has loaded starts its threads: training computes with those and no others, since two
    teams on the same cores wait for each other. None where there is no such thing; then one thread does the work."""
    return loaded_function("libgomp", "GOMP_parallel")


def product_of_torch() -> int | None:
    """The product of matrices in torch's own BLAS; None where it cannot be found."""
    return loaded_function("libtorch_cpu", "sgemm_")


def is_faster(build: ctypes.CDLL, level: str) -> bool:
    """Whether our own products are: MKL takes the widest instructions on processors of its own maker alone, and on
    others with AVX-512 it is half as fast as they can be."""
    return level == "avx512" and not build.made_by_intel()


def has_own_products() -> bool:
    found = library()
    return found is not None and is_faster(found, level())


def has_products() -> bool:
    """Whether there are any that are worth going the native way for."""
    return has_own_products() or (library() is not None and product_of_torch() is not None)


@cache
def loaded_function(library: str, name: str) -> int | None:
    """Where a function of a library begins that this process has loaded."""
    maps = Path("/proc/self/maps")
    loaded = maps.read_text(errors="replace").split("\n") if maps.exists() else []
    path = next((line[line.index("/") :] for line in loaded if library in line and "/" in line), None)
    try:
        return ctypes.cast(getattr(ctypes.CDLL(path), name), c_void_p).value if path else None
    except (OSError, AttributeError):
        return None
