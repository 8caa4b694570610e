"""`dragoman runs` on a real run: what it tells is so, what it averages translates, what it removes was named."""

import json
import os
import pty
import shutil
import subprocess
import sys

import pytest
import torch

import dragoman
from dragoman.cli import main
from dragoman.errors import DataError
from dragoman.runs.checkpoint import checkpoints
from dragoman.runs.weights import read_tensors
from dragoman.text.generated import generate

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}


SETTINGS = {
    "model": {"width": 16, "heads": 2, "layers": 1, "hidden": 16, "dropout": 0.0},
    "training": {"tokens_per_step": 256, "validate_every": 3, "save_every": 3, "report_every": 1},
    "tokenizer": {"kind": "words"},
}


def train(folder, out):
    corpus, valid = folder / "train.tsv", folder / "valid.tsv"
    return dragoman.train(corpus, valid=valid, steps=9, out=out, settings=SETTINGS, threads=1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    pairs, held_out = generate("copy", count=200, seed=1, held_out=10)
    for name, part in (("train", pairs), ("valid", held_out)):
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in part))
    return train(folder, folder / "runs" / "copy")


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "runs" / "copy")


def call(capsys, *arguments):
    code = main(["runs", *map(str, arguments)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, said.out, said.err


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


# ── list and show ─────────────────────────────────────────────────────────────────────────


def test_a_list_tells_of_each_run(run, capsys):
    shutil.copytree(run, run.parent / "broken")
    (run.parent / "broken" / "run.toml").write_text("[run")
    code, out, _ = call(capsys, "list", run.parent, "--json")
    broken, whole = map(json.loads, out.splitlines())
    assert code == 0
    assert (whole["name"], whole["task"], whole["family"]) == ("copy", "translate", "transformer")
    assert (whole["step"], whole["steps"], whole["finished"], whole["problems"]) == (9, 9, True, [])
    assert whole["loss"] > 0
    assert whole["scores"].keys() == {"bleu", "chrf"}
    assert "is not TOML" in broken["problems"][0]
    _, out, _ = call(capsys, "list", run.parent)
    assert "9 of 9" in out
    assert "finished" in out
    assert "is not TOML" in out


def test_a_list_of_nothing_says_so(tmp_path, capsys, monkeypatch):
    assert call(capsys, "list", tmp_path) == (0, "", f"dragoman: there is no run below {tmp_path}\n")
    monkeypatch.chdir(tmp_path)
    code, _, error = call(capsys, "list")
    assert code == 3
    assert "there is no folder runs" in error


def test_a_run_is_shown(run, capsys):
    _, out, _ = call(capsys, "show", run, "--json")
    shown = json.loads(out)
    assert shown["settings"]["model"]["width"] == 16
    assert shown["settings"]["training"]["steps"] == 9
    assert shown["versions"]["torch"] == torch.__version__
    assert [len(file["sha256"]) for file in shown["files"]] == [64, 64]
    assert [file["now"] for file in shown["files"]] == ["there", "there"]
    assert [part["step"] for part in shown["parts"] if "step" in part] == [9, 6, 3]
    assert all(part["whole"] for part in shown["parts"])
    assert shown["model"]["numbers"] == sum(p.numel() for p in dragoman.load(run).model.parameters())
    assert shown["last_report"]["step"] == shown["last_validation"]["step"] == 9
    _, out, _ = call(capsys, "show", run)
    for words in ("finished, 9 of 9 steps", "width=16", "sha256", "checkpoints/step-00000006: whole", "the best"):
        assert words in out


@pytest.mark.parametrize("name", ["run.toml", "log.jsonl", "model/config.json", "model/weights.safetensors"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"[]", b"[run]\nfamily = 3\n[files.1]\n"])
def test_no_damage_ends_in_a_traceback(run, name, content, capsys):
    (run / name).write_bytes(content)
    for command in ("list", "show", "verify"):
        for options in ([], ["--json"]):
            assert call(capsys, command, run, *options)[0] in (0, 3)


def test_nothing_of_this_imports_torch(run):
    lines = [["list", str(run)], ["show", str(run)], ["verify", str(run)], ["show", "none"], ["remove", str(run)]]
    code = (
        f"import sys\nfrom dragoman.cli import main\nfor line in {lines!r}:\n"
        "    main(['runs', *line])\n    assert 'torch' not in sys.modules, line"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("command", ["show", "verify", "remove"])
def test_a_folder_that_is_no_run_is_refused(command, tmp_path, capsys):
    (tmp_path / "precious").write_text("x")
    for path, words in ((tmp_path, "it has no run.toml"), (tmp_path / "none", "there is no run at")):
        code, out, error = call(capsys, command, path)
        assert (code, out) == (3, "")
        assert words in error
        assert error.endswith("[E-RUN-11]\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious"]


# ── verify ────────────────────────────────────────────────────────────────────────────────


def test_a_whole_run_is_said_to_be(run, capsys):
    code, out, error = call(capsys, "verify", run)
    assert (code, error) == (0, "")
    assert out.count("whole ") == 7
    assert out.splitlines()[-1].endswith("step-00000009, step 9")


def test_damage_is_named_and_what_a_resume_would_use(run, trained, capsys):
    flip_a_bit(run / "checkpoints" / "step-00000009" / "weights.safetensors")
    (run / "model" / "weights.safetensors").write_bytes(b"")
    (run / "tokenizer" / "manifest.json").unlink()
    code, out, _ = call(capsys, "verify", run, trained)
    assert code == 3
    damaged = [line for line in out.splitlines() if line.startswith("damaged")]
    assert [line.split(": ", 1)[1] for line in damaged] == [
        "has no manifest that can be read; it was not saved completely",
        "is damaged: the checksum of weights.safetensors differs from its manifest",
        "is damaged: the checksum of weights.safetensors differs from its manifest",
    ]
    assert f"the same train command refuses {run}: tokenizer must be whole" in out
    _, out, _ = call(capsys, "verify", run, "--json")
    values = [json.loads(line) for line in out.splitlines()]
    assert [one["whole"] for one in values[:-1]] == [True, False, True, False, False, True, True]
    assert values[-1]["resume"].endswith("step-00000006")


def test_after_a_damaged_checkpoint_a_resume_uses_the_one_before(run, capsys):
    flip_a_bit(run / "checkpoints" / "step-00000009" / "weights.safetensors")
    assert f"goes on from {run}/checkpoints/step-00000006, step 6" in call(capsys, "verify", run)[1]


def test_a_run_without_checkpoints_is_said_to_be(run, capsys):
    shutil.rmtree(run / "checkpoints")
    code, out, _ = call(capsys, "verify", run)
    assert code == 0
    assert "has no checkpoint to go on from: the same train command refuses it" in out


# ── average ───────────────────────────────────────────────────────────────────────────────


def test_a_mean_is_a_model_that_translates(run, tmp_path, capsys):
    code, out, _ = call(capsys, "average", run, "--steps", 9, 3, "--out", tmp_path / "mean")
    assert (code, out) == (0, f"{tmp_path / 'mean'}\n")
    mean = read_tensors(tmp_path / "mean" / "weights.safetensors")
    new, _, old = (read_tensors(path / "weights.safetensors") for path in checkpoints(run))
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, (new[name] + old[name]) / 2)
    translator = dragoman.load(tmp_path / "mean")
    assert len(translator.translate(["a b"])) == 1
    assert "int8" in dragoman.load(run).about
    assert "int8" not in translator.about  # it was measured with other weights
    call(capsys, "average", run, "--last", 2, "--out", tmp_path / "two")
    assert not torch.equal(
        read_tensors(tmp_path / "two" / "weights.safetensors")[name], mean[name]
    )  # another two than before


def test_nothing_that_stands_there_is_written_over(run, tmp_path, capsys):
    for name in ("mean", "mean.old", "mean.new"):
        (tmp_path / name).mkdir()
        code, _, error = call(capsys, "average", run, "--out", tmp_path / "mean")
        assert code == 2
        assert f"{tmp_path / name} is there already" in error
        (tmp_path / name).rmdir()


def test_a_mean_of_damaged_or_too_few_is_refused(run, tmp_path, capsys):
    out = ["--out", tmp_path / "mean"]
    flip_a_bit(run / "checkpoints" / "step-00000006" / "weights.safetensors")
    assert call(capsys, "average", run, *out)[0] == 3
    assert call(capsys, "average", run, "--last", 1, *out)[0] == 2
    assert call(capsys, "average", run, "--last", 4, *out)[0] == 3
    assert call(capsys, "average", run, "--steps", 3, 4, *out)[0] == 3
    assert not (tmp_path / "mean").exists()


# ── remove ────────────────────────────────────────────────────────────────────────────────


def everything(folder):
    return sorted(path for path in folder.rglob("*"))


def test_without_a_terminal_nothing_is_removed_unless_it_is_said(run):
    before = everything(run)
    command = [sys.executable, "-m", "dragoman", "runs", "remove", str(run)]
    for given in (subprocess.DEVNULL, subprocess.PIPE):
        found = subprocess.run(command, stdin=given, capture_output=True, text=True, env=ENVIRONMENT, check=False)
        assert found.returncode == 2
        assert found.stderr.endswith("say so with --yes [E-RUN-15]\n")
    assert everything(run) == before


def test_a_run_is_removed_and_what_is_not_its_own_stays(run, capsys):
    (run / "notes.txt").write_text("precious")
    other = shutil.copytree(run, run.parent / "other")
    code, out, error = call(capsys, "remove", run, "--yes")
    assert code == 0
    assert everything(run) == [run / "notes.txt"]
    assert f"removed  {run}/checkpoints/step-00000009" in out
    assert "notes.txt" not in out
    assert "notes.txt in" in error
    (other / "notes.txt").unlink()
    assert call(capsys, "remove", other, "--yes")[0] == 0
    assert not other.exists()


def test_without_its_checkpoints_a_run_still_translates(run, capsys):
    (run / "checkpoints" / "step-mine").mkdir()
    (run / "checkpoints" / "step-mine" / "weights.safetensors").write_text("precious")
    code, out, error = call(capsys, "remove", run, "--checkpoints", "--yes")
    assert code == 0
    assert out.count("removed") == 3
    assert "the same train command refuses to go on" in error
    assert everything(run / "checkpoints")[1:] == [run / "checkpoints" / "step-mine" / "weights.safetensors"]
    assert len(dragoman.load(run).translate(["a b"])) == 1
    assert call(capsys, "remove", run, "--checkpoints", "--yes") == (
        0, "", f"dragoman: {run} has no checkpoints to remove\n",
    )  # fmt: skip


def test_a_run_that_is_being_written_is_not_removed(run, capsys):
    code = (
        "import sys; from pathlib import Path; from dragoman.runs.lock import only_writer\n"
        "with only_writer(Path(sys.argv[1])): print('in', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as other:
        assert other.stdout.readline() == "in\n"
        before = everything(run)
        code, _, error = call(capsys, "remove", run, "--yes")
        assert code == 4
        assert f"is being written by process {other.pid}" in error
        assert everything(run) == before
        assert "training" in call(capsys, "list", run)[1]
        other.stdin.close()


def test_links_home_and_the_folder_one_is_in_are_not_removed(run, tmp_path, capsys, monkeypatch):
    before = everything(run)
    (tmp_path / "link").symlink_to(run)
    assert call(capsys, "remove", tmp_path / "link", "--yes")[0] == 2
    assert call(capsys, "remove", f"{tmp_path}/link/", "--yes")[0] == 2
    assert call(capsys, "remove", "/", "--yes")[0] == 2
    monkeypatch.setenv("HOME", str(run))
    assert call(capsys, "remove", run, "--yes")[0] == 2
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(run)
    assert call(capsys, "remove", ".", "--yes")[0] == 2
    assert everything(run) == before


@pytest.mark.parametrize(("answer", "gone"), [("n\n", False), ("\n", False), ("\x04", False), ("y\n", True)])
def test_a_terminal_is_asked_and_told_what_goes(run, answer, gone):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "runs", "remove", str(run)]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=ENVIRONMENT) as asked:
        os.close(theirs)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(ours, 1000)
        assert f"goes     {run}/checkpoints/step-00000003".encode() in said
        os.write(ours, answer.encode())
        assert asked.wait(timeout=60) == 0
    os.close(ours)
    assert run.exists() is not gone


@pytest.mark.parametrize("damaged", [False, True])
def test_a_run_without_whole_checkpoints_is_not_begun_again_over_its_model(trained, run, damaged):
    weights = (run / "model" / "weights.safetensors").read_bytes()
    for path in checkpoints(run):
        if damaged:
            flip_a_bit(path / "weights.safetensors")
        else:
            shutil.rmtree(path)
    kind = r"whole checkpoint to go on from \(.*there is none before it\)" if damaged else "checkpoint to go on from"
    with pytest.raises(DataError, match=f"a model and no {kind}"):
        train(trained.parents[1], run)
    assert (run / "model" / "weights.safetensors").read_bytes() == weights
