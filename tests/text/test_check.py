"""The data doctor finds each harm that is done to a sound corpus, where it was done, and nothing in the sound one."""

import random
import tracemalloc
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.text.check import Columns, Finding, Report, check
from dragoman.text.corpus import Corpus, Pair, find_corpus
from dragoman.text.drift import Trace, find_drift, trace
from dragoman.text.reading import read_lines
from dragoman.text.split import split
from dragoman.text.stats import stats

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_multi30k = pytest.mark.skipif(not (DATA / "multi30k").is_dir(), reason="../shared/data/multi30k is absent")
needs_tatoeba = pytest.mark.skipif(not (DATA / "tatoeba").is_dir(), reason="../shared/data/tatoeba is absent")


def sentences(count: int, seed: int = 0) -> list[Pair]:
    """Different sources, each with its word-for-word translation; the words share no letters."""
    rng = random.Random(seed)
    words = [("".join(rng.choices("abcdefg", k=n)), "".join(rng.choices("tuvwxyz", k=n))) for n in range(2, 12)] * 3
    drawn: dict[str, Pair] = {}
    while len(drawn) < count:
        line = rng.choices(words, k=rng.randint(4, 14))
        pair = Pair(" ".join(ours for ours, _ in line) + ".", " ".join(theirs for _, theirs in line) + ".")
        drawn.setdefault(pair.source, pair)
    return list(drawn.values())


def corpus_of(folder: Path, pairs: list[Pair], name: str = "train", encoding: str = "utf-8") -> Corpus:
    folder.mkdir(exist_ok=True)
    for side, ending in enumerate(("de", "en")):
        (folder / f"{name}.{ending}").write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode(encoding))
    return find_corpus([folder / f"{name}.de", folder / f"{name}.en"])


def finding(report: Report, kind: str) -> Finding:
    (found,) = [finding for finding in report.findings if finding.kind == kind]
    return found


SOUND = sentences(400)


def harmed(changes: dict[int, Pair]) -> list[Pair]:
    """The sound pairs, with those on the given lines replaced."""
    return [changes.get(line, pair) for line, pair in enumerate(SOUND, start=1)]


# ---- the doctor


def test_a_sound_corpus_has_no_findings(tmp_path):
    assert check(corpus_of(tmp_path, SOUND)) == Report(400, ())
    assert check(corpus_of(tmp_path, SOUND)).exit_code == 0


def test_empty_sides_are_a_warning_and_many_are_an_error(tmp_path):
    few = check(corpus_of(tmp_path, harmed({7: Pair("", "x"), 9: Pair("y", " \u2028")})))
    assert finding(few, "empty-side") == Finding(
        "empty-side",
        "warning",
        2,
        (7, 9),
        "2 pairs have an empty side (first: line 7). They are dropped as pairs, so the rest stays aligned.",
    )
    assert few.exit_code == 0
    many = check(corpus_of(tmp_path, harmed({line: Pair("", "x") for line in range(1, 31)})))
    assert finding(many, "too-empty").severity == "error"
    assert many.exit_code == 3


@pytest.mark.parametrize(
    ("kind", "changes", "lines"),
    [
        ("duplicate", {20: SOUND[4], 30: SOUND[4]}, (20, 30)),
        ("several-targets", {20: Pair(SOUND[4].source, "vuvu tutu.")}, (5,)),
        ("identical-sides", {20: Pair(SOUND[19].source, SOUND[19].source)}, (20,)),
        ("odd-length", {20: Pair("ab.", SOUND[19].target * 3), 21: Pair(SOUND[20].source * 4, "tu.")}, (20, 21)),
        ("long", {20: Pair(SOUND[19].source * 30, SOUND[19].target * 30)}, (20,)),
        ("subwords", {20: Pair("ab@@ cd ef@@ g.", "tuvw xyz."), 21: Pair("▁abcdef ▁abc", "tuvw xyz")}, (20, 21)),
        ("escaped", {20: Pair("abc &quot;def&quot; abc.", "tuv &quot;xyz&quot; tuv.")}, (20,)),
    ],
)
def test_each_harm_is_found_on_its_lines(tmp_path, kind, changes, lines):
    found = finding(check(corpus_of(tmp_path, harmed(changes))), kind)
    assert found.lines == lines
    assert found.count == len(lines)
    assert f"(first: line {lines[0]})" in found.sentence


def test_text_with_spaces_before_full_stops_looks_tokenised(tmp_path):
    spaced = [Pair(pair.source.replace(".", " ."), pair.target.replace(".", " .")) for pair in SOUND]
    assert finding(check(corpus_of(tmp_path, spaced)), "tokenised").count == 400


