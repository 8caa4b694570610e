"""The command as people type it: results on standard output, mistakes in one line with the right exit code."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman.cli import COMMANDS, main
from dragoman.errors import Interrupted
from dragoman.runs.model import save_model
from dragoman.runs.weights import weights_of

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def dragoman(capsysbinary, monkeypatch, tmp_path):
    """The command in this process: its exit code, and the bytes of its two outputs."""

    def call(*arguments, given=b""):
        (tmp_path / "given").write_bytes(given)
        with (tmp_path / "given").open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            code = main([*map(str, arguments)])
        told = capsysbinary.readouterr()
        return SimpleNamespace(returncode=code, stdout=told.out, stderr=told.err)

    return call


def start_and_end(*arguments):
    command = [sys.executable, "-m", "dragoman", *arguments]
    return subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)


@pytest.fixture(scope="module")
def model(reverser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "run"
    save_model(folder / "model", reverser.model.config, weights_of(reverser.model), reverser.tokenizers, reverser.about)
    return folder


# ── help ──────────────────────────────────────────────────────────────────────────────────


QUICK = [
    "--help", "", "train --help", "nonsense", "train --nonsense", "train a b --family lstm", "train a b --preset huge",
    "train a b --task foo", "train a b --steps 0", "train a b --steps -5", "train a b --threads 0",
    "train a b --set training.rat=1", "train a b --set data.longst=3", "train a b --set tokenizer.knid=words",
    "translate m hallo --beam 0", "translate m hallo --beam 99999", "translate m hallo --nbest 0",
    "translate m hallo --seed 3", "translate m hallo --sample --top-p 2", "translate m hallo --threads 0",
    "generate m --top-k -1", "generate m --temperature 0", "generate m --threads 0", "classify m hallo --threads 0",
    "embed m hallo --threads 0", "fill m hallo --threads 0", "score m a b --threads 0", "score m a b --beam 0",
    "compare a b --test a b --models rnn --epochs 1 --out c --threads 0", "demo --threads 0", "demo --seconds nan",
    "demo --seed -1", "train a b --threads 9999", "train a b --steps 1.5", "train a b --valid --steps 2",
    "translate m hallo --beam 2.7", "translate m hallo --output no/such/folder", "data check a b --against",
    "data check a b --limit -1", "page m --port -1", "classify m hallo --encoding klingon",
    "embed m hallo --encoding klingon", "look m \udcff",
    "compare a b --test a b --models rnn,foo --epochs 1 --out c",
]  # fmt: skip
MISSING = ["translate m hallo", "generate m", "embed m hallo", "classify m hallo", "page m", "train a b --valid c"]


def test_help_and_mistakes_do_not_import_torch():
    """All in one process: whoever imports torch is found by what was typed."""
    code = (
        "import sys\nfrom dragoman.cli import main\n"
        f"for line in {[*QUICK, *MISSING]!r}:\n"
        "    try: code = main(line.split())\n"
        "    except SystemExit as end: code = end.code\n"
        f"    wanted = 0 if 'help' in line or not line else 3 if line in {MISSING!r} else 2\n"
        "    assert (code or 0) == wanted, (line, code)\n"
        "    assert 'torch' not in sys.modules, line"
    )
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=ENVIRONMENT)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("asked", ["raise KeyboardInterrupt", "signal.raise_signal(signal.SIGTERM)"])
def test_ctrl_c_and_sigterm_during_the_first_imports_are_one_line_and_130(asked):
    """The keyboard is never quicker than the interpreter; here the first import that takes time is the one pressing."""
    code = (
        "import signal, sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == 'cyclopts': {asked}\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from dragoman.cli import run\n"
        "run()"
    )
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=ENVIRONMENT)
    assert found.returncode == 130
    assert found.stderr == "dragoman: interrupted\n"


def test_help_names_every_command_in_the_users_words():
    found = start_and_end("--help")
    assert found.returncode == 0
    text = " ".join(found.stdout.decode().replace("│", " ").split())  # long sentences are wrapped
    for name, sentence in COMMANDS.items():
        assert name in text
        assert sentence.split(":")[0].split(",")[0] in text


def test_every_option_of_train_has_its_sentence():
    text = start_and_end("train", "--help").stdout.decode()
    for option in ("--valid", "--family", "--preset", "--config", "--set", "--from", "--out", "--minutes", "--steps",
                   "--seed", "--threads", "--device", "--fresh", "--dry-run", "--json", "--task"):  # fmt: skip
        assert option in text, option


# ── mistakes ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.de").write_text("ein Hund\neine Katze\n" * 50)
    Path("a.en").write_text("a dog\na cat\n" * 50)
    Path("short.en").write_text("a dog\na cat\n" * 49)
    Path("latin.de").write_bytes("ein M\u00e4dchen\n".encode("latin-1") * 100)
    return tmp_path


MISTAKES = {
    "two commands": (["trian"], 2, "trian", "E-USE-00"),
    "no files": (["train"], 2, "no files were given", "E-USE-01"),
    "one file": (["train", "a.de"], 2, "one plain file has no partner (a.de)", "E-USE-01"),
    "a folder of text": (["train", ".", "."], 3, ". is a folder without images; to learn from text, name", "E-DATA-04"),
    "misaligned": (["train", "a.de", "short.en"], 3, "a.de has 100 lines", "E-DATA-01"),
    "missing": (["train", "b.de", "a.en"], 3, "b.de does not exist. Nearest in .: a.de", "E-DATA-04"),
    "latin-1": (["train", "latin.de", "a.en"], 3, "latin.de is not UTF-8: byte 0xE4 at line 1", "E-DATA-03"),
    "no such family": (["train", "a.de", "a.en", "--family", "transfomer"], 2, "did you mean transformer?", "E-SET-02"),
    "a cell for a family": (
        ["train", "a.de", "a.en", "--family", "lstm"], 2, "--family rnn --set model.cell=lstm", "E-SET-02",
    ),
    "a family of another task": (
        ["train", "a.de", "a.en", "--task", "translate", "--family", "gpt"], 2, "'gpt' learns to write", "E-SET-02",
    ),
    "no steps": (["train", "a.de", "a.en", "--steps", "0"], 2, "training.steps = 0 cannot be", "E-SET-01"),
    "too wide a beam": (["translate", "m", "a", "--beam", "99999"], 2, "--beam 99999 cannot be; give 1 to", "E-USE-19"),
    "no best": (["translate", "m", "a", "--nbest", "0"], 2, "--nbest 0 cannot be; give 1 to 1,000", "E-USE-19"),
    "drawing without --sample": (
        ["translate", "m", "a", "--top-k", "4"], 2, "--top-k 4 is about drawing words; add --sample", "E-USE-18",
    ),
    "drawing from lists": (
        ["translate", "m", "a", "--sample", "--shortlist"], 2, "--sample draws from all words and --shor", "E-USE-24",
    ),
    "drawing by a beam": (
        ["translate", "m", "a", "--sample", "--beam", "4"], 2, "--beam 4 is about searching and --sample", "E-USE-18",
    ),
    "no such encoding": (["translate", "m", "a", "--encoding", "klingon"], 2, "no encoding 'klingon'", "E-USE-05"),
    "no such preset": (["train", "a.de", "a.en", "--preset", "smal"], 2, "did you mean small?", "E-SET-07"),
    "no such task": (["train", "a.de", "a.en", "--task", "dance"], 2, "there is no task 'dance'", "E-USE-08"),
    "no such device": (["train", "a.de", "a.en", "--device", "cuda"], 4, "device cuda cannot be used", "E-ENV-01"),
    "no such setting": (["train", "a.de", "a.en", "--set", "model.widht=3"], 2, "mean model.width?", "E-SET-01"),
    "no such section": (["train", "a.de", "a.en", "--set", "mdl.width=3"], 2, "there is no section 'mdl'", "E-SET-06"),
    "half a setting": (
        ["train", "a.de", "a.en", "--set", "model.x=1", "--set", "model.x.y=3"], 2, "which is 1", "E-SET-05",
    ),
    "unreadable setting": (["train", "a.de", "a.en", "--set", "steps"], 2, "write --set section.key=value", "E-SET-05"),
    "no settings": (["train", "a.de", "a.en", "--config", "x.toml"], 2, "no settings file x.toml", "E-SET-03"),
    "negative minutes": (["train", "a.de", "a.en", "--minutes", "-3"], 2, "minutes", "E-SET-01"),
    "minutes in words": (["train", "a.de", "a.en", "--minutes", "ten"], 2, "ten", "E-USE-00"),
    "no threads": (["train", "a.de", "a.en", "--threads", "0"], 2, "--threads 0 cannot be; give 1 or more", "E-USE-07"),
    "too many threads": (["train", "a.de", "a.en", "--threads", "9999"], 2, "only hinder one another", "E-USE-07"),
    "unknown option": (["train", "a.de", "a.en", "--minuets", "3"], 2, "--minuets", "E-USE-00"),
    "no model": (["translate", "nowhere", "hallo"], 3, "there is no model at nowhere", "E-RUN-04"),
    "no model inside": (["translate", ".", "hallo"], 3, ". holds no model", "E-RUN-04"),
    "score without a pair": (["score", "nowhere", "a.de", "short.en"], 3, "100 lines", "E-DATA-01"),
    "hypotheses of another length": (
        ["score", "nowhere", "a.de", "a.en", "--hypotheses", "short.en"], 3, "has 98 lines and there", "E-DATA-12",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "words", "id"), MISTAKES.values(), ids=MISTAKES)
@pytest.mark.usefixtures("here")
def test_a_mistake_is_one_line_with_its_exit_code(arguments, code, words, id, capsys):
    before = sorted(path.name for path in Path().iterdir())
    assert main(arguments) == code
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("dragoman: ")
    assert error.rstrip().endswith(f"[{id}]")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    left = [path.name for path in Path().iterdir() if path.name != "runs"]
    assert sorted(left) == before  # nothing of the user's was touched


@pytest.mark.usefixtures("here")
def test_the_environment_gives_options_and_flags_go_before_it(monkeypatch, capsys):
    monkeypatch.setenv("DRAGOMAN_MINUTES", "-3")
    assert main(["train", "a.de", "a.en"]) == 2
    assert "train.minutes = -3.0 cannot be" in capsys.readouterr().err
    assert main(["train", "a.de", "a.en", "--minutes", "-4"]) == 2
    assert "train.minutes = -4.0 cannot be" in capsys.readouterr().err
    monkeypatch.setenv("DRAGOMAN_MINUTS", "3")
    assert main(["train", "a.de", "a.en", "--minutes", "1"]) == 2
    assert "did you mean DRAGOMAN_MINUTES? [E-SET-06]" in capsys.readouterr().err


def test_every_id_is_explained_in_the_documents():
    root = Path(__file__).parents[2]
    text = (root / "docs" / "messages.md").read_text(encoding="utf-8")
    import re

    used = {id for path in (root / "src").rglob("*.py") for id in re.findall(r'"(E-[A-Z]+-\d\d)"', path.read_text())}
    missing = sorted(id for id in used | {"E-USE-00"} if id not in text)
    assert missing == []


# ── translate ─────────────────────────────────────────────────────────────────────────────


def test_texts_are_translated_in_order(model, reverser, dragoman):
    found = dragoman("translate", model, "a b c", "d e")
    assert found.stdout.decode().split("\n")[:-1] == [t.text for t in reverser.translate(["a b c", "d e"])]
    assert found.stderr == b""


def test_standard_input_gives_a_line_for_a_line(model, dragoman):
    hostile = "a b\n\n \n\x00\n\u2028 a\n".encode() + b"\xff\xfe\n" + "🦊\r\nlast without an end".encode()
    found = dragoman("translate", model, given=hostile)
    assert found.returncode == 0
    assert found.stdout.count(b"\n") == 8
    assert found.stdout.split(b"\n")[1:4] == [b"", b"", b""]


def test_what_is_not_utf8_is_told_once_and_read_where_its_encoding_is_given(model, tmp_path, dragoman):
    (tmp_path / "in.txt").write_bytes("a b\na Hündin c\nb ä\n".encode("latin-1"))
    found = dragoman("translate", model, "--input", tmp_path / "in.txt")
    assert found.stdout.count(b"\n") == 3
    assert found.stderr.decode().count("is not UTF-8: byte 0xFC in line 2 (“H\\xfcndin”)") == 1
    assert found.stderr.count(b"is not UTF-8") == 1
    read = dragoman("translate", model, "--input", tmp_path / "in.txt", "--encoding", "latin-1", "--json")
    assert (read.stdout.count(b"\n"), read.stderr) == (3, b"")


def test_a_translator_is_not_scored_without_a_reference(model, tmp_path, dragoman):
    (tmp_path / "test.de").write_text("a b\n")
    found = dragoman("score", model, tmp_path / "test.de")
    assert found.returncode == 2
    assert f"use it so: dragoman score {model} SOURCE REFERENCE [E-USE-01]" in found.stderr.decode()


def test_files_to_score_of_different_lengths_are_said_without_a_word_of_training(model, tmp_path, dragoman):
    (tmp_path / "a").write_text("a\nb\n")
    (tmp_path / "b").write_text("a\n")
    found = dragoman("score", model, tmp_path / "a", tmp_path / "b")
    assert (found.returncode, b"[E-DATA-01]" in found.stderr, b"trained" in found.stderr) == (3, True, False)


def test_a_program_at_the_other_end_gets_its_answer_at_once(model):
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", "translate", str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        for line in (b"a b\n", b"c d e\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")  # would hang if it waited for the end of the input
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_files_go_in_and_out(model, tmp_path, dragoman):
    (tmp_path / "in.txt").write_text("a b\nc\n")
    assert dragoman("translate", model, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt").stdout == b""
    assert (tmp_path / "out.txt").read_text().count("\n") == 2


def test_a_file_may_be_replaced_by_its_translation(model, tmp_path, dragoman):
    path = tmp_path / "text.txt"
    path.write_text("a b\nc d e\n")
    assert dragoman("translate", model, "--input", path, "--output", path).returncode == 0
    assert path.read_text().count("\n") == 2
    assert path.read_text() != "a b\nc d e\n"


def test_an_output_that_is_a_pipe_is_written_into_and_stays_one(model, tmp_path, dragoman):
    """A device too: to put a file in the place of /dev/null would harm every other program."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert dragoman("translate", model, "a", "--output", pipe).returncode == 0
    assert os.read(reader, 1000).endswith(b"\n")
    os.close(reader)
    assert pipe.is_fifo()
    assert not pipe.with_name("pipe.new").exists()


