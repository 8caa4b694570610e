"""A run's folder: whole or not there, and exactly what was saved."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from dragoman.errors import DataError, MachineError, SaveError, UsageError
from dragoman.images.index import IndexWriter
from dragoman.images.pixels import Form
from dragoman.models.transformer import Transformer, TransformerConfig
from dragoman.runs.checkpoint import (
    average_weights,
    checkpoint_folder,
    checkpoints,
    last_good_checkpoint,
    load_checkpoint,
    newest_whole_checkpoint,
    planned_checkpoints,
    remove_old_checkpoints,
    save_checkpoint,
    set_aside_others,
)
from dragoman.runs.data import refuse_damaged_data, seal_data
from dragoman.runs.files import check_folder, read_json, recover_folder, seal, write_file, write_folder
from dragoman.runs.inventory import count_numbers, glance
from dragoman.runs.lock import only_writer
from dragoman.runs.model import open_model, save_model
from dragoman.runs.record import Log, read_log, read_toml, to_toml, write_toml
from dragoman.runs.weights import load_weights, read_tensors, weights_of
from dragoman.text.batches import make_batch
from dragoman.text.index import PairIndex, write_index
from dragoman.text.special import SpecialIds
from dragoman.text.tokenizer import TokenizerConfig, learn_tokenizers, open_tokenizers
from dragoman.training.loop import train
from dragoman.training.objectives import translation_loss
from dragoman.training.optimizers import make_optimizer

NAMES = ["sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "muon"]
BATCHES = [[make_batch([([4, 5, k % 5 + 4], [7, 8]), ([9, 10], [4, k % 3 + 5])], SpecialIds())] for k in range(8)]


def make_model():
    torch.manual_seed(3)
    return Transformer(
        TransformerConfig(
            source_vocabulary=11, target_vocabulary=11, width=16, heads=2, layers=1, hidden=24, dropout=0.2
        )
    )


def go(model, optimizer, first, last):
    batches = BATCHES[first - 1 : last]
    list(train(model, batches, translation_loss, optimizer, rate=lambda n: 0.01 / n, seed=5, first=first))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_was_stopped_ends_with_the_same_bits(name, tmp_path):
    whole = make_model()
    go(whole, make_optimizer(name, whole, 0.01), 1, 8)

    before = make_model()
    optimizer = make_optimizer(name, before, 0.01)
    go(before, optimizer, 1, 5)
    save_checkpoint(tmp_path, 5, before, optimizer, {"best": 1.5})

    after = make_model()
    optimizer = make_optimizer(name, after, 0.01)
    state = load_checkpoint(checkpoint_folder(tmp_path, 5), after, optimizer)
    assert state == {"step": 5, "best": 1.5}
    go(after, optimizer, 6, 8)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), after.parameters(), strict=True))


def test_a_damaged_checkpoint_is_passed_over_with_a_word(tmp_path):
    model = make_model()
    optimizer = make_optimizer("adam", model, 0.01)
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, step, model, optimizer, {})
    flip_a_bit(checkpoint_folder(tmp_path, 3) / "weights.safetensors")
    (checkpoint_folder(tmp_path, 2) / "state.json").unlink()
    found, said = newest_whole_checkpoint(tmp_path)
    assert found == checkpoint_folder(tmp_path, 1)
    assert "the checksum of weights.safetensors differs" in said[0]
    assert "state.json is missing" in said[1]


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    model = make_model()
    optimizer = make_optimizer("sgd", model, 0.01)
    for step in (9, 10, 100):
        save_checkpoint(tmp_path, step, model, optimizer, {})
    keep = planned_checkpoints(tmp_path, 10, last=999)[1:]
    assert remove_old_checkpoints(tmp_path, checkpoint_folder(tmp_path, 100), keep) == []
    assert [path.name for path in checkpoints(tmp_path)] == ["step-00000100", "step-00000010"]


def test_what_is_newer_than_the_checkpoint_just_saved_never_drives_it_out(tmp_path):
    model = make_model()
    optimizer = make_optimizer("sgd", model, 0.01)
    for step in (10, 20, 30):
        save_checkpoint(tmp_path, step, model, optimizer, {})
    saved = save_checkpoint(tmp_path, 18, model, optimizer, {})
    remove_old_checkpoints(tmp_path, saved, keep=[])
    assert [path.name[-2:] for path in checkpoints(tmp_path)] == ["30", "20", "18"]


def test_damaged_checkpoints_and_those_beyond_are_set_aside_and_not_removed(tmp_path):
    model = make_model()
    optimizer = make_optimizer("sgd", model, 0.01)
    for step in (10, 20, 30, 40):
        save_checkpoint(tmp_path, step, model, optimizer, {})
    flip_a_bit(checkpoint_folder(tmp_path, 10) / "weights.safetensors")
    set_aside_others(tmp_path, 30)
    assert [path.name[-2:] for path in checkpoints(tmp_path)] == ["30", "20"]
    aside = sorted(path.name for path in (tmp_path / "checkpoints").glob("*.aside"))
    assert aside == ["step-00000010.aside", "step-00000040.aside"]


def test_a_checkpoint_that_cannot_be_removed_is_named_and_nothing_ends(tmp_path, monkeypatch):
    model = make_model()
    optimizer = make_optimizer("sgd", model, 0.01)
    for step in (10, 20):
        saved = save_checkpoint(tmp_path, step, model, optimizer, {})

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("dragoman.runs.checkpoint.shutil.rmtree", refuse)
    [said] = remove_old_checkpoints(tmp_path, saved, keep=[])
    assert "step-00000010.gone cannot be removed (Permission denied)" in said
    assert [path.name[-2:] for path in checkpoints(tmp_path)] == ["20"]


def test_a_checkpoint_of_an_interruption_does_not_count_as_planned(tmp_path):
    model = make_model()
    optimizer = make_optimizer("sgd", model, 0.01)
    for step in (10, 20, 23, 30, 37):
        save_checkpoint(tmp_path, step, model, optimizer, {})
    assert [path.name[-2:] for path in planned_checkpoints(tmp_path, 10, last=37)] == ["37", "30", "20", "10"]
    assert [path.name[-2:] for path in planned_checkpoints(tmp_path, 10, last=40)] == ["30", "20", "10"]


def test_an_average_is_the_mean_of_each_parameter(tmp_path):
    model = make_model()
    optimizer = make_optimizer("sgd", model, 0.01)
    with torch.no_grad():
        for step, value in enumerate([1.0, 2.0, 6.0], start=1):
            for parameter in model.parameters():
                parameter.fill_(value)
            save_checkpoint(tmp_path, step, model, optimizer, {})
    averaged = average_weights(checkpoints(tmp_path))
    assert all((tensor == 3.0).all() for tensor in averaged.values())
    assert averaged.keys() == weights_of(model).keys()


ODD = [b"5\n", b"null\n", b'{"kind":"report"}\n', b'{"step":"x"}\n', b"\xff\xfe\n", '{"step": 2, "s": "ü'.encode()[:-1]]


def test_what_is_no_number_is_null_in_the_log_and_no_number_again_when_read(tmp_path):
    Log(tmp_path / "log.jsonl").write({"kind": "report", "step": 3, "nats_per_token": float("nan"), "bleu": 2.5})
    text = (tmp_path / "log.jsonl").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "kind": "report", "step": 3, "nats_per_token": None, "bleu": 2.5,
    }  # fmt: skip
    [line] = read_log(tmp_path / "log.jsonl")
    assert np.isnan(line["nats_per_token"])
    assert line["bleu"] == 2.5


@pytest.mark.parametrize("odd", ODD)
def test_odd_lines_of_a_log_are_left_out_when_a_run_goes_on(tmp_path, odd):
    log = Log(tmp_path / "log.jsonl")
    log.write({"kind": "report", "step": 1})
    with log.path.open("ab") as file:
        file.write(odd)
    Log(log.path, after_step=4).write({"kind": "report", "step": 5})
    assert [json.loads(line)["step"] for line in log.path.read_text().splitlines()] == [1, 5]


def test_a_log_that_cannot_be_read_is_not_written_anew(tmp_path, monkeypatch):
    log = Log(tmp_path / "log.jsonl")
    log.write({"kind": "report", "step": 1})
    before = log.path.read_bytes()

    def fails(*_, **__):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.read_text", fails)
        with pytest.raises(SaveError, match="Input/output error"):
            Log(log.path, after_step=4)
    assert log.path.read_bytes() == before


@pytest.mark.parametrize("grown", [1e36, float("nan")])
def test_no_run_goes_back_to_weights_beyond_all_measure(tmp_path, grown):
    model = make_model()
    optimizer = make_optimizer("sgd", model, 0.1)
    save_checkpoint(tmp_path, 1, model, optimizer, {})
    with torch.no_grad():
        next(model.parameters()).fill_(grown)
    save_checkpoint(tmp_path, 2, model, optimizer, {})
    assert last_good_checkpoint(tmp_path) == checkpoint_folder(tmp_path, 1)


def test_a_manifest_vouches_for_a_checkpoint_only_with_weights_and_state_in_it(tmp_path):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, make_model(), None, {})
    newest = checkpoint_folder(tmp_path, 2)
    seal(newest, [newest / "state.json"])
    found, [said] = newest_whole_checkpoint(tmp_path)
    assert found == checkpoint_folder(tmp_path, 1)
    assert "weights.safetensors is not in its manifest" in said


# ── files ─────────────────────────────────────────────────────────────────────────────────


def test_a_folder_stays_as_it_was_when_a_save_fails(tmp_path):
    write_folder(tmp_path / "model", lambda ready: (ready / "a").write_text("old") and None)

    def no_room(ready):
        (ready / "a").write_text("new")
        raise OSError(28, "No space left on device")

    with pytest.raises(SaveError, match=r"No space left on device.*saved before is intact") as caught:
        write_folder(tmp_path / "model", no_room)
    assert caught.value.exit_code == 74
    assert (tmp_path / "model" / "a").read_text() == "old"
    check_folder(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_away_between_two_renames_comes_back(tmp_path):
    write_folder(tmp_path / "model", lambda ready: (ready / "a").write_text("x") and None)
    (tmp_path / "model").rename(tmp_path / "model.old")
    recover_folder(tmp_path / "model")
    check_folder(tmp_path / "model")


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(SaveError, match="could not be saved"):
        write_file(tmp_path / "missing" / "file", "x")


def test_a_second_writer_is_refused_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from dragoman.runs.lock import only_writer\n"
        "with only_writer(Path(sys.argv[1])): print('in', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout.readline() == "in\n"
        with (
            pytest.raises(MachineError, match=f"is being written by process {other.pid}; wait for it"),
            only_writer(tmp_path),
        ):
            pass
        other.kill()
    with only_writer(tmp_path):  # a kill lets go of it
        assert True


# ── models ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def saved(tmp_path):
    tokenizers = learn_tokenizers(TokenizerConfig(kind="words"), [("a b c d e f g", "a b c d e f g")])
    model = make_model()
    save_model(
        tmp_path / "model", model.config, weights_of(model), tokenizers, {"longest": 9, "languages": ["de", "en"]}
    )
    return tmp_path, model


def test_a_saved_model_opens_from_its_folder_and_from_its_runs(saved):
    folder, model = saved
    for path in (folder, folder / "model"):
        opened = open_model(path)
        assert opened.about == {"longest": 9, "languages": ["de", "en"]}
        assert opened.model.config == model.config
        assert not opened.model.training
        assert all(torch.equal(a, b) for a, b in zip(opened.model.parameters(), model.parameters(), strict=True))


def test_a_tied_table_is_stored_once(saved):
    folder, model = saved
    size = (folder / "model" / "weights.safetensors").stat().st_size
    assert size < 4 * sum(p.numel() for p in model.parameters()) + 8000


def test_a_damaged_model_is_refused(saved):
    folder, _ = saved
    flip_a_bit(folder / "model" / "weights.safetensors")
    with pytest.raises(DataError, match=r"checksum of weights.safetensors differs from its manifest") as caught:
        open_model(folder)
    assert caught.value.exit_code == 3


def test_a_model_of_a_newer_version_is_refused(saved):
    folder, _ = saved
    about = json.loads((folder / "model" / "config.json").read_text())
    write_folder(
        folder / "newer", lambda ready: (ready / "config.json").write_text(json.dumps({**about, "format": 99})) and None
    )
    with pytest.raises(DataError, match="written by a newer dragoman"):
        open_model(folder / "newer")


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"never": [[3], [4, 999]]}, "forbids tokens (search.never) that its model does not have"),
        ({"first": 999}, "begins every output with tokens (search.first) that its model does not have"),
    ],
)
def test_a_search_for_tokens_that_are_not_there_is_refused(saved, search, said):
    folder, model = saved
    tokenizers, about = open_model(folder).tokenizers, {"longest": 9, "languages": ["de", "en"]}

    def save_with(found):
        save_model(folder / "model", model.config, weights_of(model), tokenizers, {**about, "search": found})

    fine = {"never": [[3], [4, 5]], "first": 5}
    save_with(fine)
    assert open_model(folder).about["search"] == fine
    save_with(search)
    with pytest.raises(DataError, match=re.escape(said)):
        open_model(folder)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no model at .*nowhere; give the folder of a run"):
        open_model(tmp_path / "nowhere")
    with pytest.raises(DataError, match="holds no model"):
        open_model(tmp_path)


def test_weights_that_do_not_fit_are_listed(tmp_path):
    model = make_model()
    weights = weights_of(model)
    weights["extra"] = weights.pop("decoder.final_norm.weight", torch.zeros(1))
    weights["source_embedding.table.weight"] = torch.zeros(12, 16)
    with pytest.raises(
        DataError, match=r"extra is left over; source_embedding.table.weight is \(12, 16\) and must be \(11, 16\)"
    ):
        load_weights(model, weights, tmp_path)


def full(path):
    """A file that takes nothing: the disk is full."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("/dev/full")


