"""Generated corpora: one right answer to every source, and nothing held out that was trained on."""

import os
import re
import subprocess
import sys
from datetime import date, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np
import pytest

from dragoman.errors import UsageError
from dragoman.text.generated import KINDS, dates, generate, numbers, write_corpus
from dragoman.text.generated.dates import FIRST, GRAMMARS, LAST, every_form
from dragoman.text.generated.numbers import LANGUAGES, LARGEST, spell_german
from dragoman.text.generated.sequences import LONGEST

every_kind = pytest.mark.parametrize("kind", KINDS)


def load_unchecked(module: ModuleType) -> ModuleType:
    """The same module, past the import hook that checks types at every call: here the calls are millions."""
    spec = spec_from_file_location(f"unchecked_{module.__name__}", module.__file__)
    unchecked = module_from_spec(spec)
    spec.loader.exec_module(unchecked)
    return unchecked


def days_of(year: int) -> list[date]:
    first = date(year, 1, 1)
    return [first + timedelta(days) for days in range((date(year + 1, 1, 1) - first).days)]


def forms_in_every_language(day: date) -> set[str]:
    return {form for grammar in GRAMMARS.values() for form in every_form(day, grammar)}


# dates


def test_no_string_is_the_date_of_two_days_even_without_regard_to_case():
    plain = load_unchecked(dates)
    meaning: dict[str, date] = {}
    for day in days_of(1950) + days_of(1999) + days_of(2024) + days_of(2049):
        for grammar in plain.GRAMMARS.values():
            for form in plain.every_form(day, grammar):
                assert meaning.setdefault(form.casefold(), day) == day, form


def test_every_form_shows_its_year_once_in_full():
    for day in (date(1950, 1, 1), date(1999, 10, 9), date(2012, 12, 12), date(2049, 12, 31)):
        assert all(form.count(str(day.year)) == 1 for form in forms_in_every_language(day))


@pytest.mark.parametrize(
    ("language", "iso", "text"),
    [
        ("British English", "2026-11-15", "15 November 2026"),
        ("British English", "2026-11-15", "the 15th of November 2026"),
        ("British English", "1981-05-02", "Saturday the 2nd of May 1981"),
        ("British English", "2001-01-11", "11th Jan 2001"),
        ("British English", "2001-03-03", "3RD MARCH 2001"),
        ("American English", "2026-11-15", "Sunday, November 15, 2026"),
        ("American English", "2001-12-22", "Dec 22nd, 2001"),
        ("American English", "2001-07-31", "july 31st, 2001"),
        ("German", "2026-11-15", "15.11.2026"),
        ("German", "2026-03-05", "05.03.2026"),
        ("German", "2026-03-05", "5.3.2026"),
        ("German", "2026-11-15", "am Sonntag, den 15. November 2026"),
        ("German", "2026-03-05", "Do., 5. März 2026"),
        ("French", "2026-05-01", "le vendredi 1er mai 2026"),
        ("French", "2026-08-02", "2 août 2026"),
        ("French", "2026-02-03", "3 FÉVRIER 2026"),
        ("Spanish", "2026-11-15", "domingo, 15 de noviembre de 2026"),
        ("Spanish", "2026-01-01", "1.º de enero de 2026"),
        ("Spanish", "2026-01-01", "1 de enero del 2026"),
        ("Italian", "2026-03-08", "l'8 marzo 2026"),
        ("Italian", "2026-03-09", "il 9 marzo 2026"),
        ("Italian", "2026-03-01", "domenica 1º marzo 2026"),
        ("Dutch", "2026-11-15", "op zondag 15 november 2026"),
        ("Dutch", "2026-03-02", "2 mrt. 2026"),
        ("Portuguese", "2026-11-16", "segunda-feira, 16 de novembro de 2026"),
        ("Portuguese", "2026-03-01", "1º de março de 2026"),
        ("Polish", "2026-11-15", "niedziela, 15 listopada 2026 r."),
        ("Polish", "2026-11-15", "15 XI 2026"),
        ("Polish", "2026-10-15", "15 października 2026 roku"),
        ("Swedish", "2026-11-15", "söndagen den 15 november 2026"),
        ("Swedish", "2026-05-01", "den 1 maj 2026"),
        ("Turkish", "2026-11-15", "15 Kasım 2026, Pazar"),
        ("Turkish", "2026-04-23", "23 NİSAN 2026"),
        ("Turkish", "2026-05-19", "19 MAYIS 2026"),
    ],
)
def test_people_write_the_date_like_this(language, iso, text):
    assert text in set(every_form(date.fromisoformat(iso), GRAMMARS[language]))


