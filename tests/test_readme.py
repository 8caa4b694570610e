"""The README's commands, run as they are written, one after another, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty folder, and a `dragoman` on the path that is this source tree."""
    place = tmp_path_factory.mktemp("readme")
    command = place / "bin" / "dragoman"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dragoman "$@"\n')
    command.chmod(0o755)
    return place


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=lambda number: BLOCKS[number][1].split("\n")[0][:40])
def test_an_example_works_as_pasted(folder, number):
    language, text = BLOCKS[number]
    program = ["sh", "-euc", text] if language == "sh" else [sys.executable, "-c", text]
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    found = subprocess.run(program, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout or "dragoman train" in text


def test_there_are_five_examples():
    assert len(BLOCKS) == 5


def test_every_file_the_documents_name_is_there():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
