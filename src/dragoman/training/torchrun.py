"""Whether torchrun started this process, and as which worker: told by the environment, without torch."""

import os


def is_under_torchrun() -> bool:
    return {"TORCHELASTIC_RUN_ID", "RANK"} <= os.environ.keys()


def is_first_worker() -> bool:
    """The one that speaks for all; also where nobody was started by torchrun."""
    return os.environ.get("RANK", "0") == "0"
