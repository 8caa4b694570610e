"""Dates as people write them, in eleven grammars, and their one ISO 8601 form.

    the 15th of November 2026      So., 15. Nov. 2026       söndagen den 15 november 2026       →  2026-11-15

A grammar is a table: the names of months and weekdays, each with its abbreviations, and patterns that say in which
order they stand. Every source has exactly one right answer, and three rules see to it:

    the year has four digits, so that no century has to be guessed
    the month is a name, and no name means two months in any two of the languages
    where the month is a number the separator is a dot, and whoever writes dots writes the day first;
    03/04/2021 is April in London and March in Boston, and so it is never written

A weekday, where one is named, is the right one for the date.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import product
from random import Random

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
WEEKDAY_SHARE = 1 / 3  # of the sources that name the day of the week

Names = tuple[tuple[str, ...], ...]  # for each month or weekday, the ways to write it, the full name first
Casing = Callable[[str], str]


def names(text: str) -> Names:
    """Read `January/Jan February/Feb` as (("January", "Jan"), ("February", "Feb"))."""
    return tuple(tuple(name.split("/")) for name in text.split())


def count_in_english(day: int) -> str:
    """1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 21st."""
    ending = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def count_first_as(first: str) -> Callable[[int], str]:
    """Romance languages count only the first of a month: 1er mai, but 2 mai."""
    return lambda day: first if day == 1 else str(day)


def italian_article(day: int) -> str:
    """`il`, elided before the numbers that begin with a vowel: l'otto, l'undici."""
    return "l'" if day in (8, 11) else "il "


def no_article(day: int) -> str:  # noqa: ARG001  (the others that write an article have it in the pattern)
    return ""


def turkish_upper(text: str) -> str:
    """Turkish has two letters where English has one: i becomes İ, and ı becomes I."""
    return text.replace("i", "İ").upper()


@dataclass(frozen=True)
class Grammar:
    """How one language writes a date. Patterns may use

    day, ordinal      15, 15th
    article           what stands before the ordinal, where that depends on the number
    month, number     November or Nov, 11
    weekday           Sunday or Sun; `full_weekday` where an ending is hung on the name
    year              2026
    """

    months: Names
    weekdays: Names  # from Monday on, as `date.weekday` counts
    patterns: tuple[str, ...]
    weekday_patterns: tuple[str, ...]
    ordinal: Callable[[int], str] = str
    article: Callable[[int], str] = no_article
    upper: Casing = str.upper

    @property
    def casings(self) -> tuple[Casing, ...]:
        return (str, str.lower, self.upper)  # str leaves a string as it is written


CASING_WEIGHTS = (4, 1, 1)

ENGLISH_MONTHS = names(
    "January/Jan February/Feb March/Mar April/Apr May June/Jun July/Jul August/Aug September/Sept/Sep "
    "October/Oct November/Nov December/Dec"
)
ENGLISH_WEEKDAYS = names("Monday/Mon Tuesday/Tue Wednesday/Wed Thursday/Thu Friday/Fri Saturday/Sat Sunday/Sun")

GRAMMARS = {
    "British English": Grammar(
        months=ENGLISH_MONTHS,
        weekdays=ENGLISH_WEEKDAYS,
        patterns=("{day} {month} {year}", "{ordinal} {month} {year}", "the {ordinal} of {month} {year}"),
        weekday_patterns=("{weekday}, {day} {month} {year}", "{weekday} the {ordinal} of {month} {year}"),
        ordinal=count_in_english,
    ),
    "American English": Grammar(
        months=ENGLISH_MONTHS,
        weekdays=ENGLISH_WEEKDAYS,
        patterns=("{month} {day}, {year}", "{month} {ordinal}, {year}", "{month} {day} {year}"),
        weekday_patterns=("{weekday}, {month} {day}, {year}", "{weekday}, {month} {ordinal}, {year}"),
        ordinal=count_in_english,
    ),
    "German": Grammar(
        months=names(
            "Januar/Jan. Februar/Feb. März April/Apr. Mai Juni Juli August/Aug. September/Sept. "
            "Oktober/Okt. November/Nov. Dezember/Dez."
        ),
        weekdays=names("Montag/Mo. Dienstag/Di. Mittwoch/Mi. Donnerstag/Do. Freitag/Fr. Samstag/Sa. Sonntag/So."),
        patterns=(
            "{day}. {month} {year}",
            "der {day}. {month} {year}",
            "am {day}. {month} {year}",
            "{day}.{number}.{year}",
            "{day:02}.{number:02}.{year}",
        ),
        weekday_patterns=(
            "{weekday}, {day}. {month} {year}",
            "{full_weekday}, der {day}. {month} {year}",
            "am {full_weekday}, den {day}. {month} {year}",
            "{weekday}, {day:02}.{number:02}.{year}",
        ),
    ),
    "French": Grammar(
        months=names(
            "janvier/janv. février/févr. mars avril/avr. mai juin juillet/juil. août septembre/sept. "
            "octobre/oct. novembre/nov. décembre/déc."
        ),
        weekdays=names("lundi/lun. mardi/mar. mercredi/mer. jeudi/jeu. vendredi/ven. samedi/sam. dimanche/dim."),
        patterns=("{ordinal} {month} {year}", "le {ordinal} {month} {year}"),
        weekday_patterns=("{weekday} {ordinal} {month} {year}", "le {full_weekday} {ordinal} {month} {year}"),
        ordinal=count_first_as("1er"),
    ),
    "Spanish": Grammar(
        months=names(
            "enero/ene. febrero/feb. marzo/mar. abril/abr. mayo junio/jun. julio/jul. agosto/ago. septiembre/sept. "
            "octubre/oct. noviembre/nov. diciembre/dic."
        ),
        weekdays=names("lunes/lun. martes/mar. miércoles/mié. jueves/jue. viernes/vie. sábado/sáb. domingo/dom."),
        patterns=(
            "{day} de {month} de {year}",
            "{ordinal} de {month} de {year}",
            "el {day} de {month} de {year}",
            "{day} de {month} del {year}",
            "{day} {month} {year}",
        ),
        weekday_patterns=(
            "{weekday}, {day} de {month} de {year}",
            "el {full_weekday} {day} de {month} de {year}",
        ),
        ordinal=count_first_as("1.º"),
    ),
    "Italian": Grammar(
        months=names(
            "gennaio/gen. febbraio/feb. marzo/mar. aprile/apr. maggio/mag. giugno/giu. luglio/lug. agosto/ago. "
            "settembre/set. ottobre/ott. novembre/nov. dicembre/dic."
        ),
        weekdays=names("lunedì/lun. martedì/mar. mercoledì/mer. giovedì/gio. venerdì/ven. sabato/sab. domenica/dom."),
        patterns=("{ordinal} {month} {year}", "{article}{ordinal} {month} {year}"),
        weekday_patterns=("{weekday} {ordinal} {month} {year}", "{weekday}, {ordinal} {month} {year}"),
        ordinal=count_first_as("1º"),
        article=italian_article,
    ),
    "Dutch": Grammar(
        months=names(
            "januari/jan. februari/feb. maart/mrt. april/apr. mei juni/jun. juli/jul. augustus/aug. september/sept. "
            "oktober/okt. november/nov. december/dec."
        ),
        weekdays=names("maandag/ma dinsdag/di woensdag/wo donderdag/do vrijdag/vr zaterdag/za zondag/zo"),
        patterns=("{day} {month} {year}", "op {day} {month} {year}"),
        weekday_patterns=("{weekday} {day} {month} {year}", "op {full_weekday} {day} {month} {year}"),
    ),
    "Portuguese": Grammar(
        months=names(
            "janeiro/jan. fevereiro/fev. março/mar. abril/abr. maio/mai. junho/jun. julho/jul. agosto/ago. "
            "setembro/set. outubro/out. novembro/nov. dezembro/dez."
        ),
        weekdays=names(
            "segunda-feira/seg. terça-feira/ter. quarta-feira/qua. quinta-feira/qui. sexta-feira/sex. "
            "sábado/sáb. domingo/dom."
        ),
        patterns=(
            "{day} de {month} de {year}",
            "{ordinal} de {month} de {year}",
            "em {day} de {month} de {year}",
        ),
        weekday_patterns=("{weekday}, {day} de {month} de {year}", "{weekday}, {ordinal} de {month} de {year}"),
        ordinal=count_first_as("1º"),
    ),
    "Polish": Grammar(
        months=names(  # in the genitive, as a date has it; the Roman numerals are everyday Polish
            "stycznia/sty/I lutego/lut/II marca/mar/III kwietnia/kwi/IV maja/maj/V czerwca/cze/VI lipca/lip/VII "
            "sierpnia/sie/VIII września/wrz/IX października/paź/X listopada/lis/XI grudnia/gru/XII"
        ),
        weekdays=names("poniedziałek/pon. wtorek/wt. środa/śr. czwartek/czw. piątek/pt. sobota/sob. niedziela/niedz."),
        patterns=(
            "{day} {month} {year}",
            "{day} {month} {year} r.",
            "{day} {month} {year} roku",
            "dnia {day} {month} {year} r.",
            "{day:02}.{number:02}.{year}",
        ),
        weekday_patterns=("{weekday}, {day} {month} {year}", "{weekday}, {day} {month} {year} r."),
    ),
    "Swedish": Grammar(
        months=names(
            "januari/jan. februari/feb. mars april/apr. maj juni juli augusti/aug. september/sept. "
            "oktober/okt. november/nov. december/dec."
        ),
        weekdays=names("måndag/mån tisdag/tis onsdag/ons torsdag/tors fredag/fre lördag/lör söndag/sön"),
        patterns=("{day} {month} {year}", "den {day} {month} {year}"),
        weekday_patterns=("{weekday} {day} {month} {year}", "{full_weekday}en den {day} {month} {year}"),
    ),
    "Turkish": Grammar(
        months=names(
            "Ocak/Oca Şubat/Şub Mart/Mar Nisan/Nis Mayıs/May Haziran/Haz Temmuz/Tem Ağustos/Ağu Eylül/Eyl "
            "Ekim/Eki Kasım/Kas Aralık/Ara"
        ),
        weekdays=names("Pazartesi/Pzt Salı/Sal Çarşamba/Çar Perşembe/Per Cuma/Cum Cumartesi/Cmt Pazar/Paz"),
        patterns=("{day} {month} {year}", "{day:02}.{number:02}.{year}"),
        weekday_patterns=("{day} {month} {year} {weekday}", "{day} {month} {year}, {weekday}"),
        upper=turkish_upper,
    ),
}


def fill(pattern: str, day: date, grammar: Grammar, month: str, weekday: str) -> str:
    """Put a date into a pattern, with these names for its month and its weekday."""
    return pattern.format(
        day=day.day,
        ordinal=grammar.ordinal(day.day),
        article=grammar.article(day.day),
        month=month,
        number=day.month,
        weekday=weekday,
        full_weekday=grammar.weekdays[day.weekday()][0],
        year=day.year,
    )


def every_form(day: date, grammar: Grammar) -> Iterator[str]:
    """All the ways this grammar can write this date; some come more than once."""
    months, weekdays = grammar.months[day.month - 1], grammar.weekdays[day.weekday()]
    patterns = grammar.patterns + grammar.weekday_patterns
    for pattern, month, weekday in product(patterns, months, weekdays):
        text = fill(pattern, day, grammar, month, weekday)
        yield from (casing(text) for casing in grammar.casings)


def draw_date(rng: Random) -> tuple[str, str]:
    """A date in some language's writing, and in ISO 8601: languages and dates all equally likely."""
    grammar = rng.choice(tuple(GRAMMARS.values()))
    day = date.fromordinal(rng.randint(FIRST.toordinal(), LAST.toordinal()))
    pattern = rng.choice(grammar.weekday_patterns if rng.random() < WEEKDAY_SHARE else grammar.patterns)
    month = rng.choice(grammar.months[day.month - 1])
    weekday = rng.choice(grammar.weekdays[day.weekday()])
    (casing,) = rng.choices(grammar.casings, CASING_WEIGHTS)
    return casing(fill(pattern, day, grammar, month, weekday)), day.isoformat()
