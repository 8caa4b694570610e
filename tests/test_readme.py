"""The README's commands, run as they are written, one after another, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli import make_app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
BLOCKS = [fence for fence in FENCES if fence[0] in ("sh", "python")]
COMMANDS = [
    part.strip()
    for language, text in FENCES
    for part in re.split(r"&&|\||\n", text)
    if language in ("", "sh") and part.strip().startswith("dragoman ")
]


@pytest.fixture
def folder(tmp_path):
    """An empty folder, and a `dragoman` on the path that is this source tree."""
    command = tmp_path / "bin" / "dragoman"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dragoman "$@"\n')
    command.chmod(0o755)
    return tmp_path


def test_the_examples_work_as_pasted_one_after_another(folder):
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for language, text in BLOCKS:
        program = ["sh", "-euc", text] if language == "sh" else [sys.executable, "-c", text]
        found = subprocess.run(program, cwd=folder, capture_output=True, text=True, env=environment, check=False)
        assert found.returncode == 0, f"{text}\n{found.stderr}"
        assert "Traceback" not in found.stderr
        assert found.stdout or "dragoman train" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_a_block_can_be_read(command):
    """Those that need files of the reader's are not run; but the command is there, and so is each of its options."""
    _, *words = shlex.split(command, comments=True)
    called, _, _ = make_app().parse_args(words, exit_on_error=False, print_error=False)
    assert called.__module__.startswith("dragoman.cli.")


def test_the_blocks_without_a_language_are_looked_at_too():
    assert len(COMMANDS) > 30
    assert {words.split()[1] for words in COMMANDS} >= {"train", "generate", "embed", "compare", "import"}


def test_there_are_five_examples():
    assert len(BLOCKS) == 5


def test_every_file_the_documents_name_is_there():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
