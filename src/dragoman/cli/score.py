"""dragoman score: how good a model is on what it has not seen. How that is told hangs on what it learned: a file for
each (score_translations.py, score_texts.py, score_labels.py, score_images.py, score_words.py)."""

from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter

from dragoman.cli.options import Encoding, Flag, Model, Precision, Threads, Whole


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """How it is measured, and how it is told."""

    hypotheses: Path | None = None
    """Score this file's lines instead of translating; the model is not opened then."""
    beam: Whole | None = None
    """Beginnings kept at each step of the search; 1 is greedy."""
    by_length: Flag = False
    """Also the scores of short and long sentences apart."""
    plot: Path | None = None
    """Of a classifier: draw which labels were given for which into this .png or .svg."""
    src: str | None = None
    """The source's language, where a file holds several; else the model's."""
    tgt: str | None = None
    """The target's language."""
    encoding: Encoding = "utf-8"
    precision: Precision = "float32"
    threads: Threads = None
    json: Flag = False
    """One JSON object on one line."""


USUAL = Options()


def score(model: Model, *corpora: str, options: Options = USUAL) -> int:
    """Translate SOURCE and compare with REFERENCE by sacreBLEU: BLEU, chrF and TER with 95 % intervals.

    A language model is given one TEXT, and its perplexity is told: exp of the mean of −log p(token | all before it).
    A classifier is given lines of label<TAB>text, or images with labels: accuracy with Wilson's 95 % interval, F1,
    which labels it mixed up. Of images also numbers (R², mean error) and masks (mean IoU, pixel accuracy).
    Vectors of words are given what people judged: word<TAB>word<TAB>score, or analogies of four words a line.

    Parameters
    ----------
    corpora
        SOURCE and REFERENCE, line by line; or one .tsv, .jsonl or .tmx; or a TEXT for a language model; or files of
        label<TAB>text for a classifier; or images (idx, .npz, a folder) for a model that reads them; or tests of words,
        such as WordSim-353 and questions-words.txt, for word2vec and glove.
    """
    from dragoman.cli.kind import kind_of
    from dragoman.cli.score_images import score_images
    from dragoman.cli.score_labels import refuse_plot_of, score_labels
    from dragoman.cli.score_texts import score_text
    from dragoman.cli.score_translations import score_translations
    from dragoman.cli.score_words import score_words
    from dragoman.decoding.settings import refuse_wide
    from dragoman.images import FAMILIES as IMAGE_FAMILIES
    from dragoman.jobs.machine import refuse_odd_threads
    from dragoman.text.corpus import is_lone_text

    refuse_odd_threads(options.threads)
    refuse_wide(options.beam)
    task, family = ("", "") if options.hypotheses else kind_of(Path(model))
    if family in IMAGE_FAMILIES:
        return score_images(model, corpora, options)
    if task == "classify":
        return score_labels(model, corpora, options)
    if options.plot:
        refuse_plot_of(model)
    if task == "embed":
        return score_words(model, corpora, options)
    if is_lone_text(corpora) and not options.hypotheses:
        return score_text(model, task, Path(corpora[0]), options)
    return score_translations(model, task, corpora, options)
