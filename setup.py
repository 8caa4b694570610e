"""Builds the C++ part, once for each class of processor; without a compiler torch does its work."""

import platform

from setuptools import Extension, setup

NATIVE = "src/dragoman/native"
FLAGS = ["-O3", "-pthread", "-std=c++17", "-fno-math-errno", "-fno-trapping-math"]
X86 = {"avx512": ["-march=x86-64-v4", "-mavx512vnni"], "avx2": ["-march=x86-64-v3"]}
LEVELS = {"plain": [], **(X86 if platform.machine().lower() in ("x86_64", "amd64") else {})}

setup(
    ext_modules=[
        Extension(
            f"dragoman.native.{level}",
            [f"{NATIVE}/{name}.cpp" for name in ("engine", "training", "heads", "products", "sublayers", "updates")],
            depends=[f"{NATIVE}/{name}.hpp" for name in ("kernels", "threads", "together", "heads", "products")],
            extra_compile_args=[*FLAGS, *more],
            extra_link_args=["-pthread"],
            language="c++",
            optional=True,
        )
        for level, more in LEVELS.items()
    ]
)
