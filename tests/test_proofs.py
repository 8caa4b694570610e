"""A slice of every proof in benchmarks/prove_*.py: the same files, with fewer trials. `make prove` runs all of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]


def prove(name, *options):
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": os.pathsep.join([str(HERE / "src"), str(HERE / "benchmarks")]),
    }  # fmt: skip
    command = [sys.executable, str(HERE / "benchmarks" / f"prove_{name}.py"), *map(str, options)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_run_that_is_killed_or_whose_disk_fails_ends_with_the_same_bits():
    found, _ = prove("kills", "--kills", 2, "--every", 11, "--commands", 0)
    assert len(found) == 8
    for one in found:
        assert one["bit-identical"] == one["trials"] > 0
        assert one.get("right exit", one["trials"]) == one.get("kept", one["trials"]) == one["trials"]


def test_a_real_command_that_is_killed_ends_with_the_same_bits():
    found, _ = prove("kills", "--kills", 0, "--every", 1000, "--commands", 1)
    assert found[-1] == {**found[-1], "case": "kills of the real command", "killed": 1, "bit-identical": 1}


def test_every_flipped_bit_is_refused():
    [found], _ = prove("flips", "--count", 60)
    assert found["harmed"] == found["refused"] == found["said"] == 60


def test_one_and_two_workers_do_the_same():
    [losses, hashes, norms], _ = prove("workers", "--cases", "losses", "hashes", "norms", "--workers", 1, 2)
    assert losses["largest difference"] < 1e-6
    assert hashes["different hashes"] == 1
    assert hashes["changing on the way"]
    assert norms["different hashes"] == 1
    assert norms["largest difference"] < 1e-6


def test_a_worker_that_is_killed_is_begun_again_and_ends_with_the_same_bits():
    [found], _ = prove("workers", "--cases", "killed")
    assert found["exit"] == 0
    assert found["same hashes"]


def test_a_model_in_shards_learns_the_same_and_goes_on_without_them():
    [found], _ = prove("workers", "--cases", "shards")
    assert found["steps"] == 16
    assert found["largest difference"] < 1e-6


def test_going_on_deep_in_a_corpus_takes_no_longer():
    [found], _ = prove("resume", "--pairs", 200_000, "--times", 2)
    assert found["seconds more"] < 2


@pytest.mark.parametrize("kind", ["corpora", "sentences", "tokenizers", "models", "checkpoints", "settings", "images"])
def test_malformed_input_is_read_or_refused_by_a_sentence(kind):
    [found], said = prove("inputs", "--count", 150, "--classes", kind, "--seed", 7)
    assert found["failed"] == 0, said[-3000:]
    assert found["read"] + found["refused"] == 150


def test_a_translation_does_not_depend_on_its_neighbours():
    [found], _ = prove("batchings", "--count", 10, "--sentences", 60, "--steps", 60)
    assert found["same text"] == found["batchings"] == 10
    assert found["outputs"] > 5
