"""All formats give the same pairs; what does not pair up is told by file, line and way out."""

import gzip
import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError, DragomanError, UsageError
from dragoman.text.corpus import (
    Corpus,
    Dropped,
    Pair,
    check_alignment,
    count_lines,
    find_corpus,
    fingerprint,
    keep,
    part_of,
    refuse_empty,
)
from dragoman.text.drift import LARGEST_REACH, trace

PAIRS = [
    Pair("Ein Hund läuft.", "A dog runs."),
    Pair("", "nothing there"),
    Pair("Zeilen\u2028trenner\x85 <&>", "“quoted” 👩‍👩‍👧"),
    Pair("  Leerzeichen  ", " spaces "),
]


def tmx(units: list[str]) -> str:
    body = "".join(f"<tu>{unit}</tu>" for unit in units)
    return (
        f'<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header/><body>{body}</body></tmx>'
    )


def unit(*texts: tuple[str, str]) -> str:
    return "".join(f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>' for language, text in texts)


def write(path: Path, text: str) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_plain(folder: Path, source: list[str], target: list[str]) -> list[Path]:
    files = {"train.de": source, "train.en": target}
    return [write(folder / name, "".join(f"{line}\n" for line in lines)) for name, lines in files.items()]


def write_as(kind: str, folder: Path, packing: str) -> list[Path]:
    if kind == "plain":
        sides = {"train.de": [pair.source for pair in PAIRS], "train.en": [pair.target for pair in PAIRS]}
        return [write(folder / (n + packing), "".join(f"{line}\n" for line in lines)) for n, lines in sides.items()]
    rows = {
        "tsv": "".join(f"{source}\t{target}\tCC-BY 2.0\n" for source, target in PAIRS),
        "jsonl": "".join(json.dumps({"translation": {"de": s, "en": t}}) + "\n" for s, t in PAIRS),
        "tmx": tmx([unit(("de", escape(s)), ("en", escape(t))) for s, t in PAIRS]),
    }
    return [write(folder / f"train.de-en.{kind}{packing}", rows[kind])]


def failure(corpus: Corpus) -> DragomanError:
    with pytest.raises(DragomanError) as caught:
        list(corpus.pairs())
    return caught.value


def refusal(*names: str | Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        find_corpus(names)
    return caught.value


# ---- every kind


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize("kind", ["plain", "tsv", "jsonl", "tmx"])
def test_every_kind_gives_the_same_pairs_as_often_as_asked(tmp_path, kind, packing):
    corpus = find_corpus(write_as(kind, tmp_path, packing))
    assert list(corpus.pairs()) == PAIRS
    assert list(corpus.pairs()) == PAIRS
    assert corpus.languages == ("de", "en")
    assert corpus.name == "train-de-en"
    assert all(path.exists() for path in corpus.paths)


def test_several_corpora_follow_one_another(tmp_path):
    corpora = [*write_as("tsv", tmp_path, ""), *write_as("jsonl", tmp_path, ""), *write_as("tmx", tmp_path, ".gz")]
    corpus = find_corpus(corpora)
    assert list(corpus.pairs()) == PAIRS * 3
    assert corpus.name == "train-de-en-and-2-more"
    assert list(corpus.paths) == corpora


def test_several_pairs_of_plain_files_follow_one_another(tmp_path):
    files = write_as("plain", tmp_path, "")
    assert list(find_corpus([*files, *files]).pairs()) == PAIRS * 2


@pytest.mark.parametrize(
    ("names", "name", "languages"),
    [
        (["train.de.gz", "train.en.gz"], "train-de-en", ("de", "en")),
        (["news.pt_BR", "news.en"], "news-pt_BR-en", ("pt-br", "en")),
        (["a.txt", "b.txt"], "a-b", ("", "")),
        (["train.source", "train.target"], "train-source-target", ("", "")),
        (["x.tsv.gz"], "x", ("", "")),
        (["de-en.tsv"], "de-en", ("de", "en")),
        (["two-way.tsv"], "two-way", ("", "")),
        (["my corpus.tsv"], "my-corpus", ("", "")),
    ],
)
def test_names_tell_the_run_and_the_languages(tmp_path, names, name, languages):
    corpus = find_corpus([write(tmp_path / name, "") for name in names])
    assert (corpus.name, corpus.languages) == (name, languages)


def test_languages_that_are_given_win(tmp_path):
    files = write_plain(tmp_path, ["a"], ["b"])
    assert find_corpus(files, source_language="nds").languages == ("nds", "en")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no files were given"),
        (["a.de"], "one plain file has no partner (a.de)"),
        (["a.de", "a.en", "b.de"], "3 plain files have no partner"),
        (["a.de", "a.tsv"], "cannot be mixed (a.de a.tsv)"),
        (["a.csv"], "a.csv is of a kind that is not read here; save it as .tsv"),
    ],
)
def test_files_without_a_meaning_are_refused_with_what_is_expected(tmp_path, names, said):
    error = refusal(*(write(tmp_path / name, "") for name in names))
    assert (error.id, error.exit_code) == ("E-USE-01", 2)
    assert said in error.sentence
    assert "Expected: SOURCE TARGET" in error.sentence


