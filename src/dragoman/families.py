"""The names that a person may ask for: tasks, the families that learn each of them, sizes. Importing this is quick.

What stands behind the names is in `dragoman.models`, whose table has the same ones; a test compares the two.
"""

from dragoman.config import nearest
from dragoman.errors import UsageError

FAMILIES: dict[str, tuple[str, ...]] = {  # task -> families, in the order of `dragoman.models`
    "translate": ("transformer", "rnn", "t5", "marian"),
    "write": ("gpt", "rnn"),
    "fill": ("bert",),
    "embed": ("word2vec", "glove", "bert", "vit"),
    "restore": ("t5",),
    "classify": ("bag", "rnn", "bert", "mlp", "cnn", "vit"),
    "regress": ("mlp", "cnn", "vit"),
    "segment": ("cnn", "vit"),
}
PRESETS = ("tiny", "small", "base")
DEEP_PRESETS = ("small-deep", "base-deep")  # a deep encoder, which works once, and a shallow decoder, which works for
DEEP_FAMILIES = ("transformer", "marian")  # every token: as much learned, faster to translate with
CELLS = ("gru", "lstm")  # of an rnn; taken for families by many


def refuse_unknown_task(task: str) -> None:
    if task not in FAMILIES:
        raise UsageError("E-USE-08", f"there is no task {task!r}; {nearest(task, list(FAMILIES))}")


def refuse_unknown_family(family: str, task: str = "") -> None:
    """Where the task is not known yet, a family of any task will do."""
    learns_to = [one for one, families in FAMILIES.items() if family in families]
    if task in learns_to or (learns_to and not task):
        return
    if learns_to:
        raise UsageError(
            "E-SET-02",
            f"the family {family!r} learns to {' and to '.join(learns_to)}, not to {task}; "
            f"choose --family {' or '.join(FAMILIES[task])}, or another --task",
        )
    known = FAMILIES[task] if task else dict.fromkeys(name for names in FAMILIES.values() for name in names)
    cell = f"it is a cell: --family rnn --set model.cell={family}, or rnn+{family} to compare"
    hint = cell if family in CELLS else nearest(family, list(known))
    raise UsageError("E-SET-02", f"there is no family {family!r}; {hint}")


def presets_of(family: str) -> tuple[str, ...]:
    """Those that a family has; all that there are where the family is not known yet."""
    return PRESETS if family and family not in DEEP_FAMILIES else (*PRESETS, *DEEP_PRESETS)


def refuse_unknown_preset(preset: str, family: str = "") -> None:
    known = presets_of(family)
    if preset in DEEP_PRESETS and preset not in known:
        raise UsageError(
            "E-SET-07",
            f"the family {family!r} has no preset {preset!r}, which are for {' and '.join(DEEP_FAMILIES)}; "
            f"choose one of {', '.join(known)}",
        )
    if preset not in known:
        raise UsageError("E-SET-07", f"there is no preset {preset!r}; {nearest(preset, list(known))}")