@pytest.mark.parametrize("language", GRAMMARS)
def test_weekday_names_agree_with_the_calendar(language):
    """16 November 2026 is a Monday: from there on, each day's forms name that day and no other."""
    grammar = GRAMMARS[language]
    full_names = [written[0] for written in grammar.weekdays]
    for days, name in enumerate(full_names):
        forms = every_form(date(2026, 11, 16) + timedelta(days), grammar)
        words = {word.removesuffix("en") for form in forms for word in re.split("[ ,]+", form)}  # söndag-en
        assert words & set(full_names) == {name}


@pytest.mark.parametrize("language", GRAMMARS)
def test_a_grammar_has_twelve_months_and_seven_days(language):
    grammar = GRAMMARS[language]
    assert len(set(grammar.months)) == 12
    assert len(set(grammar.weekdays)) == 7


def test_dates_lie_in_the_stated_century_and_weekdays_are_named_sometimes():
    pairs = [KINDS["dates"](Random(number)) for number in range(3000)]
    days = [date.fromisoformat(target) for _, target in pairs]
    assert FIRST <= min(days) < date(1952, 1, 1)
    assert date(2048, 1, 1) < max(days) <= LAST
    full_names = {names[0].casefold() for grammar in GRAMMARS.values() for names in grammar.weekdays}
    named = sum(any(name in source.casefold() for name in full_names) for source, _ in pairs)
    assert 0.1 < named / len(pairs) < 0.5


# numbers


def test_no_spelling_is_the_name_of_two_numbers_in_any_language():
    """All seven million names, told apart by 64-bit hashes: chance could only fail this test, never pass it."""
    names, values = [], []
    for spell in load_unchecked(numbers).LANGUAGES.values():
        spelled = [(hash(name), value) for value in range(LARGEST + 1) for name in spell(value)]
        names.append(np.fromiter((name for name, _ in spelled), np.int64))
        values.append(np.fromiter((value for _, value in spelled), np.int64))
    order = np.argsort(np.concatenate(names))
    same_name = np.diff(np.concatenate(names)[order]) == 0
    same_value = np.diff(np.concatenate(values)[order]) == 0
    assert (same_value | ~same_name).all()


def test_german_puts_units_before_tens():
    assert spell_german(53) == ("dreiundfünfzig",)
    assert spell_german(53_201) == ("dreiundfünfzigtausendzweihunderteins",)