def test_a_missing_file_is_told_before_anything_is_read(tmp_path):
    with pytest.raises(DataError, match=r"train\.fr does not exist\. Nearest in .*: train\.en, train\.de"):
        find_corpus([tmp_path / "train.fr", *write_plain(tmp_path, ["a"], ["b"])])


# ---- plain files


def captions(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sentences of two made-up languages, of like lengths and little else in common."""
    rng = random.Random(seed)
    german = ["der", "kleine", "Hund", "springt", "über", "das", "Wasser", "gelbes", "Fahrrad", "Mädchen"]
    english = ["the", "little", "dog", "jumps", "over", "that", "water", "yellow", "bike", "girl"]
    drawn = [[rng.randrange(10) for _ in range(rng.randint(3, 16))] for _ in range(count)]
    sides = [" ".join(words[n] for n in line) + "." for words in (german, english) for line in drawn]
    return sides[:count], sides[count:]


@pytest.mark.parametrize("lost", [250, 700, 1500])
def test_files_of_different_lengths_are_refused_with_the_place_where_they_drift_apart(tmp_path, lost):
    source, target = captions(2000)
    del target[lost]
    de, en = write_plain(tmp_path, source, target)
    corpus = find_corpus([de, en])
    with pytest.raises(DataError) as caught:
        check_alignment(corpus, "Nothing was trained. ")
    error = caught.value
    assert (error.id, error.exit_code) == ("E-DATA-01", 3)
    before, line, after = error.sentence.replace(" (", "near line ").split("near line ")
    assert before == f"{de} has 2,000 lines, {en} has 1,999. Pairs drift apart "
    assert abs(int(line.replace(",", "")) - lost) < 20
    assert after.startswith("lengths differ by ")
    assert after.endswith(f"Nothing was trained. See: dragoman data check {de} {en}")
    assert failure(corpus).id == "E-DATA-01"


def test_of_a_file_without_end_only_the_beginning_is_compared(tmp_path, monkeypatch):
    source, target = write_plain(tmp_path, *captions(50))
    target = target.rename(target.with_name(target.name + ".gz"))
    target.write_bytes(gzip.compress(b"\n" * 1_000_000))
    kept = []
    monkeypatch.setattr("dragoman.text.corpus.trace", lambda lines: kept.append(trace(lines)) or kept[-1])
    with pytest.raises(DataError, match="has 1,000,000\\."):
        check_alignment(find_corpus([source, target]))
    assert [len(one.lengths) for one in kept] == [50, 50 + LARGEST_REACH + 1]


def test_a_line_too_many_at_the_end_is_told_too(tmp_path):
    error = failure(find_corpus(write_plain(tmp_path, ["a", "b", "c"], ["x", "y"])))
    assert error.id == "E-DATA-01"
    assert "has 3 lines" in error.sentence
    assert "look at the last lines first" in error.sentence


def test_aligned_files_and_other_kinds_pass(tmp_path):
    check_alignment(find_corpus(write_as("plain", tmp_path, "")))
    check_alignment(find_corpus(write_as("tmx", tmp_path, "")))


def test_a_separator_within_a_line_shifts_no_pair(tmp_path):
    hostile = ["a\u2028b", "c\x85d", "e\x0bf", "g\0h", "i\rj", "\ufeffk"]
    corpus = find_corpus(write_plain(tmp_path, hostile, [str(number) for number in range(6)]))
    assert [pair.target for pair in corpus.pairs()] == ["0", "1", "2", "3", "4", "5"]
    assert [pair.source for pair in corpus.pairs()][:5] == hostile[:5]


# ---- tsv and jsonl


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("a.tsv", "no tab here", "line 3 has one column and no tab"),
        ("a.jsonl", "{", "line 3 is not JSON"),
        ("a.jsonl", "[" * 100_000, "line 3 is not JSON"),
        ("a.jsonl", "[1, 2]", "line 3 is not {"),
        ("a.jsonl", '{"translation": "Hund"}', "line 3 is not {"),
        ("a.jsonl", '{"src": "Hund"}', "line 3 has no text under 'tgt' (its keys: src; see --src and --tgt)"),
        ("a.jsonl", '{"src": "Hund", "tgt": 7}', "line 3 has no text under 'tgt'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, name, line, said):
    good = "Hund\tdog\n" if name == "a.tsv" else '{"src": "Hund", "tgt": "dog"}\n'
    path = write(tmp_path / name, f"{good}{good}{line}\n{good}")
    error = failure(find_corpus([path]))
    assert (error.id, error.exit_code) == ("E-DATA-05", 3)
    assert error.sentence.startswith(f"{path}: {said}")


def test_a_blank_line_is_an_empty_pair(tmp_path):
    assert list(find_corpus([write(tmp_path / "a.tsv", "a\tb\n\n")]).pairs()) == [Pair("a", "b"), Pair("", "")]
    row = '{"source": "a", "target": "b"}'
    assert list(find_corpus([write(tmp_path / "a.jsonl", f"{row}\n\n")]).pairs()) == [Pair("a", "b"), Pair("", "")]


@pytest.mark.parametrize(
    ("row", "pair"),
    [
        ({"src": "a", "tgt": "b"}, ("a", "b")),
        ({"target": "b", "source": "a"}, ("a", "b")),
        ({"id": 1, "translation": {"en": "a", "de": "b"}}, ("a", "b")),
        ({"id": 1, "en": "a", "de": "b"}, ("a", "b")),
    ],
)
def test_jsonl_keys(tmp_path, row, pair):
    assert next(find_corpus([write(tmp_path / "a.jsonl", json.dumps(row))]).pairs()) == pair


@pytest.mark.parametrize(
    ("row", "asked", "pair"),
    [
        ({"id": "t1", "de": "a", "en": "b"}, (None, None), ("a", "b")),
        ({"domain": "news", "pt_BR": "a", "score": "0.7", "en": "b"}, (None, None), ("a", "b")),
        ({"id": "dua kata", "en": "b"}, (None, None), ("dua kata", "b")),
        ({"id": "kata", "en": "b"}, (None, None), ("kata", "b")),
        ({"id": "t1", "de": "a", "en": "b"}, ("en", None), ("b", "a")),
        ({"fr": "c", "de": "a", "en": "b"}, ("de", "en"), ("a", "b")),
        ({"source": "news", "target": "x", "de": "a", "en": "b"}, ("de", "en"), ("a", "b")),
    ],
)
def test_keys_that_are_languages_go_before_others(tmp_path, row, asked, pair):
    corpus = find_corpus(
        [write(tmp_path / "a.jsonl", json.dumps(row))], source_language=asked[0], target_language=asked[1]
    )
    assert next(corpus.pairs()) == pair


@pytest.mark.parametrize(
    ("row", "asked", "keys"),
    [
        ({"translation": {"fr": "c", "de": "a", "en": "b"}}, (None, None), "fr, de, en"),
        ({"translation": {"fr": "c", "de": "a", "en": "b"}}, ("de", None), "fr, de, en"),
        ({"number": "1", "question": "a", "answer": "b"}, (None, None), "number, question, answer"),
        ({"id": "dua kata", "de": "a", "en": "b"}, (None, None), "id, de, en"),
    ],
)
def test_no_two_of_several_keys_are_chosen_for_nobody(tmp_path, row, asked, keys):
    corpus = find_corpus(
        [write(tmp_path / "a.jsonl", json.dumps(row))], source_language=asked[0], target_language=asked[1]
    )
    assert f"has text under {keys}; choose two of them with --src and --tgt" in failure(corpus).sentence


def test_several_files_give_the_same_direction_whatever_the_order_of_their_keys(tmp_path):
    one = write(tmp_path / "a.jsonl", '{"de": "a", "en": "b"}\n')
    two = write(tmp_path / "b.jsonl", '{"en": "d", "de": "c"}\n')
    assert list(find_corpus([one, two]).pairs()) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    ("name", "text", "sides"),
    [
        ("a.tsv", "a\tb\n", ("first column", "second column")),
        ("a.de-en.tsv", "a\tb\n", ("de", "en")),
        ("a.jsonl", '{"question": "a", "answer": "b"}', ("question", "answer")),
        ("a.jsonl", '{"src": "a", "tgt": "b"}', ("src", "tgt")),
        ("a.tmx", tmx([unit(("de", "a"), ("en", "b"))]), ("de", "en")),
    ],
)
def test_the_sides_have_names_for_people(tmp_path, name, text, sides):
    assert find_corpus([write(tmp_path / name, text)]).sides == sides


def test_plain_files_without_languages_are_called_by_their_names(tmp_path):
    files = [write(tmp_path / "source.txt", "a\n"), write(tmp_path / "train.en", "b\n")]
    assert find_corpus(files).sides == ("source.txt", "en")


def test_jsonl_languages_are_chosen_once_for_all_lines(tmp_path):
    rows = [{"translation": {"de": "a", "en": "b"}}, {"translation": {"en": "d", "de": "c"}}]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert list(find_corpus([path]).pairs()) == [("a", "b"), ("c", "d")]
    turned = find_corpus([path], source_language="en")
    assert list(turned.pairs()) == [("b", "a"), ("d", "c")]
    assert turned.languages == ("en", "de")


def test_half_a_surrogate_pair_from_json_is_cleaned_away(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"src": "a \\ud83d b", "tgt": "c"}\n')
    (pair,) = find_corpus([path]).pairs()
    assert keep(pair, 1, Dropped()) == ("a b", "c")


# ---- tmx


def test_units_without_both_languages_are_skipped_and_counted(tmp_path):
    units = [
        unit(("de", "a"), ("en", "b")),
        unit(("de", "c")),
        unit(("fr", "d"), ("en", "e")),
        unit(("EN-us", "g"), ("de_AT", "f")),
    ]
    path, dropped = write(tmp_path / "a.tmx", tmx(units)), Dropped()
    assert list(find_corpus([path]).pairs(dropped)) == [("a", "b"), ("f", "g")]
    assert dropped.sentences() == ["2 pairs have only one of the two languages (first: line 2)"]


def test_tmx_languages_can_be_chosen(tmp_path):
    units = [unit(("de", "a"), ("en-GB", "b"), ("fr", "c"), ("pt-BR", "d"), ("pt-PT", "e"))]
    path = write(tmp_path / "a.tmx", tmx(units))

    def read(source, target):
        return list(find_corpus([path], source_language=source, target_language=target).pairs())

    assert read("fr", "de") == [("c", "a")]
    assert read("pt-BR", "pt-pt") == [("d", "e")]
    for source, target in ((None, None), (None, "de")):
        with pytest.raises(DataError, match="has texts in de, en-gb, fr, pt-br, pt-pt; choose two of them"):
            read(source, target)
    with pytest.raises(DataError, match="no unit in both it and de language; its languages are de, en-gb, fr"):
        read("it", "de")


def test_markup_inside_a_segment_is_not_text(tmp_path):
    segment = (
        'Press <bpt i="1">&lt;b&gt;</bpt><hi>the <hi>red</hi></hi><ept i="1">&lt;/b&gt;</ept> key<!-- no --><ph/>.'
    )
    path = write(tmp_path / "a.tmx", tmx([unit(("en", segment), ("de", "x"))]))
    assert next(find_corpus([path]).pairs()).source == "Press the red key."


def test_broken_xml_is_told_with_its_line(tmp_path):
    path = write(tmp_path / "a.tmx", "<tmx>\n<body>\n<tu>\n</body></tmx>")
    error = failure(find_corpus([path]))
    assert error.id == "E-DATA-05"
    assert f"{path} is not well-formed XML" in error.sentence
    assert "line 4" in error.sentence


def test_a_cut_off_packed_memory_is_told(tmp_path):
    path = write(tmp_path / "a.tmx.gz", tmx([unit(("de", str(n)), ("en", str(n))) for n in range(5000)]))
    path.write_bytes(path.read_bytes()[:-2000])
    assert failure(find_corpus([path])).id == "E-DATA-06"


def test_entities_are_not_expanded_nor_other_files_read(tmp_path):
    secret = write(tmp_path / "secret", "secret")
    doctype = f'<!DOCTYPE tmx [<!ENTITY own "own"><!ENTITY file SYSTEM "{secret.as_uri()}">]>'
    body = f"<body><tu>{unit(('de', 'a&own;b&file;c&amp;'), ('en', 'x'))}</tu></body>"
    path = write(tmp_path / "a.tmx", f'<?xml version="1.0"?>{doctype}<tmx>{body}</tmx>')
    assert next(find_corpus([path]).pairs()).source == "abc&"


def test_a_billion_laughs_are_refused(tmp_path):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = f"<body><tu>{unit(('de', '&l9;'), ('en', 'x'))}</tu></body>"
    path = write(tmp_path / "a.tmx", f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{laughs}]><tmx>{body}</tmx>')
    assert failure(find_corpus([path])).id == "E-DATA-05"


def test_a_segment_over_one_mebibyte_is_refused(tmp_path):
    path = write(tmp_path / "a.tmx", tmx([unit(("de", "a" * (1 << 21)), ("en", "b"))]))
    assert failure(find_corpus([path])).id == "E-DATA-07"


def test_a_large_memory_is_read_in_little_memory(tmp_path):
    """Its tree would take over 100 MB; another process measures, since this one has grown already."""
    path = write(
        tmp_path / "a.tmx.gz", tmx([unit(("de", f"Satz {n}"), ("en", f"sentence {n}")) for n in range(100_000)])
    )
    program = """
import resource, sys
from dragoman.text.corpus import find_corpus
pairs = find_corpus(sys.argv[1:]).pairs()
for _ in range(1000): next(pairs)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = 1000 + sum(1 for _ in pairs)
print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    run = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    count, grown = map(int, run.stdout.split())
    assert count == 100_000
    assert grown < 16, "megabytes"


# ---- what becomes of a pair


def test_a_pair_with_an_empty_side_is_dropped_with_its_line():
    dropped = Dropped()
    assert keep(Pair(" a\u00a0b ", "c"), 1, dropped) == Pair("a b", "c")
    assert keep(Pair("a", " \0\u2028"), 812, dropped) is None
    assert dropped.sentences() == ["1 pair has an empty side (first: line 812)"]
    assert keep(Pair("", "b"), 900, dropped) is None
    assert dropped.sentences() == ["2 pairs have an empty side (first: line 812)"]


def test_too_many_empty_sides_are_refused():
    dropped = Dropped()
    for line in range(3, 9):
        keep(Pair("", "b"), line, dropped)
    refuse_empty(dropped, 120)
    refuse_empty(dropped, 10, limit=0.6)
    refuse_empty(Dropped(), 0)
    with pytest.raises(DataError, match=r"6 of 100 pairs have an empty side \(first: line 3\), more than 5%") as caught:
        refuse_empty(dropped, 100)
    assert (caught.value.id, caught.value.exit_code) == ("E-DATA-02", 3)


def test_a_fingerprint_is_the_sha256_of_the_bytes_on_the_disk(tmp_path):
    path = write(tmp_path / "a.gz", "text")
    assert fingerprint(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DataError, match="does not exist"):
        fingerprint(tmp_path / "b")


@given(st.text(st.characters()), st.integers(-5, 1 << 40))
def test_the_part_depends_on_the_cleaned_source_and_the_seed(source, seed):
    assert 0 <= part_of(source, seed) < 1
    assert part_of(f"  {source}\0 ", seed) == part_of(source, seed)


def test_parts_are_stable_even_and_differ_by_seed():
    assert part_of("Ein Hund läuft.") == 0.13455303732123014  # a split made today must be the split of tomorrow
    assert part_of("Ein Hund läuft.", 1) != part_of("Ein Hund läuft.")
    below = sum(part_of(str(number)) < 0.1 for number in range(5000))
    assert 420 < below < 580  # ± 4 standard deviations


def test_lines_are_counted_as_they_are_read(tmp_path):
    for text in ("", "a", "a\n", "a\nb", "\n\n", "a\u2028b\r\n"):
        path = write(tmp_path / "a.de", text)
        assert count_lines(path) == text.count("\n") + (not text.endswith("\n") and bool(text))
