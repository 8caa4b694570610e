"""What is told of a run's folder is what is in it, however damaged; and removing takes only what dragoman wrote."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from dragoman.errors import DataError, UsageError
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.runs.checkpoint import checkpoint_folder, checkpoints, newest_whole_checkpoint, save_checkpoint
from dragoman.runs.inventory import (
    LOG,
    checkpoint_paths,
    choose_checkpoints,
    count_numbers,
    find_runs,
    glance,
    inspect,
    is_being_written,
    is_ours,
    parts,
    plan_removal,
    read_settings,
    refuse_to_remove,
    remove,
    resume_point,
    summarise,
)
from dragoman.runs.lock import only_writer
from dragoman.runs.record import read_log, write_toml
from dragoman.runs.weights import weights_of
from dragoman.training.optimizers import make_optimizer


@pytest.fixture
def run(tmp_path):
    """A run of thirty steps, stopped at twenty, as its files would be."""
    torch.manual_seed(0)
    config = TransformerConfig(source_vocabulary=9, target_vocabulary=9, width=16, heads=2, layers=1, hidden=16)
    model = Transformer(config)
    folder = tmp_path / "runs" / "small"
    for step in (10, 20):
        state = {"seconds": 1.0, "best_nats": 2.0, "stopped": "", "steps": 30}
        save_checkpoint(folder, step, model, make_optimizer("sgd", model, 0.1), state)
    about = {"task": "translate", "family": "transformer"}
    write_toml(folder / "run.toml", {"run": about, "model": config.model_dump(), "training": {"steps": 30}})
    lines = [
        {"kind": "report", "step": 10, "nats_per_token": 3.0},
        {"kind": "validation", "step": 10, "nats_per_token": 2.0, "best": False, "samples": [], "bleu": 7.0},
        {"kind": "validation", "step": 20, "nats_per_token": 2.5, "best": False, "samples": [], "bleu": 6.0},
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 2')
    (folder / ".lock").touch()
    return folder


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


# ── in one line ───────────────────────────────────────────────────────────────────────────


def test_a_run_is_told_in_one_line(run):
    found = summarise(run)
    assert (found.task, found.family, found.problems) == ("translate", "transformer", [])
    assert found.progress == (20, 30, 2.0, {"bleu": 7.0}, "unfinished")
    assert found.bytes == sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    assert found.written == (run / "log.jsonl").stat().st_mtime


def test_every_run_below_a_folder_is_found_and_nothing_else(run):
    top = run.parent
    (top / "deep" / "er").mkdir(parents=True)
    shutil.copytree(run, top / "deep" / "er" / "other")
    (top / "killed" / "data").mkdir(parents=True)
    (top / "killed" / ".lock").touch()
    (top / "refused").mkdir()
    (top / "refused" / ".lock").touch()  # never got as far as writing anything
    (top / "link").symlink_to(run)
    assert find_runs(top) == [top / "deep/er/other", top / "killed", top / "small"]
    assert find_runs(run) == [run]
    assert "half-written" in summarise(top / "killed").problems[0]
    with pytest.raises(DataError, match="there is no folder"):
        find_runs(top / "none")


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "has no section run, model, training"), (b"[run]\nfami", "is not TOML"), (b"\xff\xfe\x00", "is not TOML")],
)
def test_settings_that_are_damaged_are_a_word_and_no_traceback(run, content, words):
    (run / "run.toml").write_bytes(content)
    found = summarise(run)
    assert words in found.problems[0]
    assert found.progress.done == 20


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\n", b"12\n[]\nnull\n", b'{"step": "x"}\n{"step": 1, "kind": "vali']
)
def test_a_log_that_is_damaged_is_read_as_far_as_it_goes(run, content):
    (run / "log.jsonl").write_bytes(content)
    assert read_log(run / LOG) == []
    assert summarise(run).progress.loss == 2.0  # the checkpoint knows it too


def test_numbers_that_are_none_are_left_out(run):
    (run / "log.jsonl").write_text('{"kind": "validation", "step": 3, "nats_per_token": NaN}\n')
    (checkpoint_folder(run, 20) / "state.json").write_text('{"best_nats": Infinity}')
    assert summarise(run).progress.loss is None


def test_a_run_without_checkpoints_is_told_by_its_log(run):
    shutil.rmtree(run / "checkpoints")
    assert summarise(run).progress[:3] == (20, 30, 2.0)


def test_weights_are_counted_by_their_head_alone(run):
    weights = checkpoint_folder(run, 10) / "weights.safetensors"
    config = TransformerConfig(source_vocabulary=9, target_vocabulary=9, width=16, heads=2, layers=1, hidden=16)
    assert count_numbers(weights) == sum(tensor.numel() for tensor in weights_of(Transformer(config)).values())
    cut_in_half(weights)
    assert count_numbers(weights) is None


# ── whole or not ──────────────────────────────────────────────────────────────────────────


def damage(name, how):
    return lambda folder: how(folder / name)


DAMAGES = {
    "a flipped bit": (damage("weights.safetensors", flip_a_bit), "the checksum of weights.safetensors differs", False),
    "cut off": (damage("weights.safetensors", cut_in_half), "the checksum of weights.safetensors differs", True),
    "a missing file": (damage("state.json", lambda path: path.unlink()), "state.json is missing", True),
    "no manifest": (damage("manifest.json", lambda path: path.unlink()), "has no manifest that can be read", True),
    "half a manifest": (damage("manifest.json", cut_in_half), "has no manifest that can be read", True),
    "a list as manifest": (
        damage("manifest.json", lambda path: path.write_text("[1]")),
        "has no manifest that can be read",
        True,
    ),
    "a number as manifest": (
        damage("manifest.json", lambda path: path.write_text("1")),
        "has no manifest that can be read",
        True,
    ),
}


@pytest.mark.parametrize(("harm", "words", "at_a_glance"), DAMAGES.values(), ids=DAMAGES)
def test_every_damage_is_found(run, harm, words, at_a_glance):
    folder = checkpoint_folder(run, 20)
    assert inspect(folder) == glance(folder) == ""
    harm(folder)
    assert words in inspect(folder)
    assert bool(summarise(run).problems) == at_a_glance
    found = parts(run, read_settings(run))
    assert [part.name for part in found if part.problem] == ["checkpoints/step-00000020"]
    assert resume_point(run, found) == checkpoint_folder(run, 10)


def test_a_run_goes_on_from_where_it_is_said_to(run):
    assert checkpoint_paths(run) == checkpoints(run)
    for step in (20, 10):
        assert resume_point(run, parts(run, read_settings(run))) == newest_whole_checkpoint(run)[0]
        flip_a_bit(checkpoint_folder(run, step) / "state.json")
    assert resume_point(run, parts(run, read_settings(run))) is newest_whole_checkpoint(run)[0] is None


def test_a_model_or_tokenizer_that_should_be_there_is_missed(run):
    with (run / "run.toml").open("a") as file:
        file.write('[tokenizer]\nkind = "words"\n')
    with (run / "log.jsonl").open("a") as file:
        file.write('\n{"kind": "validation", "step": 20, "nats_per_token": 1.5, "best": true}\n')
    missing = {part.name: part.problem for part in parts(run, read_settings(run)) if part.problem}
    assert missing.keys() == {"tokenizer", "model"}


def test_a_held_lock_is_seen_and_left_alone(run):
    assert not is_being_written(run)
    with only_writer(run):
        assert is_being_written(run)
        assert summarise(run).progress.state == "training"
    assert not is_being_written(run)


# ── averaging ─────────────────────────────────────────────────────────────────────────────


def test_checkpoints_are_chosen_by_number_or_by_step(run):
    both = [checkpoint_folder(run, 10), checkpoint_folder(run, 20)]
    assert choose_checkpoints(run, None, None) == choose_checkpoints(run, 2, None) == both
    assert choose_checkpoints(run, None, [20, 10]) == both


@pytest.mark.parametrize(
    ("last", "steps", "kind", "words"),
    [
        (2, [10, 20], UsageError, "give one of them"),
        (1, None, UsageError, "a mean of 1 checkpoints"),
        (0, None, UsageError, "a mean of 0 checkpoints"),
        (None, [10, 10], UsageError, "a mean of 1 checkpoints"),
        (3, None, DataError, "2 of the 3 checkpoints needed; those of these steps are there: 10, 20"),
        (None, [10, 15], DataError, "no checkpoint of step 15"),
    ],
)
def test_a_mean_that_cannot_be_is_refused(run, last, steps, kind, words):
    with pytest.raises(kind, match=words):
        choose_checkpoints(run, last, steps)


def test_a_damaged_checkpoint_is_not_averaged(run):
    flip_a_bit(checkpoint_folder(run, 20) / "weights.safetensors")
    with pytest.raises(DataError, match=r"the checksum of weights.safetensors differs"):
        choose_checkpoints(run, None, None)


# ── removing ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name", ["model/shortlist.safetensors", "data/manifest.json", "checkpoints/step-00000060.aside/state.json"]
)
def test_what_a_run_may_hold_goes_when_it_is_removed(name):
    assert is_ours(name)


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt", "page.html", "run.toml.old", "corpus/train.source", "data/mine.tsv", "data/train/mine.bin",
        "model/README.md", "checkpoints/notes.txt", "checkpoints/step-best/weights.safetensors",
        "model.mine/config.json", "checkpoints/step-00000010/mine/weights.safetensors", "tokenizer/mine.json",
    ],
)  # fmt: skip
def test_what_a_person_put_into_a_run_stays(run, name):
    assert not is_ours(name)
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text("precious")
    removal = plan_removal(run, only_checkpoints=False)
    assert removal.stays == [run / name]
    remove(removal)
    assert [path for path in run.rglob("*") if path.is_file()] == [run / name]


@pytest.mark.parametrize(
    "name",
    [
        "run.toml.new", "log.jsonl.new", "model.old/config.json", "model.new/tokenizer/joint.model",
        "tokenizer/source.pieces.json", "checkpoints/step-00000030.new/optimizer.safetensors", "data/valid/answers.bin",
        "data/pairs/train.keys", "model/weights.safetensors", "checkpoints/step-00000030/carried.safetensors",
    ],
)  # fmt: skip
def test_what_a_kill_left_behind_goes_too(run, name):
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text("x")
    remove(plan_removal(run, only_checkpoints=False))
    assert not run.exists()


def test_links_are_neither_followed_nor_removed(run, tmp_path):
    far = tmp_path / "far"
    shutil.copytree(run / "checkpoints", far)
    before = sorted(far.rglob("*"))
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").symlink_to(far)
    (run / "model").mkdir()
    (run / "model" / "config.json").symlink_to(far / "step-00000010" / "state.json")
    removal = plan_removal(run, only_checkpoints=False)
    assert removal.stays == [run / "checkpoints", run / "model" / "config.json"]
    remove(removal)
    assert sorted(far.rglob("*")) == before
    assert not (run / "run.toml").exists()


def test_a_removal_that_is_cut_off_can_be_done_again(run):
    removal = plan_removal(run, only_checkpoints=False)
    assert {path.name for path in removal.goes[-2:]} == {"run.toml", ".lock"}
    remove(removal._replace(goes=removal.goes[:3]))
    refuse_to_remove(run)  # still a run
    remove(plan_removal(run, only_checkpoints=False))
    assert not run.exists()


def test_places_that_nobody_can_mean_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(run))
    with pytest.raises(UsageError, match="holds your home"):
        refuse_to_remove(run)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(run)
    with pytest.raises(UsageError, match="the folder you are in"):
        refuse_to_remove(run)
    monkeypatch.chdir(tmp_path)
    for place in ("/", "~", "."):
        with pytest.raises((UsageError, DataError)):
            refuse_to_remove(Path(place).expanduser())
    (tmp_path / "link").symlink_to(run)
    with pytest.raises(UsageError, match="is a symbolic link to"):
        refuse_to_remove(tmp_path / "link")
    with pytest.raises(DataError, match=r"has no run.toml"):
        refuse_to_remove(run.parent)
    with pytest.raises(DataError, match="there is no run at"):
        refuse_to_remove(tmp_path / "none")
