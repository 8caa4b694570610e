"""dragoman embed, where the model reads images: a vector for each of them, or which of them are near to each other."""

from collections.abc import Sequence
from pathlib import Path


def embed_images(
    model: str, images: Sequence[str], input: Path | None, output: Path | None, near: int, encoding: str, json: bool
) -> int:
    from dragoman.cli.embed import refuse_lone, save, show, show_near
    from dragoman.images.corpus import find_shown
    from dragoman.text.reading import read_lines

    shown = find_shown([line for line in read_lines(input, encoding) if line] if input else images)
    names = [name for part in shown for name in part.names()]
    if near:
        refuse_lone(names, "image")

    import numpy as np

    from dragoman.decoding.images import ImageEmbedder
    from dragoman.jobs.open import load_as

    embedder = load_as(ImageEmbedder, model)
    vectors = np.concatenate([embedder.vectors(part.pixels(embedder.form)) for part in shown])
    if output:
        save(output, names, vectors)
    if near:
        show_near(names, vectors, near, json, "image")
    elif not output:
        show(names, vectors, json, "image")
    return 0
