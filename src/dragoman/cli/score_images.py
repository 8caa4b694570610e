"""dragoman score, where the model reads images: labels, numbers, or masks, beside the right ones."""

import json as json_module
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.score import Options
    from dragoman.evaluation.numbers import NumberScores
    from dragoman.evaluation.overlap import MaskScores


def score_images(model: str, corpora: Sequence[str], options: "Options") -> int:
    from dragoman.cli.classify_images import refuse_no_head
    from dragoman.cli.kind import kind_of
    from dragoman.cli.score_labels import refuse_plot, refuse_plot_of, tell_confusion
    from dragoman.images.corpus import find_images

    refuse_no_head(model, kind_of(Path(model))[0])
    refuse_plot(options.plot)
    corpus = find_images(corpora)

    from dragoman.decoding.images import ImageClassifier, ImageModel, ImageRegressor, ImageSegmenter
    from dragoman.evaluation.images import score_labels, score_masks, score_numbers
    from dragoman.jobs.machine import use_threads
    from dragoman.jobs.open import load_as

    use_threads(options.threads)
    opened = load_as(ImageModel, model)
    if options.plot and not isinstance(opened, ImageClassifier):
        refuse_plot_of(model)
    match opened:
        case ImageClassifier():
            tell_confusion(score_labels(opened, corpus), options)
        case ImageRegressor():
            show_numbers(score_numbers(opened, corpus), options.json)
        case ImageSegmenter():
            show_overlap(score_masks(opened, corpus), options.json)
    return 0


def show_numbers(found: "NumberScores", json: bool) -> None:
    if json:
        whole = {"images": found.images, "r2": found.r2, "mean_error": found.mean_error}
        print(json_module.dumps({**whole, "numbers": [asdict(one) for one in found.each]}, ensure_ascii=False))
        return
    print(f"{found.images:,} images   R² {found.r2:.4f}   mean error {found.mean_error:.4g}")
    print("\n95 % intervals of 1,000 resamples of the images")
    wide = max(8, *(len(one.name) for one in found.each)) + 2
    for one in found.each:
        (low, high), (least, most) = one.r2_interval, one.error_interval
        print(
            f"{one.name:<{wide}}R² {one.r2:.4f} ({low:.4f} to {high:.4f})   "
            f"mean error {one.mean_error:.4g} ({least:.4g} to {most:.4g})"
        )


def show_overlap(scores: "MaskScores", json: bool) -> None:
    found, interval = scores.whole, scores.interval
    if json:
        whole = {"images": found.images, "mean_iou": found.mean_iou, "interval": interval}
        counts = {"classes": list(found.classes), "confusion": found.counts.tolist()}
        print(
            json_module.dumps(
                {**whole, "pixel_accuracy": found.accuracy, "iou": found.iou, **counts}, ensure_ascii=False
            )
        )
        return
    low, high = interval
    print(
        f"{found.images:,} images   mean IoU {found.mean_iou:.2%} (95 % interval {low:.2%} to {high:.2%}, "
        f"bootstrap)   pixel accuracy {found.accuracy:.2%}\n"
    )
    wide = max(8, *(len(name) for name in found.classes)) + 2
    for name, share in found.iou.items():
        print(f"{name:<{wide}}IoU {share:.2%}")
