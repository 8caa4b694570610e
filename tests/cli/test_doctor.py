"""`dragoman doctor`: a line a check, whatever is broken; exit 4 only where nothing works without it."""

import json
import os
import socket
import subprocess
import sys
import tomllib
from collections import namedtuple
from pathlib import Path

import pytest

from dragoman.cli import doctor as module
from dragoman.cli import main

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
TOLD = ({"torch": "2.0", "capability": "AVX2", "threads": 1, "speed": 5e10}, "exit code 0")


@pytest.fixture
def without_torch(monkeypatch):
    """As if the other process had answered: only one test needs to wait for it."""
    monkeypatch.setattr(module, "ask_torch", lambda: TOLD)


def examine(capsys, *arguments):
    code = main(["doctor", "--json", *map(str, arguments)])
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    return code, {values["check"]: values for values in map(json.loads, said.out.splitlines())}, said.err


def test_this_machine_has_what_is_needed_and_its_speed_is_measured():
    command = [sys.executable, "-m", "dragoman", "doctor"]
    found = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    lines = {line.split()[1]: line for line in found.stdout.splitlines()}
    assert lines.keys() == {
        "python", "memory", "disk", "libraries", "matplotlib", "transformers", "browser", "port", "torch", "threads",
        "speed",
    }  # fmt: skip
    assert "GFLOP/s" in lines["speed"]
    assert "as OMP_NUM_THREADS=1 says" in lines["threads"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise ImportError('libtorch_cpu.so: cannot open shared object file')", "cannot open shared object file"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "it was ended by SIGILL"),
    ],
)
def test_a_torch_that_does_not_import_is_one_sentence_and_4(source, words, tmp_path):
    (tmp_path / "torch.py").write_text(source)
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"}
    command = [sys.executable, "-m", "dragoman", "doctor"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 4
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("dragoman: torch cannot be imported (")
    assert words in found.stderr
    assert found.stderr.endswith("[E-ENV-05]\n")
    assert "missing  torch" in found.stdout


@pytest.mark.usefixtures("without_torch")
def test_a_full_disk_is_one_sentence_and_4(capsys, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))
    code, found, error = examine(capsys)
    assert code == 4
    assert not found["disk"]["ok"]
    assert "the disk is full: 1 MB are free" in error
    assert error.endswith("[E-ENV-02]\n")


@pytest.mark.usefixtures("without_torch")
def test_a_port_in_use_is_a_note(capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, found, _ = examine(capsys, "--port", port)
    assert code == 0
    assert not found["port"]["ok"]
    assert "in use" in found["port"]["said"]
    assert examine(capsys, "--port", port)[1]["port"]["ok"]
    assert not examine(capsys, "--port", 99999)[1]["port"]["ok"]


@pytest.mark.usefixtures("without_torch")
def test_a_missing_extra_is_a_note_and_a_missing_library_is_not(capsys, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "matplotlib" else object())
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    code, found, _ = examine(capsys)
    assert code == 0
    assert "pip install 'dragoman[plot]'" in found["matplotlib"]["said"]
    assert not found["browser"]["ok"]
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "lxml" else object())
    code, _, error = examine(capsys)
    assert code == 4
    assert "lxml cannot be found" in error


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("name", ["look_at_memory", "look_at_browser", "look_at_python", "look_at_port"])
def test_a_check_that_fails_itself_is_a_line(capsys, monkeypatch, name):
    def fail(*_):
        raise RuntimeError("something\nodd")

    monkeypatch.setattr(module, name, fail)
    code, found, _ = examine(capsys)
    assert code == 0
    assert "cannot be told (RuntimeError: something odd)" in found[name.removeprefix("look_at_")]["said"]


def test_what_was_told_before_the_end_counts():
    told, failure = module.ask_torch("print('{\"torch\": \"2.0\"}', flush=True); raise SystemExit('no more')")
    assert told == {"torch": "2.0"}
    assert failure == "no more"


def test_a_containers_limit_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert module.limit_and_use(tmp_path) == (1000, 400)
    (tmp_path / "memory.max").write_text("max\n")
    assert module.limit_and_use(tmp_path)[1] == 0


def test_every_library_that_is_needed_is_looked_for():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    names = {name.split(">")[0].split(";")[0].strip() for name in project["dependencies"]}
    imported = {"pillow": "PIL"}
    elsewhere = {"torch", "cyclopts", "zstandard"}  # a line of its own; this command itself; only for old Pythons
    assert {imported.get(name, name) for name in names - elsewhere} == set(module.LIBRARIES)
    assert project["optional-dependencies"].keys() >= set(module.EXTRAS.values())
