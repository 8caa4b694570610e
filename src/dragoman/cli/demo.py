"""dragoman demo: see a translator learn, within minutes of installing it."""

import json as json_module
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.options import Flag, Threads, Whole

if TYPE_CHECKING:
    from dragoman.decoding.translate import Translator


def demo(
    *,
    out: Path = Path("demo"),
    seconds: float = 86.0,
    seed: Whole = 1,
    threads: Threads = None,
    open: Flag = False,
    json: Flag = False,
) -> int:
    """Train a translator on generated data, show it learn, translate with it, and save its page.

    Dates in ten languages become ISO 8601 (`Mittwoch, der 29. Februar 2012` → `2012-02-29`), number words in five
    become digits (`dreiundfünfzig` → `53`). Tested on dates and numbers that training never saw in any form.

    Parameters
    ----------
    out
        The folder for everything the demo makes.
    seconds
        How long the training may take; making and reading the data comes before.
    seed
        Decides the first weights, the order of the batches and the dropout.
    open
        Open the page in a browser at the end.
    json
        Print every event as one JSON object a line.
    """
    refuse_nonsense(seconds, seed, threads)

    from dragoman.cli.display import show
    from dragoman.decoding.translate import Translator
    from dragoman.jobs.demo import TRY, exact_by_kind, make_demo
    from dragoman.jobs.open import load_as
    from dragoman.jobs.start import start

    made = make_demo(out, seconds, seed)
    show(start(made.request, threads=threads, training_alone=True), as_json=json)
    translator = load_as(Translator, out)
    exact = exact_by_kind(translator, made.test)
    lines = out / "try.txt"
    if not lines.exists():
        lines.write_text("\n".join(TRY) + "\n", encoding="utf-8")
    tried = [line for line in lines.read_text(encoding="utf-8").split("\n") if line]
    outputs = [translation.text for translation in translator.translate(tried)]
    page = draw(translator, tried, out / "page.html")
    if json:
        print(json_module.dumps({"event": "demo", "exact": exact, "page": str(page), "outputs": outputs}))
    else:
        tell(exact, {kind: len(pairs) for kind, pairs in made.test.items()}, dict(zip(tried, outputs, strict=True)))
        print(f"\nThe attention behind these: {page}\nChange {lines}, then: dragoman translate {out} --input {lines}")
    if open:
        webbrowser.open(page.resolve().as_uri())
    return 0


def refuse_nonsense(seconds: float, seed: int, threads: int | None) -> None:
    from dragoman.errors import UsageError
    from dragoman.jobs.machine import refuse_odd_threads

    refuse_odd_threads(threads)
    if not 0 < seconds < float("inf"):
        raise UsageError("E-USE-12", f"--seconds {seconds:g} is no time to train; give 1 or more")
    if seed < 0:
        raise UsageError("E-USE-12", f"--seed {seed} cannot be; give 0 or more")


def tell(exact: dict[str, float], counts: dict[str, int], outputs: dict[str, str]) -> None:
    print("\nRight to the last digit, on items that training never saw in any form:")
    for kind, share in exact.items():
        print(f"  {kind:<8} {share:5.1f} %  of {counts[kind]:,}")
    print("\nTranslated with it:")
    for source, output in outputs.items():
        print(f"  {source}  →  {output}")
    sys.stdout.flush()


def draw(translator: "Translator", sources: list[str], path: Path) -> Path:
    """One page with the cross-attention of each sentence."""
    from dragoman.seeing.heatmap import Shown, attention_page

    shown = []
    for source, translation in zip(sources, translator.translate(sources), strict=True):
        if translation.text:
            shown.append(Shown(source, translation.text, translator.look(source, translation.text)))
    note = "Rows are the characters written, columns the pieces of the source; a darker cell had more of the attention."
    path.write_text(attention_page("What the decoder looked at", note, shown), encoding="utf-8")
    return path
