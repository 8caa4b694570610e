"""`dragoman data`: the result on standard output, notes on standard error, the exit code returned."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.data import app
from dragoman.errors import DataError, UsageError


def run(*arguments: str | Path) -> Any:
    return app([str(argument) for argument in arguments], result_action="return_value", exit_on_error=False)


@pytest.fixture
def files(tmp_path) -> list[Path]:
    paths = [tmp_path / "a.de", tmp_path / "a.en"]
    paths[0].write_text("".join(f"der Satz {number}\n" for number in range(100)))
    paths[1].write_text("".join(f"the sentence {number}\n" for number in range(100)))
    return paths


def test_check_says_that_nothing_is_wrong(files, capsys):
    assert run("check", *files) == 0
    assert capsys.readouterr() == (f"100 pairs in {files[0]}, {files[1]} (de → en): nothing wrong\n", "")


def test_check_prints_findings_and_returns_3_for_an_error(files, capsys):
    files[0].write_text("\n" * 10 + "".join(f"der Satz {number}\n" for number in range(90)))
    assert run("check", *files) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("error    10 pairs have an empty side (first: line 1). ")
    assert lines[-1].endswith(": 1 error")


def test_check_prints_one_json_object_a_line(files, capsys):
    assert run("check", *files, "--json", "--against", *files) == 0
    finding, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert (finding["kind"], finding["count"], finding["lines"]) == ("leak", 100, [1, 2, 3, 4, 5])
    assert summary == {"pairs": 100, "errors": 0, "warnings": 1, "notices": 0, "sides": ["de", "en"]}


def test_check_refuses_to_choose_among_three_languages(tmp_path, capsys):
    rows = tmp_path / "a.jsonl"
    rows.write_text('{"translation": {"fr": "un chien", "de": "ein Hund", "en": "a dog"}}\n' * 3)
    assert run("check", rows) == 3
    assert "has text under fr, de, en; choose two of them with --src and --tgt" in capsys.readouterr().out
    assert run("check", rows, "--src", "de", "--tgt", "en") == 0
    assert "(de → en): " in capsys.readouterr().out


def test_stats_as_a_table_and_as_json(files, capsys):
    assert run("stats", *files) is None
    table = capsys.readouterr().out
    assert [line.split() for line in table.splitlines() if line.startswith("distinct words")] == [
        ["distinct", "words", "102", "102"]
    ]
    run("stats", *files, "--json")
    numbers = json.loads(capsys.readouterr().out)
    assert (numbers["pairs"], numbers["source"]["language"], numbers["source"]["words"]) == (100, "de", 300)


def test_split_says_how_many_went_where(files, tmp_path, capsys):
    files[0].write_text(files[0].read_text().replace("der Satz 7\n", "\n"))
    run("split", *files, "--out", tmp_path / "parts", "--valid", "10", "--test", "0.1")
    printed = capsys.readouterr()
    rows = [line.split() for line in printed.out.splitlines()]
    assert sum(int(row[0]) for row in rows) == 99
    assert rows[1] == ["10", str(tmp_path / "parts" / "valid.de"), str(tmp_path / "parts" / "valid.en")]
    assert printed.err == "1 pair has an empty side (first: line 8); dropped as pairs\n"


def test_split_as_json(files, tmp_path, capsys):
    run("split", *files, "--out", tmp_path / "parts", "--valid", "10", "--test", "20", "--json")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["part"], row["pairs"]) for row in rows] == [("test", 20), ("valid", 10), ("train", 70)]


def test_make_writes_a_generated_corpus_and_prints_its_files(tmp_path, capsys):
    run("make", "reverse", tmp_path / "out", "--count", "50", "--valid", "5", "--test", "5", "--seed", "1")
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert len(paths) == 6
    assert run("check", *paths[:2]) == 0


def test_several_kinds_are_told_apart_by_a_prefix(tmp_path):
    run("make", "copy+reverse", tmp_path / "out", "--count", "30", "--valid", "5", "--test", "4")
    sources, targets = ((tmp_path / "out" / f"train.{side}").read_text().splitlines() for side in ("source", "target"))
    assert len(sources) == len(targets) == 60
    for source, target in zip(sources, targets, strict=True):
        kind, _, words = source.partition(": ")
        assert target.split() == words.split()[:: {"copy": 1, "reverse": -1}[kind]]
    tests = (tmp_path / "out" / "test-reverse.source").read_text().splitlines()
    assert len(tests) == 4
    assert all(line.startswith("reverse: ") for line in tests)
    with pytest.raises(UsageError, match="no kind of generated data called 'revers'"):
        run("make", "copy+revers", tmp_path / "other")


def test_mistakes_are_raised_for_the_top_level_to_print(files, tmp_path):
    with pytest.raises(UsageError, match="has no partner"):
        run("check", files[0])
    with pytest.raises(DataError, match="does not exist"):
        run("stats", tmp_path / "b.tsv")
    (tmp_path / "train.de").touch()
    with pytest.raises(UsageError, match="not overwritten"):
        run("split", *files, "--out", tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--valid", "0", "--test", "-1"], "-1 pairs were asked for (test); ask for 0 or more"),
        (["--count", "0"], "0 pairs were asked for (count); ask for 1 or more"),
    ],
)
def test_numbers_of_pairs_that_cannot_be_are_refused(tmp_path, options, said):
    with pytest.raises(UsageError) as caught:
        run("make", "dates", tmp_path / "out", *options)
    assert caught.value.sentence == said
    assert not (tmp_path / "out").exists()


def test_a_negative_part_is_named(files, tmp_path):
    with pytest.raises(UsageError, match=r"valid -1 cannot be; give a share below 1, a number of pairs, or 0"):
        run("split", *files, "--out", tmp_path / "out", "--valid", "-1")


def test_kinds_are_listed_once(tmp_path):
    with pytest.raises(UsageError) as caught:
        run("make", "xyzzy", tmp_path / "out")
    assert caught.value.sentence.count("numbers") == 1


def test_another_encoding_can_be_read(files, capsys):
    files[0].write_bytes("ein Mädchen\n".encode("latin-1") * 100)
    assert run("check", *files) == 3
    assert "pass --encoding latin-1" in capsys.readouterr().out
    assert run("check", *files, "--encoding", "latin-1") == 0


def test_neither_help_nor_work_imports_torch(files):
    program = (
        "import sys; from dragoman.cli.data import app; app(sys.argv[1:], result_action='return_value');"
        "assert 'torch' not in sys.modules"
    )
    for arguments in (["--help"], ["check", *map(str, files)], ["stats", *map(str, files)]):
        found = subprocess.run([sys.executable, "-c", program, *arguments], check=False, capture_output=True)
        assert found.returncode == 0, found.stderr
