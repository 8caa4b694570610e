"""dragoman embed, where the model reads images: a vector for each of them, or which of them are near to each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.embed import Options


def embed_images(model: str, images: Sequence[str], options: "Options") -> int:
    from dragoman.cli.embed import refuse_lone, save, show, show_near
    from dragoman.images.corpus import find_shown
    from dragoman.text.reading import read_lines

    listed = [line for line in read_lines(options.input, options.encoding) if line] if options.input else images
    shown = find_shown(listed)
    names = [name for part in shown for name in part.names()]
    if options.near:
        refuse_lone(names, "image")

    import numpy as np

    from dragoman.decoding.images import ImageEmbedder
    from dragoman.jobs.open import load_as

    embedder = load_as(ImageEmbedder, model)
    vectors = np.concatenate([embedder.vectors(part.pixels(embedder.form)) for part in shown])
    if options.output:
        save(options.output, names, vectors)
    if options.near:
        show_near(names, vectors, options.near, options.json, "image")
    elif not options.output:
        show(names, vectors, options.json, "image")
    return 0
