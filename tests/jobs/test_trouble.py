"""What goes wrong on the way: no finite gradient, a disk without room, a machine that is another one."""

import json
import re
import shutil
from contextlib import nullcontext
from unittest.mock import patch

import pytest
import torch

from dragoman.errors import DataError, Interrupted, MachineError, SaveError, UsageError
from dragoman.jobs import train as train_module
from dragoman.jobs.events import Finished, Notice, Report, Validation
from dragoman.jobs.recorded import read_recorded
from dragoman.jobs.request import Request
from dragoman.jobs.signals import Stop
from dragoman.jobs.start import reopen, start
from dragoman.jobs.task import Measured
from dragoman.runs.checkpoint import checkpoints
from dragoman.runs.files import check_folder, seal, write_folder
from dragoman.runs.record import read_toml, write_toml
from dragoman.text.generated import write_corpus
from dragoman.training.learner import is_out_of_memory
from dragoman.training.objectives import TranslationLoss
from dragoman.training.parallel import ALONE
from dragoman.training.settings import TrainingConfig

TINY = {
    "model": {"width": 16, "heads": 2, "layers": 1, "hidden": 16},
    "training": {"tokens_per_step": 256, "validate_every": 6, "save_every": 4, "report_every": 1, "warmup": 0},
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus("copy", folder, count=400, valid=12, test=4, seed=1)
    return folder


def request_for(corpus, out, steps=12, **training):
    settings = {"model": TINY["model"], "training": {**TINY["training"], "steps": steps, **training}}
    paths = {part: [str(corpus / f"{part}.{side}") for side in ("source", "target")] for part in ("train", "valid")}
    fields = {"corpora": paths["train"], "valid": paths["valid"], "out": str(out), "settings": settings}
    return Request.read(fields, section="train")


def log_of(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_a_run_that_diverges_goes_back_once_with_half_the_rate_and_then_stops(corpus, tmp_path):
    """At such a rate the first step throws the weights out of all bounds: no later one has a finite gradient."""
    run, said = tmp_path / "run", []
    request = request_for(corpus, run, optimizer="sgd", rate=1e38, clip=1e38, schedule="constant")
    with pytest.raises(DataError, match=r"at half the rate too; the last good checkpoint is kept") as caught:
        said += [event.sentence for event in start(request) if isinstance(event, Notice)] or []
    assert caught.value.id == "E-RUN-08"
    lines = log_of(run)
    [returned] = [line for line in lines if line["kind"] == "returned"]
    assert returned["step"] == 0
    assert returned["rate"] == 5e37
    assert [line["step"] for line in returned["refused"]] == [2, 3, 4, 5, 6]
    assert all({"epoch", "batch"} <= line.keys() for line in returned["refused"])
    assert [line["step"] for line in lines if line["kind"] == "refused"] == [2, 3, 4, 5, 6]  # the second time
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["step-00000000"]
    with pytest.raises(DataError, match="at half the rate too"):  # begun again it is not sent back once more
        list(start(request))
    assert len([line for line in log_of(run) if line["kind"] == "returned"]) == 1


STEEP = 2e17  # the gradient of the first weights, whose length is 20, is a quarter as long as float32 can tell


class Steep(TranslationLoss):
    """n · STEEP |w|² / 2: descent with momentum ends at zero where rate · STEEP is below 3.8, and nowhere else."""

    def __call__(self, model, batch):
        loss = super().__call__(model, batch)
        squares = sum((p**2).sum() for p in model.parameters())
        return loss._replace(nats=loss.tokens * STEEP / 2 * squares)


def test_half_the_rate_may_be_enough_and_a_stop_in_between_changes_nothing(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.jobs.translating.TranslationLoss", Steep)
    plain = {"optimizer": "momentum", "rate": 4.5 / STEEP, "clip": 1e38, "schedule": "constant"}
    ends = []
    for name, stops in (("whole", ()), ("stopped", (5, 9))):
        request = request_for(corpus, tmp_path / name, steps=14, **plain)
        events = []
        for stop in (*stops, None):
            events += until(start(request), stop)
        assert any(isinstance(e, Notice) and "going back to step" in e.sentence for e in events)
        assert isinstance(events[-1], Finished)
        newest = max((tmp_path / name / "checkpoints").iterdir())
        ends.append((newest / "weights.safetensors").read_bytes())
        assert json.loads((newest / "state.json").read_text())["slowed"] == 0.5
    assert ends[0] == ends[1]


def test_going_back_keeps_the_better_model_that_was_made_in_between(corpus, tmp_path, monkeypatch):
    """Steps 7 to 11 are refused after a validation at step 6; the checkpoint gone back to is of step 4."""
    found, count = [9.0, 3.0, 5.0, 4.0], train_module.count_step

    def refuse(run, step, clock):
        bad = run.progress.slowed == 1 and step.number > 6
        count(run, step._replace(applied=step.applied and not bad), clock)

    def measure(*_):
        return Measured(found.pop(0), {}, [])

    monkeypatch.setattr("dragoman.jobs.train.count_step", refuse)
    monkeypatch.setattr("dragoman.jobs.translating.Translating.measure", measure)
    events = list(start(request_for(corpus, tmp_path / "run", steps=12, save_every=4, validate_every=6, average=1)))
    best = [(event.step, event.best) for event in events if isinstance(event, Validation)]
    assert best == [(6, True), (6, False), (12, False)]
    assert events[-1].best_nats == 3.0


def test_after_a_damaged_checkpoint_what_is_saved_next_stays(corpus, tmp_path):
    """Whether by a signal or as planned, with a single checkpoint to keep: it is not the damaged one that is kept."""
    run, request = tmp_path / "run", request_for(corpus, tmp_path / "run", steps=20, average=1)
    until(start(request), 10)
    kept = tmp_path / "kept"
    shutil.copytree(run / "checkpoints" / "step-00000008", kept)
    until(start(request), 14)
    kept.rename(run / "checkpoints" / "step-00000008")
    (run / "checkpoints" / "step-00000012" / "weights.safetensors").write_bytes(b"")
    said = []
    with pytest.raises(Interrupted):
        stopped_at(10, request, said)
    assert any("going back to the one before" in sentence for sentence in said)
    assert [path.name for path in checkpoints(run)] == ["step-00000010", "step-00000008"]  # this one was planned
    check_folder(run / "checkpoints" / "step-00000010")
    assert (run / "checkpoints" / "step-00000012.aside").is_dir()


def stopped_at(step, request, said):
    """With a stop of our own instead of a signal."""
    stop = Stop()
    with patch("dragoman.jobs.start.polite_stop", lambda: nullcontext(stop)):
        for event in start(request):
            said += [event.sentence] if isinstance(event, Notice) else []
            stop.asked = isinstance(event, Report) and event.step == step


def test_a_run_whose_data_were_damaged_does_not_go_on_with_them(corpus, tmp_path):
    run = tmp_path / "run"
    until(start(request_for(corpus, run)), 5)
    ids = run / "data" / "train" / "ids.bin"
    content = bytearray(ids.read_bytes())
    content[100] ^= 4
    ids.write_bytes(content)
    with pytest.raises(DataError, match=r"the checksum of train/ids.bin differs from its manifest"):
        list(start(request_for(corpus, run)))
    (run / "data" / "manifest.json").unlink()  # as if it had been begun before data were sealed
    assert isinstance(list(start(request_for(corpus, run)))[-1], Finished)


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    run = tmp_path_factory.mktemp("finished") / "run"
    list(start(request_for(corpus, run, steps=8)))
    return run


@pytest.fixture
def again(corpus, finished, tmp_path):
    """A copy of a finished run, and how to go on with it."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run", lambda steps=8: list(start(request_for(corpus, tmp_path / "run", steps=steps)))


def sentences(events):
    return [event.sentence for event in events if isinstance(event, Notice)]


EDITS = [
    (r"(?s).*", "", "run is missing"),
    (r"(?s)\[plan\].*", "", "plan is missing"),
    (r"\[timing\]", "[timed]", "timing is missing"),
    (r"(?s)\[files.*", "", "files is missing"),
    (r"\nbytes = ", "\nbytez = ", "files.1.bytes is missing"),
    (r"\nfamily = .*", "", "run.family is missing"),
    (r"seed = 1", 'seed = "x"', "asked.seed cannot be 'x'"),
    (r"^", "run = 5\n", "is not TOML"),
    (r"\nstep = .*", "\nstep = 0.0", "timing.step cannot be 0.0"),
    (r"languages = .*", "languages = 5", "what it says of the task cannot be read"),
]


@pytest.mark.parametrize(("found", "put", "words"), EDITS)
def test_a_run_toml_that_lacks_something_is_refused_in_a_sentence(again, found, put, words):
    run, go_on = again
    written = (run / "run.toml").read_text()
    edited = re.sub(found, put, written, count=1)
    assert edited != written
    (run / "run.toml").write_text(edited)
    with pytest.raises(DataError, match=re.escape(words)) as caught:
        go_on()
    assert caught.value.id == "E-SET-04"


def test_a_tokenizer_of_another_run_is_refused(again):
    run, go_on = again
    file = next(path for path in sorted((run / "tokenizer").iterdir()) if path.name != "manifest.json")
    write_folder(run / "tokenizer", lambda ready: (ready / file.name).write_bytes(file.read_bytes() + b" "))
    with pytest.raises(DataError, match="not the one that the run was begun with") as caught:
        go_on(12)
    assert caught.value.id == "E-RUN-18"


def test_a_setting_that_was_edited_is_refused_by_name(again):
    run, go_on = again
    recorded = read_toml(run / "run.toml")
    write_toml(run / "run.toml", {**recorded, "training": {**recorded["training"], "rate": 0.5}})
    with pytest.raises(UsageError, match=r"training.rate was [\d.]+ and is now 0.5"):
        go_on(12)


@pytest.mark.parametrize("gone", [True, False])
def test_a_model_that_was_lost_is_made_again_from_the_checkpoint(again, gone):
    run, go_on = again
    if gone:
        shutil.rmtree(run / "model")
    else:
        (run / "model" / "weights.safetensors").write_bytes(b"")
    assert any("it is made again from the checkpoint of step 8" in said for said in sentences(go_on()))
    check_folder(run / "model")
    assert not any("made again" in said for said in sentences(go_on()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"from_the_future": 1}, r"does not know \(from_the_future\).*newer dragoman"),
        ({"step": "x"}, "not that of this step"),
        ({"step": 3}, "not that of this step"),
        ({"settings": [1]}, "not that of this step"),
        ({"best_nats": None}, "no best_nats that can be"),
        ({"seconds": "long"}, "no seconds that can be"),
        ({"refused": -1}, "no refused that can be"),
        ({"parts": True}, "no parts that can be"),
        ({"parts": 0}, "no parts that can be"),
        ({"refused": 10**400}, "no refused that can be"),
        ({"seconds": float("nan")}, "no seconds that can be"),
    ],
)
def test_a_state_that_cannot_be_is_refused_in_a_sentence_though_its_manifest_vouches_for_it(again, change, said):
    run, go_on = again
    newest = checkpoints(run)[0]
    state = json.loads((newest / "state.json").read_text())
    (newest / "state.json").write_text(json.dumps({**state, **change}))
    (newest / "manifest.json").unlink()
    seal(newest)
    with pytest.raises(DataError, match=said):
        go_on(12)


def test_the_optimizer_of_another_model_is_refused(again):
    run, go_on = again
    newest = checkpoints(run)[0]
    (newest / "optimizer.safetensors").write_bytes((newest / "weights.safetensors").read_bytes())
    (newest / "manifest.json").unlink()
    seal(newest)
    with pytest.raises(DataError, match="is of another model"):
        go_on(12)


def test_a_save_that_does_not_fit_into_memory_is_said(again, monkeypatch):
    def no_memory(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("dragoman.runs.checkpoint.optimizer_tensors", no_memory)
    _, go_on = again
    with pytest.raises(MachineError, match=r"the checkpoint of step 12 does not fit into memory") as caught:
        go_on(12)
    assert caught.value.exit_code == 4


def test_steps_that_were_raised_are_said_to_be_other_than_steps_asked_for_at_once(again):
    _, go_on = again
    told = "the first 8 steps were taken with a rate that ends at step 8: what comes out is not what 10 steps"
    assert any(told in said for said in sentences(go_on(10)))


def test_a_validation_that_does_not_fit_into_memory_is_said_and_its_steps_are_saved(corpus, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr("dragoman.jobs.start.time_validation", lambda _: 0.1)
    monkeypatch.setattr("dragoman.jobs.translating.Translating.measure", fail)
    with pytest.raises(MachineError, match="the validation after step 6 does not fit into memory; lower") as caught:
        list(start(request_for(corpus, tmp_path / "run")))
    assert caught.value.id == "E-ENV-06"
    assert checkpoints(tmp_path / "run")[0].name == "step-00000006"
    assert is_out_of_memory(OSError(12, "Cannot allocate memory"))
    assert not is_out_of_memory(OSError(28, "No space left on device"))


def test_a_stop_is_heeded_while_costs_are_measured(corpus, finished, monkeypatch):
    stop, measured = Stop(), []

    def measure(*_):
        measured.append(1)
        stop.asked = True
        yield "measured"

    monkeypatch.setattr("dragoman.jobs.train.weigh_int8", measure)
    monkeypatch.setattr("dragoman.jobs.train.learn_shortlist", measure)
    monkeypatch.setattr("dragoman.jobs.start.polite_stop", lambda: nullcontext(stop))
    with pytest.raises(Interrupted, match="before all was measured"):
        list(start(request_for(corpus, finished, steps=8)))
    assert measured == [1]


def until(events, stop):
    """The events up to the report of this step, and no further: as a kill would have it."""
    found = []
    for event in events:
        found.append(event)
        if stop is not None and isinstance(event, Report) and event.step >= stop:
            events.close()
            break
    return found


def test_a_save_that_cannot_fit_is_not_begun(tmp_path):
    write_folder(tmp_path / "a", lambda ready: (ready / "file").write_text("old") and None)
    with pytest.raises(SaveError, match=r"needs [\d,.]+ MB and [\d,.]+ MB are free.*saved before is intact") as caught:
        write_folder(tmp_path / "a", lambda ready: (ready / "file").write_text("new") and None, size=1 << 60)
    assert (caught.value.id, caught.value.exit_code) == ("E-SAVE-02", 74)
    assert (tmp_path / "a" / "file").read_text() == "old"


def test_a_save_that_does_not_read_back_is_taken_back(tmp_path, monkeypatch):
    """A disk that gives back other bytes than it was given: what was there before is there again."""
    write_folder(tmp_path / "a", lambda ready: (ready / "file").write_text("old") and None)

    def lie(path):
        (tmp_path / "a" / "file").write_text("rotten")
        return check(path)

    from dragoman.runs.files import check_folder as check

    monkeypatch.setattr("dragoman.runs.files.check_folder", lie)
    with pytest.raises(SaveError, match="could not be saved"):
        write_folder(tmp_path / "a", lambda ready: (ready / "file").write_text("new") and None)
    assert (tmp_path / "a" / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_another_machine_is_said_and_the_run_goes_on(corpus, tmp_path):
    run = tmp_path / "run"
    until(start(request_for(corpus, run)), 5)
    recorded = read_toml(run / "run.toml")
    assert {"torch", "cpu", "threads", "workers"} <= recorded["run"].keys()
    write_toml(run / "run.toml", {**recorded, "run": {**recorded["run"], "cpu": "abacus", "torch": "0.1"}})
    events = list(start(request_for(corpus, run)))
    [said] = [e.sentence for e in events if isinstance(e, Notice) and "bit for bit" in e.sentence]
    assert f"torch was 0.1 and is {torch.__version__}; cpu was abacus and is " in said
    assert isinstance(events[-1], Finished)


def test_a_signal_that_comes_while_workers_wait_for_one_another_counts_at_the_next_step(finished, monkeypatch):
    recorded = read_recorded(finished)
    run = reopen(finished, recorded, TrainingConfig.read(recorded["training"], section="training"), ALONE)
    stop = Stop()

    def wait(_self, mine):
        stop.asked = True
        return mine

    monkeypatch.setattr(type(ALONE), "largest", wait)
    assert train_module.agree(run, stop) is False
    assert stop.asked
    assert train_module.agree(run, stop) is True


def test_what_a_kill_left_of_a_save_is_swept_away(corpus, tmp_path):
    run = tmp_path / "run"
    until(start(request_for(corpus, run)), 5)
    for name in ("checkpoints/step-00000007.new", "checkpoints/step-00000004.old", ".scratch-x"):
        (run / name).mkdir()
    list(start(request_for(corpus, run)))
    assert not list(run.rglob("*.new")) + list(run.rglob("*.old")) + list(run.glob(".scratch*"))


def test_a_checkpoint_whose_new_copy_was_never_put_in_place_is_found_again(corpus, tmp_path):
    """A kill between the two renames of a save of the same step."""
    run = tmp_path / "run"
    until(start(request_for(corpus, run)), 5)
    there = sorted((run / "checkpoints").iterdir())
    for path in there:
        path.rename(path.with_name(path.name + ".old"))
    events = list(start(request_for(corpus, run)))
    assert isinstance(events[-1], Finished)
    assert any(isinstance(e, Notice) and "going on from step" in e.sentence for e in events)
    assert not list(run.rglob("*.old"))


def test_threads_and_reproducible_contradict_each_other(corpus, tmp_path):
    with pytest.raises(UsageError, match="--reproducible gives each worker one thread, and --threads 2 were asked for"):
        list(start(request_for(corpus, tmp_path / "run", reproducible=True), threads=2))


def test_muon_cannot_be_shared_out(corpus, tmp_path):
    with pytest.raises(UsageError, match="muon needs whole matrices"):
        list(start(request_for(corpus, tmp_path / "run", sharding=True, optimizer="muon")))
