"""What a proof found, and whether it is what was promised: a script ends with 1 where it is not."""

import json
import sys
from typing import Any

broken: list[str] = []


def tell(holds: bool, **found: Any) -> None:
    line = json.dumps(found)
    print(line, flush=True)
    if not holds:
        broken.append(line)


def end() -> None:
    if broken:
        sys.exit("\n".join(["not as promised:", *broken]))