def test_a_full_disk_ends_every_kind_of_save_in_a_sentence(tmp_path):
    full(tmp_path / ".lock")
    with pytest.raises(SaveError, match=r"\.lock could not be saved"), only_writer(tmp_path):
        pass
    full(tmp_path / "train" / "ids.bin")
    with pytest.raises(SaveError, match=r"token ids could not be written .*No space left"):
        write_index(tmp_path / "train", [[([4, 5], [6])]], 10, {})
    tokenizers = learn_tokenizers(TokenizerConfig(kind="bytes", vocabulary=300), [("a b c", "a b c")])

    def save(ready):
        full(ready / "joint.bytes.json")
        tokenizers.save(ready)

    with pytest.raises(SaveError, match="No space left on device"):
        write_folder(tmp_path / "tokenizer", save)
    full(tmp_path / "images" / "pixels.bin")
    with (
        pytest.raises(SaveError, match="could not be written"),
        IndexWriter(tmp_path / "images", Form(1, 2, 2), "int64", ()) as writer,
    ):
        writer.add(np.zeros((1, 2, 2), np.uint8), 1)


# ── data ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def data(tmp_path):
    write_index(tmp_path / "data" / "train", [[([4, 5], [6]), ([7], [8, 9])]], 10, {"read": 2})
    write_file(tmp_path / "data" / "valid.json", json.dumps([["a", "b"]]))
    (tmp_path / "data" / "mine.txt").write_text("not of the run")
    seal_data(tmp_path)
    return tmp_path