def test_an_output_that_is_a_link_stays_one(model, tmp_path, dragoman):
    """As /dev/stdout is."""
    (tmp_path / "link").symlink_to(tmp_path / "real.txt")
    for _ in range(2):
        assert dragoman("translate", model, "a", "--output", tmp_path / "link").returncode == 0
        assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real.txt").read_text().count("\n") == 1


def test_an_output_is_left_alone_when_the_input_is_missing(model, tmp_path, dragoman):
    (tmp_path / "out.txt").write_text("precious")
    found = dragoman("translate", model, "--input", tmp_path / "nothing.txt", "--output", tmp_path / "out.txt")
    assert found.returncode == 3
    assert (tmp_path / "out.txt").read_text() == "precious"
    assert dragoman("translate", model, "a", "--output", tmp_path / "no" / "out.txt").returncode == 2
    assert dragoman("translate", model, "a", "--output", tmp_path).returncode == 2
    found = dragoman("translate", model, "--no-split", "--output", tmp_path / "new.txt", "a\n" + 99 * "a ")
    assert found.returncode == 3
    assert not [*tmp_path.glob("new.txt*")]  # nor what was half written


def test_a_compressed_file_is_unpacked_first(model, tmp_path, dragoman):
    import gzip

    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(b"a b\nc\n"))
    assert dragoman("translate", model, "--input", tmp_path / "in.txt.gz").stdout.count(b"\n") == 2