@pytest.mark.parametrize(
    ("language", "value", "spellings"),
    [
        ("English", 0, "zero"),
        ("English", 13, "thirteen"),
        ("English", 40, "forty"),
        ("English", 53, "fifty-three"),
        ("English", 100, "one hundred"),
        ("English", 105, "one hundred and five/one hundred five"),
        ("English", 1_001, "one thousand and one/one thousand one"),
        ("English", 1_100, "one thousand one hundred"),
        (
            "English",
            105_312,
            "one hundred and five thousand three hundred and twelve/one hundred five thousand three hundred twelve",
        ),
        ("German", 0, "null"),
        ("German", 1, "eins"),
        ("German", 16, "sechzehn"),
        ("German", 17, "siebzehn"),
        ("German", 21, "einundzwanzig"),
        ("German", 30, "dreißig"),
        ("German", 67, "siebenundsechzig"),
        ("German", 100, "einhundert/hundert"),
        ("German", 101, "einhunderteins/hunderteins"),
        ("German", 211, "zweihundertelf"),
        ("German", 1_001, "eintausendeins/tausendeins"),
        ("German", 21_000, "einundzwanzigtausend"),
        ("German", 101_000, "einhunderteintausend/hunderteintausend"),
        ("French", 0, "zéro"),
        ("French", 17, "dix-sept"),
        ("French", 21, "vingt et un/vingt-et-un"),
        ("French", 22, "vingt-deux"),
        ("French", 70, "soixante-dix"),
        ("French", 71, "soixante et onze/soixante-et-onze"),
        ("French", 77, "soixante-dix-sept"),
        ("French", 80, "quatre-vingts"),
        ("French", 81, "quatre-vingt-un"),
        ("French", 90, "quatre-vingt-dix"),
        ("French", 91, "quatre-vingt-onze"),
        ("French", 99, "quatre-vingt-dix-neuf"),
        ("French", 100, "cent"),
        ("French", 180, "cent quatre-vingts/cent-quatre-vingts"),
        ("French", 200, "deux cents/deux-cents"),
        ("French", 201, "deux cent un/deux-cent-un"),
        ("French", 1_000, "mille"),
        ("French", 1_100, "mille cent/mille-cent"),
        ("French", 2_200, "deux mille deux cents/deux-mille-deux-cents"),
        ("French", 80_000, "quatre-vingt mille/quatre-vingt-mille"),
        ("French", 200_000, "deux cent mille/deux-cent-mille"),
        ("Spanish", 0, "cero"),
        ("Spanish", 16, "dieciséis"),
        ("Spanish", 21, "veintiuno"),
        ("Spanish", 22, "veintidós"),
        ("Spanish", 31, "treinta y uno"),
        ("Spanish", 100, "cien"),
        ("Spanish", 101, "ciento uno"),
        ("Spanish", 500, "quinientos"),
        ("Spanish", 1_000, "mil"),
        ("Spanish", 21_000, "veintiún mil"),
        ("Spanish", 31_001, "treinta y un mil uno"),
        ("Spanish", 100_000, "cien mil"),
        ("Spanish", 101_000, "ciento un mil"),
        ("Spanish", 700_900, "setecientos mil novecientos"),
        ("Italian", 0, "zero"),
        ("Italian", 3, "tre"),
        ("Italian", 21, "ventuno"),
        ("Italian", 23, "ventitré"),
        ("Italian", 28, "ventotto"),
        ("Italian", 88, "ottantotto"),
        ("Italian", 101, "centouno"),
        ("Italian", 180, "centottanta"),
        ("Italian", 203, "duecentotré"),
        ("Italian", 1_000, "mille"),
        ("Italian", 1_001, "milleuno"),
        ("Italian", 2_000, "duemila"),
        ("Italian", 23_000, "ventitremila"),
        ("Italian", 100_003, "centomilatré"),
    ],
)
def test_people_spell_the_number_like_this(language, value, spellings):
    assert LANGUAGES[language](value) == tuple(spellings.split("/"))


def test_short_and_long_numbers_both_occur(unchecked):
    with unchecked():
        train, held_out = generate("numbers", count=20_000, seed=1, held_out=1000)
    shares = np.bincount([len(target) for _, target in train], minlength=7) / len(train)
    assert (shares[3:] > 0.1).all()
    assert {str(value) for value in range(100)} <= {target for _, target in train}  # the words all others are made of
    assert {len(target) for _, target in held_out} == {3, 4, 5, 6}


# sequences


def test_a_copy_is_itself_and_a_reversal_reversed_again():
    for number in range(200):
        source, target = KINDS["copy"](Random(number))
        assert target == source
        source, target = KINDS["reverse"](Random(number))
        assert target.split()[::-1] == source.split()


@pytest.mark.parametrize("kind", ["copy", "reverse"])
def test_sequences_have_every_length(kind):
    train, _ = generate(kind, count=2000, seed=1, held_out=0)
    assert {len(source.split()) for source, _ in train} == set(range(1, LONGEST + 1))


# parts


@every_kind
def test_held_out_items_stand_in_training_in_no_form(kind, unchecked):
    with unchecked():
        train, held_out = generate(kind, count=10_000, seed=3, held_out=1500)
    assert not {target for _, target in train} & {target for _, target in held_out}
    assert not {source for source, _ in train} & {source for source, _ in held_out}


def test_no_form_of_a_held_out_date_or_number_is_a_training_source(unchecked):
    """Asked of the grammars themselves, not of the targets by which the parts were told apart."""
    with unchecked():
        train, held_out = generate("dates", count=20_000, seed=4, held_out=100)
    forms = {form for _, target in held_out for form in forms_in_every_language(date.fromisoformat(target))}
    assert not forms & {source for source, _ in train}
    with unchecked():
        train, held_out = generate("numbers", count=20_000, seed=4, held_out=1000)
    forms = {form for _, target in held_out for spell in LANGUAGES.values() for form in spell(int(target))}
    assert not forms & {source for source, _ in train}