def test_data_that_are_whole_are_gone_on_with_whatever_stands_beside_them(data):
    sealed = read_json(data / "data" / "manifest.json")
    assert {"valid.json", "train/ids.bin"} <= sealed.keys()
    assert "mine.txt" not in sealed
    (data / "data" / "mine.txt").write_text("changed")
    refuse_damaged_data(data)


def test_a_flipped_bit_or_a_cut_in_the_data_is_refused_by_name(data):
    for name in ("train/ids.bin", "train/offsets.bin", "train/index.json", "valid.json"):
        before = (data / "data" / name).read_bytes()
        flip_a_bit(data / "data" / name)
        with pytest.raises(DataError, match=f"the checksum of {name} differs from its manifest; begin anew") as caught:
            refuse_damaged_data(data)
        assert caught.value.id == "E-DATA-08"
        (data / "data" / name).write_bytes(before)


@pytest.mark.parametrize("content", ["{}", "[]", '{"pairs": 2, "dtype"', '{"pairs": "2", "dtype": 5, "about": {}}'])
def test_an_index_without_a_seal_that_cannot_be_read_is_refused_in_a_sentence(data, content):
    (data / "data" / "manifest.json").unlink()
    (data / "data" / "train" / "index.json").write_text(content)
    refuse_damaged_data(data)
    with pytest.raises(DataError, match=r"the index of token ids in .* is damaged"):
        PairIndex(data / "data" / "train")


