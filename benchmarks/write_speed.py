"""Runs every benchmark of speed, and writes what it found into docs/speed.md: a table for each, and the machine.
At the end it says which of the figures that were aimed at are not reached.

python benchmarks/write_speed.py [--only translating training]
"""

import argparse
import json
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
MARK = "<!-- what follows is written by benchmarks/write_speed.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="names of benchmarks, without speed_; else all of them")
    options = parser.parse_args()
    files = sorted(HERE.glob("speed_*.py"))
    chosen = [file for file in files if not options.only or file.stem.removeprefix("speed_") in options.only]
    known, missed = sections(), list[str]()
    for file in chosen:
        found = run(file)
        known[file.stem] = section(file, found)
        write(known)
        missed += [f"{file.name}: {json.dumps(line, ensure_ascii=False)}" for line in found if misses(line)]
    print("\n".join([f"{len(missed)} figures are not reached", *missed]))


def misses(line: dict[str, Any]) -> bool:
    """Whether a line has a figure and what was aimed at, and the first falls short."""
    over, share = line.get("ours over it"), line.get("share of products")
    short = isinstance(line.get("wanted"), float) and over is not None and over[0] < line["wanted"]
    small = isinstance(line.get("wanted share"), float) and share is not None and share < line["wanted share"]
    return short or small or ("at most" in line and line["found"] > line["at most"])


def run(file: Path) -> list[dict[str, Any]]:
    """Its JSON lines, which are shown as they come."""
    found = []
    with subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if line.startswith("{"):
                found.append(json.loads(line))
    if process.returncode:
        sys.exit(f"{file.name} ended with {process.returncode}")
    return found


def section(file: Path, lines: list[dict[str, Any]]) -> str:
    question = next(line for line in file.read_text(encoding="utf-8").split("\n") if "Question:" in line)
    told = question.partition("Question:")[2].strip()
    tables = [table([line for line in lines if line.keys() == keys]) for keys in distinct(lines)]
    return f"## {told}\n\n`python benchmarks/{file.name}`, {date.today()}, {machine()}\n\n" + "\n".join(tables)


def distinct(lines: list[dict[str, Any]]) -> list[Any]:
    return list({tuple(line): line.keys() for line in lines}.values())


def table(lines: list[dict[str, Any]]) -> str:
    columns = [key for key in lines[0] if key != "benchmark"]
    rows = [" | ".join(columns), "|".join("---" for _ in columns)]
    rows += [" | ".join(cell(line[key]) for key in columns) for line in lines]
    return "".join(f"| {row} |\n" for row in rows)


def cell(value: Any) -> str:
    if isinstance(value, list) and len(value) == 3:
        return f"**{value[0]}** ({value[1]} … {value[2]})"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def machine() -> str:
    import torch

    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().split("\n") if line.startswith("model name")] if info.exists() else []
    name = names[0].partition(":")[2].strip() if names else platform.machine()
    return f"{len(names) or '?'} cores, {name} ({torch.backends.cpu.get_cpu_capability()}), torch {torch.__version__}"


def sections() -> dict[str, str]:
    """Those of the page as it is, by the name of their benchmark."""
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[2] if PAGE.exists() else ""
    parts = [f"## {part.strip()}" for part in written.split("\n## ")[1:]]
    return {part.partition("benchmarks/")[2].partition(".py")[0]: part for part in parts}


def write(known: dict[str, str]) -> None:
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0] if PAGE.exists() else "# Speed\n\n"
    body = "\n\n".join(known[name].strip() for name in sorted(known))
    PAGE.write_text(f"{head}{MARK}\n\n{body}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
