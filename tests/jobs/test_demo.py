"""The demo's data are fair, and the command does what it says."""

import json
from pathlib import Path
from unittest.mock import patch

import pytest

from dragoman.cli import main
from dragoman.jobs.demo import TEST, TRAIN, make_demo
from dragoman.text.generated import generate


@pytest.fixture(scope="module", autouse=True)
def drawn_quickly(unchecked):
    """Types are checked for every word that is drawn, which takes ten times the drawing; 128,000 pairs have many, and
    `tests/text/test_generated.py` has checked each kind."""

    def draw(*arguments, **options):
        with unchecked():
            return generate(*arguments, **options)

    with patch("dragoman.jobs.demo.generate", draw):
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_demo(tmp_path_factory.mktemp("demo"), 60.0, 1)


def read(path):
    return [tuple(line.split("\t")) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_what_is_tested_was_never_trained_on_in_any_form(made):
    learned = {target for _, target in read(made.request.corpora[0]) + read(made.request.valid[0])}
    for kind in TRAIN:
        assert len(made.test[kind]) == TEST
        assert not learned & {target for _, target in made.test[kind]}


def test_making_it_again_changes_nothing(made):
    path = Path(made.request.corpora[0])
    before = path.stat().st_mtime_ns
    again = make_demo(Path(made.request.out), 60.0, 1)
    assert again.request == made.request
    assert path.stat().st_mtime_ns == before


def test_the_demo_trains_translates_and_draws(tmp_path, monkeypatch, capsys):
    """Ten seconds, and a tenth of the pairs, teach little; but everything runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dragoman.jobs.demo.TEST", TEST // 10)
    for kind, count in TRAIN.items():
        monkeypatch.setitem(TRAIN, kind, count // 10)
    assert main(["demo", "--seconds", "10", "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"planned", "report", "validation", "finished"} <= {event["event"] for event in events}
    assert events[-1]["event"] == "demo"
    assert events[-1]["exact"].keys() == TRAIN.keys()
    assert len(events[-1]["outputs"]) == 3
    assert "default-src 'none'" in Path("demo/page.html").read_text(encoding="utf-8")
    Path("demo/try.txt").write_text("12. März 1999\n", encoding="utf-8")
    assert main(["translate", "demo", "--input", "demo/try.txt"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