# ── records ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused_and_not_waited_for(saved, kind):
    folder = saved[0]

    def put(path):
        path.unlink(missing_ok=True)
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
        return path

    put(folder / "log.jsonl")
    assert read_log(folder / "log.jsonl") == []
    with pytest.raises(DataError, match="must be a file"):
        read_toml(put(folder / "run.toml"))
    for name in ("config.json", "weights.safetensors", "manifest.json"):
        with pytest.raises(DataError, match="must be a file"):
            read_json(put(folder / "model" / name)) if name.endswith("json") else read_tensors(
                put(folder / "model" / name)
            )
    assert glance(folder / "model")
    assert count_numbers(folder / "model" / "weights.safetensors") is None
    put(folder / "model" / "tokenizer" / "joint.json")
    with pytest.raises(DataError, match=r"joint\.json is a pipe or a device"):
        open_tokenizers(folder / "model" / "tokenizer")


def test_settings_survive_toml(tmp_path):
    sections = {
        "run": {
            "name": 'with "quotes" and ü\n',
            "steps": 3,
            "rate": 1e-05,
            "fresh": True,
            "files": ["a", "b"],
            "none": None,
        },
        "tokenizer": {"vocabulary": 10, "special": {"pad": 0, "start": 1}},
    }
    write_toml(tmp_path / "run.toml", sections)
    del sections["run"]["none"]
    assert read_toml(tmp_path / "run.toml") == sections
    assert "[tokenizer.special]" in to_toml(sections)


def test_settings_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(UsageError, match="there is no settings file"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(DataError, match="is not TOML that can be read"):
        read_toml(tmp_path / "bad.toml")


def test_a_log_drops_what_came_after_the_checkpoint(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        log.write({"step": step})
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')  # cut off by a kill
    again = Log(tmp_path / "log.jsonl", after_step=2)
    again.write({"step": 3})
    assert [line["step"] for line in read_log(again.path)] == [1, 2, 3]


@pytest.mark.parametrize("manifest", ["{", "[]", "{}", "1", "null", ""])
def test_a_manifest_that_lists_nothing_vouches_for_nothing(tmp_path, manifest):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(DataError, match="no manifest that can be read"):
        check_folder(tmp_path)
