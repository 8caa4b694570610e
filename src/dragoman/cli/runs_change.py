"""`dragoman runs average` and `remove`: the commands that write a model, or take something away."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dragoman.cli.options import Whole
from dragoman.cli.runs import Run, draw_size

if TYPE_CHECKING:
    from dragoman.runs.inventory import Removal

MEASURED = ("int8", "shortlist")  # of a model's settings: what was found of its own weights
NO_WAY_BACK = "Without checkpoints the same train command refuses to go on, and --fresh begins anew."


# ── average ───────────────────────────────────────────────────────────────────────────────


def average(
    run: Run,
    /,
    *,
    out: Annotated[Path, Parameter(help="the model's folder to write; it must not be there yet")],
    last: Annotated[Whole | None, Parameter(help="average the newest N checkpoints; else all")] = None,
    steps: Annotated[
        list[Whole] | None, Parameter(consume_multiple=1, negative="", help="average those of these steps")
    ] = None,
) -> None:
    """write a model whose weights are the mean of several checkpoints'"""
    from dragoman.runs.inventory import choose_checkpoints, refuse_no_run, step_at

    refuse_no_run(run)
    refuse_taken(out)
    chosen = choose_checkpoints(run, last, steps)
    write_average(run, chosen, out)
    named = ", ".join(f"{step_at(path):,}" for path in chosen)
    print(f"dragoman: the mean of steps {named}; it was not validated: dragoman score {out} …", file=sys.stderr)
    print(out)


def refuse_taken(out: Path) -> None:
    """The folder, and the two names that saving uses for a moment beside it."""
    from dragoman.errors import UsageError

    beside = (out.with_name(out.name + ending) for ending in (".new", ".old")) if out.name else ()
    for path in (out, *beside):
        if path.exists() or path.is_symlink():
            raise UsageError("E-USE-03", f"{path} is there already; remove it, or name another folder as --out")


def write_average(run: Path, chosen: list[Path], out: Path) -> None:
    from dragoman.errors import DataError
    from dragoman.runs.checkpoint import average_weights
    from dragoman.runs.model import open_model, save_model
    from dragoman.runs.weights import load_weights, weights_of

    saved = open_model(run)
    try:
        mean = average_weights(chosen)
    except FileNotFoundError as problem:
        raise DataError("E-RUN-02", f"{problem.filename or chosen[0]} went away while it was read; try again") from None
    load_weights(saved.model, mean, run)
    about = {name: value for name, value in saved.about.items() if name not in MEASURED}
    save_model(out, saved.model.config, weights_of(saved.model), saved.tokens, about, saved.shortlist)


# ── remove ────────────────────────────────────────────────────────────────────────────────


def remove_(
    run: Run,
    /,
    *,
    checkpoints: Annotated[
        bool, Parameter(negative="", help="only its checkpoints: the model stays, and works as before")
    ] = False,
    yes: Annotated[bool, Parameter(negative="", help="do not ask")] = False,
) -> int:
    """remove a run, or only its checkpoints; what dragoman did not write into its folder stays"""
    from dragoman.errors import UsageError
    from dragoman.runs.inventory import plan_removal, refuse_to_remove, remove
    from dragoman.runs.lock import only_writer

    refuse_to_remove(run)
    if not yes and not can_ask():
        raise UsageError("E-RUN-15", f"there is no terminal to ask whether {run} may be removed; say so with --yes")
    with only_writer(run):
        removal = plan_removal(run, only_checkpoints=checkpoints)
        if not removal.goes:
            print(f"dragoman: {run} has no checkpoints to remove", file=sys.stderr)
            return 0
        if not yes and not agreed(removal, checkpoints):
            print("dragoman: nothing was removed", file=sys.stderr)
            return 0
        sizes = draw_removal(removal)
        remove(removal)
    print("\n".join(f"removed  {line}" for line in sizes))
    tell_rest(removal, checkpoints)
    return 0


def can_ask() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def agreed(removal: "Removal", only_checkpoints: bool) -> bool:
    for line in draw_removal(removal):
        print(f"goes     {line}", file=sys.stderr)
    for path in removal.stays:
        print(f"stays    {path}", file=sys.stderr)
    if only_checkpoints:
        print(NO_WAY_BACK, file=sys.stderr)
    print("Remove this for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def draw_removal(removal: "Removal") -> list[str]:
    return [
        f"{removal.run / name}  {draw_size(sum(path.lstat().st_size for path in paths))}"
        for name, paths in removal.by_part().items()
    ]


def tell_rest(removal: "Removal", only_checkpoints: bool) -> None:
    if only_checkpoints:
        print(f"dragoman: {NO_WAY_BACK[0].lower()}{NO_WAY_BACK[1:]}", file=sys.stderr)
    elif removal.stays:
        names = ", ".join(str(path.relative_to(removal.run)) for path in removal.stays[:5])
        more = f" and {len(removal.stays) - 5} more" if len(removal.stays) > 5 else ""
        print(f"dragoman: {names}{more} in {removal.run} stayed: dragoman did not write it", file=sys.stderr)