def test_json_carries_scores_tokens_and_alternatives(model, dragoman):
    found = dragoman("translate", model, "a b c d", "--nbest", "3", "--alignments", "--json")
    [line] = found.stdout.decode().splitlines()
    values = json.loads(line)
    assert {"text", "score", "log_prob", "tokens", "source_tokens", "alternatives", "alignment"} <= values.keys()
    assert len(values["alternatives"]) == 2


def test_n_best_come_with_rank_and_score(model, dragoman):
    rows = [
        row.split("\t") for row in dragoman("translate", model, "a b c d", "--nbest", "3").stdout.decode().splitlines()
    ]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert float(rows[0][1]) >= float(rows[1][1]) >= float(rows[2][1])


def test_alignments_are_pairs_after_a_tab(model, dragoman):
    text, pairs = dragoman("translate", model, "a b c d", "--alignments").stdout.decode().rstrip("\n").split("\t")
    assert len(pairs.split()) == len(text.split())


def test_a_long_line_is_split_with_a_word_or_refused(model, dragoman):
    long = " ".join("a" * 100)
    found = dragoman("translate", model, long)
    assert found.returncode == 0
    assert b"line 1 has 100 tokens and this model was trained on up to 64; it was split into 2 parts" in found.stderr
    found = dragoman("translate", model, long, "--no-split")
    assert found.returncode == 3
    assert found.stdout == b""