@every_kind
def test_as_many_different_pairs_come_as_were_asked_for(kind):
    train, held_out = generate(kind, count=5000, seed=5, held_out=500)
    assert len(train) == len({source for source, _ in train}) == 5000
    assert len(held_out) == len({target for _, target in held_out}) == 500
    assert generate(kind, count=0, seed=5, held_out=0) == ([], [])


@every_kind
def test_no_text_has_a_line_break_or_a_stray_space(kind):
    train, held_out = generate(kind, count=5000, seed=6, held_out=100)
    for pair in train + held_out:
        assert all(text and text == " ".join(text.split()) for text in pair)


@every_kind
def test_another_process_with_another_hash_seed_draws_the_same(kind):
    program = (
        "import sys; from dragoman.text.generated import generate; "
        f"sys.stdout.buffer.write(repr(generate({kind!r}, count=300, seed=7, held_out=30)).encode())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
    assert output.decode() == repr(generate(kind, count=300, seed=7, held_out=30))


@every_kind
def test_another_seed_draws_other_pairs(kind):
    assert generate(kind, count=50, seed=1, held_out=5) != generate(kind, count=50, seed=2, held_out=5)


def test_more_than_there_is_is_refused(monkeypatch):
    def draw_small(rng: Random) -> tuple[str, str]:
        return (str(rng.randrange(100, 200)),) * 2

    monkeypatch.setitem(KINDS, "small", draw_small)
    for count, held_out in ((101, 0), (1, 50)):
        with pytest.raises(UsageError, match=f"{held_out or count} different pairs of small") as refusal:
            generate("small", count=count, seed=1, held_out=held_out)
        assert refusal.value.id == "E-USE-04"


# files


@every_kind
def test_a_corpus_is_three_parts_of_two_files_that_pair_up_and_share_nothing(kind, tmp_path):
    paths = write_corpus(kind, tmp_path / "new" / kind, count=2000, valid=100, test=200, seed=8)
    names = ["train.source", "train.target", "valid.source", "valid.target", "test.source", "test.target"]
    assert [path.name for path in paths] == names
    lines = {path.name: path.read_bytes().decode().removesuffix("\n").split("\n") for path in paths}
    assert [len(lines[name]) for name in names] == [2000, 2000, 100, 100, 200, 200]
    train, valid, test = (set(lines[f"{part}.target"]) for part in ("train", "valid", "test"))
    assert not train & valid
    assert not train & test
    assert not valid & test


def test_files_hold_the_pairs_as_utf8_with_plain_line_ends(tmp_path):
    write_corpus("numbers", tmp_path, count=500, valid=0, test=20, seed=9)
    train, held_out = generate("numbers", count=500, seed=9, held_out=20)
    assert (tmp_path / "train.source").read_bytes() == "".join(f"{source}\n" for source, _ in train).encode()
    assert (tmp_path / "test.target").read_bytes() == "".join(f"{target}\n" for _, target in held_out).encode()
    assert (tmp_path / "valid.source").read_bytes() == b""


def test_an_unknown_kind_is_refused_and_the_nearest_named(tmp_path):
    with pytest.raises(UsageError, match="'number'; did you mean 'numbers'") as refusal:
        write_corpus("number", tmp_path, count=1, valid=1, test=1, seed=1)
    assert refusal.value.id == "E-USE-02"
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="'dates'"):
        generate("date", count=1, seed=1, held_out=0)


def test_existing_files_are_never_overwritten(tmp_path):
    (tmp_path / "test.target").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"already holds test\.target") as refusal:
        write_corpus("dates", tmp_path, count=10, valid=1, test=1, seed=1)
    assert refusal.value.id == "E-USE-03"
    assert [path.name for path in tmp_path.iterdir()] == ["test.target"]
    assert (tmp_path / "test.target").read_text(encoding="utf-8") == "mine"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path):
    (tmp_path / "corpus").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="is a file") as refusal:
        write_corpus("copy", tmp_path / "corpus", count=10, valid=1, test=1, seed=1)
    assert refusal.value.id == "E-USE-03"