def test_a_wrong_encoding_is_found_with_byte_and_line_and_what_stands_before_it_is_checked(tmp_path):
    corpus = corpus_of(tmp_path, harmed({5: Pair("", "x")}))
    path = corpus.paths[0]
    lines = path.read_bytes().split(b"\n")
    lines[16] = b"ein M\xe4dchen"
    path.write_bytes(b"\n".join(lines))
    report = check(corpus)
    assert "byte 0xE4 at line 17, column 6 (“M\\xe4dchen”)" in finding(report, "E-DATA-03").sentence
    assert report.exit_code == 3


def test_damaged_and_malformed_files_are_findings_too(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\nno tab\n")
    assert "line 2 has one column" in finding(check(find_corpus([tmp_path / "a.tsv"])), "E-DATA-05").sentence
    (tmp_path / "b.tsv.gz").write_bytes(b"not packed")
    report = check(find_corpus([tmp_path / "b.tsv.gz"]))
    assert [finding.kind for finding in report.findings] == ["E-DATA-06"]


def test_an_empty_corpus_is_an_error(tmp_path):
    report = check(corpus_of(tmp_path, []))
    assert (report.pairs, report.exit_code) == (0, 3)
    assert "holds no pair" in finding(report, "nothing").sentence


def test_what_is_not_text_is_noticed_with_its_first_line(tmp_path):
    corpus = corpus_of(tmp_path, SOUND)
    source, target = corpus.paths
    source.write_bytes(b"\xef\xbb\xbf" + source.read_bytes().replace(b"\n", b"\r\n"))
    lines = target.read_bytes().split(b"\n")
    lines[6] += "\u2028 \x85 \0".encode()
    target.write_bytes(b"\n".join(lines))
    report = check(corpus)
    assert {finding.severity for finding in report.findings} == {"notice"}
    assert [finding.sentence for finding in report.findings] == [
        f"{source} has 400 lines that end in CR LF (first: line 1). The CR is left out.",
        f"{source} has 1 byte order marks (first: line 1). They are left out.",
        f"{target} has 1 NUL characters (first: line 7). They are left out.",
        f"{target} has 1 line separators (U+2028) (first: line 7). "
        f"Here they are spaces; other tools may end a line there.",
        f"{target} has 1 next-line characters (U+0085) (first: line 7). "
        f"Here they are spaces; other tools may end a line there.",
    ]


def test_lines_that_end_in_cr_alone_are_an_error_with_its_way_out(tmp_path):
    corpus = corpus_of(tmp_path, SOUND)
    source, target = corpus.paths
    for path in (source, target):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    found = next(found for found in check(corpus).findings if found.kind == "odd-bytes")
    assert (found.severity, found.count, found.lines) == ("error", 400, (1,))
    assert found.sentence == (
        f"{source} has 400 CR without LF (first: line 1). Only LF ends a line. "
        f"Convert: tr '\\r' '\\n' < {source} > NEW."
    )


def test_a_cr_within_a_line_is_a_notice(tmp_path):
    corpus = corpus_of(tmp_path, SOUND)
    source = corpus.paths[0]
    source.write_bytes(source.read_bytes().replace(b" ", b"\r", 1).replace(b"\n", b"\r\n"))
    said = [found.sentence for found in check(corpus).findings if found.kind == "odd-bytes"]
    assert f"{source} has 1 CR without LF (first: line 1). Here they are spaces." in said


def test_test_sentences_in_training_are_found_with_both_lines(tmp_path):
    test = corpus_of(tmp_path, [*sentences(20, seed=1), SOUND[99], SOUND[7]], "test")
    found = finding(check(corpus_of(tmp_path, SOUND), against=test), "leak")
    assert (found.count, found.lines, found.elsewhere) == (2, (100, 8), (21, 22))
    assert "2 of 22 sources" in found.sentence
    assert "(first: line 21 there, line 100 here)" in found.sentence


def test_lines_of_several_corpora_are_told_with_their_file(tmp_path):
    first, second = corpus_of(tmp_path, SOUND[:50], "a"), corpus_of(tmp_path, [*SOUND[50:90], Pair("", "x")], "b")
    found = finding(check(find_corpus([*first.paths, *second.paths])), "empty-side")
    assert found.lines == (91,)
    assert f"(first: line 41 of {tmp_path / 'b.de'})" in found.sentence


def test_a_limit_ends_the_reading_but_not_the_counting_of_lines(tmp_path):
    corpus = corpus_of(tmp_path, harmed({300: Pair("", "x")}))
    assert check(corpus, limit=100) == Report(100, ())
    corpus.paths[1].write_text("x\n")
    assert [finding.kind for finding in check(corpus, limit=100).findings] == ["misaligned"]


def test_errors_come_first(tmp_path):
    pairs = [*harmed({line: Pair("", "x") for line in range(1, 31)}), SOUND[50], Pair("abc@@ d", "xyz")]
    severities = [finding.severity for finding in check(corpus_of(tmp_path, pairs)).findings]
    assert severities == ["error", "warning", "notice"]


def test_no_text_is_kept():
    columns, sentence = Columns(), "ein recht langer Satz " * 40
    columns.add(Pair(sentence, sentence))
    tracemalloc.start()
    for number in range(1000):
        columns.add(Pair(f"{sentence}{number}", f"{number}{sentence}"))
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 400_000, "1.8 MB of text were seen: 41 bytes a pair are kept, and a bounded number of short words"


# ---- drift


@pytest.mark.parametrize("lost", [100, 777, 1900])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("side", [0, 1])
def test_lines_that_are_missing_on_one_side_are_found(lost, count, side):
    sides = [[pair[each] for pair in sentences(2000)] for each in (0, 1)]
    del sides[side][lost : lost + count]
    drift = find_drift(trace(sides[0]), trace(sides[1]))
    assert drift is not None
    assert abs(drift.line - 1 - lost) < 20
    assert drift.shift == (count if side == 0 else -count)
    assert drift.after > drift.before


def test_a_large_hole_is_found_though_no_small_shift_mends_it():
    sides = [[pair[each] for pair in sentences(2000)] for each in (0, 1)]
    del sides[1][900:1200]
    drift = find_drift(trace(sides[0]), trace(sides[1]))
    assert drift is not None
    assert drift.shift is None
    assert abs(drift.line - 901) < 20


def test_sound_and_hopeless_corpora_show_no_drift():
    source, target = ([pair[each] for pair in sentences(2000)] for each in (0, 1))
    assert find_drift(trace(source), trace(target)) is None
    unrelated = target[:]
    random.Random(0).shuffle(unrelated)
    assert find_drift(trace(source), trace(unrelated)) is None
    assert find_drift(trace(["same"] * 500), trace(["like"] * 499)) is None
    assert find_drift(trace([]), trace(["a"])) is None


def test_a_shift_within_files_of_equal_length_is_an_error(tmp_path):
    source, target = ([pair[each] for pair in sentences(1000)] for each in (0, 1))
    del source[300], target[700]
    report = check(corpus_of(tmp_path, [Pair(*pair) for pair in zip(source, target, strict=True)]))
    found = finding(report, "drift")
    assert abs(found.lines[0] - 301) < 20
    assert "targets stand 1 line too low" in found.sentence
    assert report.exit_code == 3


def test_files_of_different_lengths_are_an_error_with_the_place(tmp_path):
    corpus = corpus_of(tmp_path, SOUND)
    lines = corpus.paths[1].read_bytes().split(b"\n")
    corpus.paths[1].write_bytes(b"\n".join(lines[:200] + lines[201:]))
    found = finding(check(corpus), "misaligned")
    assert "has 400 lines" in found.sentence
    assert "has 399" in found.sentence
    assert "Pairs drift apart near line " in found.sentence
    assert "data check" not in found.sentence, "that is the command that was just run"


@pytest.fixture(scope="module")
def multi30k() -> tuple[Trace, Trace]:
    german, english = (trace(read_lines(DATA / "multi30k" / f"train.{side}.gz")) for side in ("de", "en"))
    return german, english


@needs_multi30k
@pytest.mark.parametrize("lost", [60, 4211, 14_500, 28_900])
def test_a_line_lost_from_multi30k_is_found(multi30k, lost):
    source, target = multi30k
    keep = [row for row in range(len(target.lengths)) if row != lost]
    drift = find_drift(source, Trace(target.lengths[keep], target.marks[keep]))
    assert drift is not None
    assert drift.shift == -1
    assert abs(drift.line - 1 - lost) < 20


@needs_multi30k
def test_multi30k_has_no_errors_and_does_not_drift(multi30k):
    assert find_drift(*multi30k) is None
    files = [DATA / "multi30k" / f"val.{side}.gz" for side in ("de", "en")]
    assert check(find_corpus(files)).exit_code == 0


@needs_tatoeba
def test_tatoeba_has_no_errors():
    assert check(find_corpus([DATA / "tatoeba" / "val.fr-en.tsv.gz"])).exit_code == 0


# ---- numbers


def test_stats_count_what_is_there(tmp_path):
    pairs = [Pair("ein  Hund", "a dog"), Pair("ein Hund", "a dog"), Pair("ja", "yes it is"), Pair("", "x")]
    numbers = stats(corpus_of(tmp_path, pairs))
    assert (numbers.pairs, numbers.empty) == (3, 1)
    assert numbers.duplicates == pytest.approx(1 / 3, abs=1e-4)
    assert numbers.length_ratio == pytest.approx(19 / 18, abs=1e-3)
    assert (numbers.source.language, numbers.source.words, numbers.source.characters) == ("de", 5, 18)
    assert (numbers.target.mean_length, numbers.target.median_length) == (2.33, 2)
    assert (numbers.target.length_95, numbers.target.longest) == (3, 3)
    assert (numbers.source.distinct_words, numbers.target.distinct_words) == (3, 5)
    assert numbers.shared_characters == len(set("ein hundja HD") & set("a dogyes it is"))


def test_an_empty_corpus_has_stats_too(tmp_path):
    assert stats(corpus_of(tmp_path, [])).pairs == 0


# ---- parts


def read_part(paths: tuple[Path, ...], part: str) -> list[Pair]:
    return list(find_corpus([path for path in paths if path.name.startswith(f"{part}.")]).pairs())


@pytest.mark.parametrize(("valid", "test"), [(0.1, 0.2), (40, 80), (0.1, 80), (0, 0.2)])
def test_the_parts_are_the_corpus_and_share_no_source(tmp_path, valid, test):
    pairs = SOUND + [Pair(pair.source, pair.target + " u.") for pair in SOUND[:100]]
    done = split(corpus_of(tmp_path, pairs), tmp_path / "parts", valid, test, seed=3)
    parts = {part: read_part(done.paths, part) for part in ("train", "valid", "test")}
    assert sorted(pair for part in parts.values() for pair in part) == sorted(pairs)
    assert done.counts == {part: len(pairs) for part, pairs in parts.items()}
    sources = {part: {pair.source for pair in pairs} for part, pairs in parts.items()}
    assert not sources["train"] & sources["test"]
    assert not sources["train"] & sources["valid"]
    assert not sources["valid"] & sources["test"]
    assert abs(done.counts["test"] - (test if test >= 1 else test * 500)) < 30
    assert abs(done.counts["valid"] - (valid if valid >= 1 else valid * 500)) < 30


def test_numbers_of_pairs_are_met_where_no_source_repeats(tmp_path):
    done = split(corpus_of(tmp_path, SOUND), tmp_path / "parts", 25, 50)
    assert done.counts == {"train": 325, "valid": 25, "test": 50}
    assert {path.name for path in done.paths} == {f"{p}.{s}" for p in ("train", "valid", "test") for s in ("de", "en")}


def test_the_seed_decides_the_split(tmp_path):
    corpus = corpus_of(tmp_path, SOUND)
    parts = [
        read_part(split(corpus, tmp_path / str(n), 0.1, 0.1, seed).paths, "test") for n, seed in enumerate((1, 1, 2))
    ]
    assert parts[0] == parts[1] != parts[2]


def test_pairs_with_an_empty_side_are_left_out_and_told(tmp_path):
    done = split(corpus_of(tmp_path, harmed({9: Pair("", "x")})), tmp_path / "parts", 0.1, 0.1)
    assert sum(done.counts.values()) == 399
    assert done.dropped.sentences() == ["1 pair has an empty side (first: line 9)"]


def test_a_corpus_in_one_file_is_split_into_tsv_whatever_its_texts_hold(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"src": "a\\nb\\tc \\ud83d", "tgt": "d\\r\\u2028e"}\n')
    done = split(find_corpus([path]), tmp_path / "parts", 0, 0)
    assert (tmp_path / "parts" / "train.tsv").read_bytes() == "a b c \td \u2028e\n".encode()
    assert done.counts == {"train": 1, "valid": 0, "test": 0}


def test_nothing_is_overwritten(tmp_path):
    corpus = corpus_of(tmp_path, SOUND)
    with pytest.raises(UsageError, match="exists already and is not overwritten") as caught:
        split(corpus, tmp_path, 0.1, 0.1)
    assert (caught.value.id, caught.value.exit_code) == ("E-USE-03", 2)
    assert corpus.paths[0].read_text().startswith(SOUND[0].source)
    with pytest.raises(UsageError, match="is a file, and the parts need a folder"):
        split(corpus, corpus.paths[0], 0.1, 0.1)


@pytest.mark.parametrize(("valid", "test"), [(0.5, 0.5), (400, 0), (200, 0.6)])
def test_parts_that_leave_nothing_to_train_on_are_refused(tmp_path, valid, test):
    with pytest.raises(UsageError, match="leave nothing to train on") as caught:
        split(corpus_of(tmp_path, SOUND), tmp_path / "parts", valid, test)
    assert caught.value.id == "E-USE-04"
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize(("different", "times"), [(50, 40), (100, 20), (7, 300)])
def test_a_corpus_that_repeats_itself_does_not_drift(tmp_path, different, times):
    for name, side in zip("ab", zip(*sentences(different), strict=True), strict=True):
        (tmp_path / name).write_text("\n".join([*side] * times) + "\n")
    found = {finding.kind for finding in check(find_corpus([tmp_path / "a", tmp_path / "b"])).findings}
    assert "drift" not in found