def test_neither_transformers_nor_the_compiler_of_torch_is_imported(model):
    """The compiler, which any model drawn without memory would import, takes longer than all the rest of torch."""
    code = (
        "import sys\nfrom dragoman.cli import main\n"
        f"assert main(['translate', {str(model)!r}, 'a b']) == 0\n"
        "assert not {'transformers', 'torch._dynamo', 'sympy'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, env=ENVIRONMENT).returncode == 0


def test_closed_streams_are_said_in_one_line(model):
    for stream, command, code, words in [
        ("0<&-", ["translate", str(model)], 2, "there is no text, and standard input is closed"),
        ("0<&-", ["classify", str(model)], 2, "there is no text, and standard input is closed"),
        ("0<&-", ["embed", str(model)], 2, "there is no text, and standard input is closed"),
        ("1>&-", ["translate", str(model), "a b"], 74, "standard output is closed"),
        ("1>&-", ["explain"], 74, "standard output is closed"),
    ]:
        shell = ["sh", "-c", f'exec "$@" {stream}', "sh", sys.executable, "-m", "dragoman", *command]
        found = subprocess.run(shell, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False)
        assert found.returncode == code, found.stderr
        assert words in found.stderr
        assert found.stderr.count("\n") == 1


TRAINING = ["--steps", "3", *(f"--set={pair}" for pair in (
    "model.width=16", "model.heads=2", "model.layers=1", "model.hidden=16", "training.tokens_per_step=128",
    "training.report_every=1", "training.warmup=0",
))]  # fmt: skip


@pytest.mark.parametrize("shell", ['"$@" --json | head -1', '"$@" 2>/dev/full', '"$@" 2>&-'])
def test_training_goes_on_when_what_it_shows_cannot_be_written(shell, tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"a b {n}\tb a {n}\n" for n in range(60)))
    command = [sys.executable, "-m", "dragoman", "train", "a.tsv", "--out", "run", *TRAINING]
    found = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell, "bash", *command],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    assert (tmp_path / "run" / "checkpoints" / "step-00000003" / "manifest.json").exists()
    assert (tmp_path / "run" / "model" / "manifest.json").exists()


def test_a_result_that_finds_no_room_ends_with_74_and_one_line():
    command = [sys.executable, "-m", "dragoman", "explain"]
    with open("/dev/full", "wb") as full:
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False)
    assert found.returncode == 74
    assert "could not be written (No space left on device)" in found.stderr
    assert found.stderr.count("\n") == 1


def test_samples_are_as_many_as_asked_for_by_different_luck_best_first(model, dragoman):
    command = ["translate", model, "a b c d e", "--sample", "--temperature", "3", "--seed", "5"]
    rows = [row.split("\t") for row in dragoman(*command, "--nbest", "4").stdout.decode().splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert len({row[2] for row in rows}) > 1
    scores = [float(row[1]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    [alone] = dragoman(*command).stdout.decode().splitlines()
    assert alone in {row[2] for row in rows}


# ── score ─────────────────────────────────────────────────────────────────────────────────


def test_a_score_has_its_signature_and_interval(model, reverser, tmp_path, dragoman):
    (tmp_path / "test.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in reverser.held_out[:60]))
    values = json.loads(dragoman("score", model, tmp_path / "test.tsv", "--by-length", "--json").stdout)
    assert [one["name"] for one in values["scores"]] == ["BLEU", "chrF2", "TER"]
    assert all("version:" in one["signature"] and one["margin"] > 0 for one in values["scores"])
    assert sum(bucket["sentences"] for bucket in values["by_length"]) == values["sentences"] == 60
    text = dragoman("score", model, tmp_path / "test.tsv", "--by-length").stdout.decode()
    assert "±" in text
    assert "1–10" in text


def test_hypotheses_are_scored_as_sacrebleu_scores_them(tmp_path, dragoman):
    import sacrebleu

    references = [f"the {a} saw the {b}" for a in ("fox", "dog", "owl") for b in ("hen", "cat", "cow")]
    hypotheses = [reference.replace("dog", "wolf") for reference in references]
    (tmp_path / "c.tsv").write_text("".join(f"x\t{r}\n" for r in references))
    (tmp_path / "h.txt").write_text("\n".join(hypotheses) + "\n")
    values = json.loads(
        dragoman("score", "none", tmp_path / "c.tsv", "--hypotheses", tmp_path / "h.txt", "--json").stdout
    )
    found = {one["name"]: one["value"] for one in values["scores"]}
    assert found["BLEU"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)
    assert found["chrF2"] == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score)
    assert found["TER"] == pytest.approx(sacrebleu.corpus_ter(hypotheses, [references]).score)
    assert values["exact"] == pytest.approx(100 * 6 / 9)


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.EIO, "look at the disk"), (errno.EROFS, "choose another place"), (errno.ENOSPC, "free some space")],
)
def test_an_error_of_the_disk_ends_in_one_line_wherever_it_happens(number, says, monkeypatch, capsys):
    def fails(_):
        raise OSError(number, os.strerror(number), "some/file")

    monkeypatch.setattr("dragoman.cli.call", fails)
    monkeypatch.setattr("dragoman.cli.let_go", lambda *_: False)  # standard output is not what failed here
    assert main(["train"]) == 74
    [line] = capsys.readouterr().err.splitlines()
    assert "some/file" in line
    assert says in line


def test_a_worker_that_was_asked_to_stop_and_saved_ends_with_0_or_torchrun_would_begin_again(monkeypatch):
    def stopped(_):
        raise Interrupted("E-RUN-07", "stopped at step 4 and saved; the same command goes on")

    monkeypatch.setattr("dragoman.cli.call", stopped)
    assert main(["train"]) == 130
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    assert main(["train"]) == 0
