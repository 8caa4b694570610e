"""Numbers in words, from zero to 999,999 in five languages, and their digits.

    dreiundfünfzigtausendzweihunderteins            →  53201      (three-and-fifty-thousand …: units before tens)
    quatre-vingt-onze mille soixante-dix            →  91070      (four-twenty-eleven thousand sixty-ten)

A language is one function from a value to all its correct spellings. Each is built in the same three storeys: below a
hundred, where every language has its own habits; below a thousand; and thousands in front of the rest. The names differ
in what happens at the seams: an s, an accent or a vowel lost, a `one` left out. No spelling has two values, in one
language or across them (`six` is six in English and in French).
"""

from collections.abc import Callable
from functools import cache
from random import Random

LARGEST = 999_999
LONGEST = len(str(LARGEST))
ZEROS = 0.25  # share of inner digits that are zero for certain

Speller = Callable[[int], tuple[str, ...]]


def words(text: str) -> list[str]:
    """Names by value; a dash stands where no name is ever asked for."""
    return text.split()


def distinct(first: str, second: str) -> tuple[str, ...]:
    """Two spellings, or one where they agree."""
    return (first,) if first == second else (first, second)


# English: with `and` before the tens, as in London, or without it, as in New York.

ENGLISH_SMALL = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
ENGLISH_TENS = words("– – twenty thirty forty fifty sixty seventy eighty ninety")


@cache
def english_below_thousand(value: int, link: str) -> str:
    hundreds, rest = divmod(value, 100)
    if hundreds:
        head = f"{ENGLISH_SMALL[hundreds]} hundred"
        return f"{head}{link}{english_below_thousand(rest, link)}" if rest else head
    tens, units = divmod(value, 10)
    if tens < 2:
        return ENGLISH_SMALL[value]
    return f"{ENGLISH_TENS[tens]}-{ENGLISH_SMALL[units]}" if units else ENGLISH_TENS[tens]


def join_english(value: int, link: str) -> str:
    thousands, rest = divmod(value, 1000)
    if not thousands:
        return english_below_thousand(value, link)
    head = f"{english_below_thousand(thousands, link)} thousand"
    if not rest:
        return head
    return f"{head}{link if rest < 100 else ' '}{english_below_thousand(rest, link)}"


def spell_english(value: int) -> tuple[str, ...]:
    """105: one hundred and five, one hundred five."""
    return distinct(join_english(value, " and "), join_english(value, " "))


# German: one word, units before tens; `eins` stands only at the very end, and a leading `ein` may be left out.

GERMAN_SMALL = words(
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
)
GERMAN_TENS = words("– – zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")


@cache
def german_below_thousand(value: int) -> str:
    """As it stands before `tausend`: 1 is ein, 101 einhundertein."""
    hundreds, rest = divmod(value, 100)
    if hundreds:
        return f"{GERMAN_SMALL[hundreds]}hundert{german_below_thousand(rest) if rest else ''}"
    tens, units = divmod(value, 10)
    if tens < 2:
        return GERMAN_SMALL[value]
    return f"{GERMAN_SMALL[units]}und{GERMAN_TENS[tens]}" if units else GERMAN_TENS[tens]


def join_german(value: int) -> str:
    thousands, rest = divmod(value, 1000)
    head = f"{german_below_thousand(thousands)}tausend" if thousands else ""
    if thousands and not rest:
        return head
    return head + german_below_thousand(rest) + ("s" if rest % 100 == 1 else "")


def spell_german(value: int) -> tuple[str, ...]:
    """105: einhundertfünf, hundertfünf."""
    name = join_german(value)
    if name.startswith(("einhundert", "eintausend")):
        return name, name.removeprefix("ein")
    return (name,)


# French: the seventies and nineties count on from sixty and from four-twenty; hyphens by either spelling.

FRENCH_SMALL = words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf"
)
FRENCH_TENS = words("– – vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt")


@cache
def french_below_hundred(value: int) -> str:
    if value < 20:
        return FRENCH_SMALL[value]
    tens = value // 10
    rest = value % 20 if tens in (7, 9) else value % 10  # 71 is sixty and eleven
    if rest == 0:
        return FRENCH_TENS[tens]
    # vingt et un, soixante et onze; but quatre-vingt-un, quatre-vingt-onze
    link = " et " if rest in (1, 11) and tens < 8 else "-"
    return f"{FRENCH_TENS[tens]}{link}{FRENCH_SMALL[rest]}"


@cache
def french_below_thousand(value: int) -> str:
    """As it stands before `mille`, where neither `vingt` nor `cent` takes its s."""
    hundreds, rest = divmod(value, 100)
    if not hundreds:
        return french_below_hundred(value)
    head = "cent" if hundreds == 1 else f"{FRENCH_SMALL[hundreds]} cent"
    return f"{head} {french_below_hundred(rest)}" if rest else head


def join_french(value: int) -> str:
    thousands, rest = divmod(value, 1000)
    if not thousands:
        head = ""
    elif thousands == 1:
        head = "mille"
    else:
        head = f"{french_below_thousand(thousands)} mille"
    if thousands and not rest:
        return head
    # the plural s needs a multiple with nothing after it: quatre-vingts, deux cents; but cent
    ending = "s" if rest % 100 == 80 or (rest % 100 == 0 and rest >= 200) else ""
    return f"{head} {french_below_thousand(rest)}{ending}".lstrip()


def spell_french(value: int) -> tuple[str, ...]:
    """121: cent vingt et un, and with the hyphens of 1990, cent-vingt-et-un."""
    name = join_french(value)
    return distinct(name, name.replace(" ", "-"))


# Spanish: one word up to thirty, with accents that move; `uno` loses its o before `mil`.

SPANISH_SMALL = words(
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete "
    "veintiocho veintinueve"
)
SPANISH_TENS = words("– – – treinta cuarenta cincuenta sesenta setenta ochenta noventa")
SPANISH_HUNDREDS = words(
    "– ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
)


@cache
def spanish_below_thousand(value: int) -> str:
    if value == 100:
        return "cien"  # ciento only with something after it
    hundreds, rest = divmod(value, 100)
    if hundreds:
        return f"{SPANISH_HUNDREDS[hundreds]} {spanish_below_thousand(rest)}" if rest else SPANISH_HUNDREDS[hundreds]
    if value < 30:
        return SPANISH_SMALL[value]
    tens, units = divmod(value, 10)
    return f"{SPANISH_TENS[tens]} y {SPANISH_SMALL[units]}" if units else SPANISH_TENS[tens]


@cache
def spanish_thousands(value: int) -> str:
    if value == 1:
        return "mil"
    name = spanish_below_thousand(value)
    if name.endswith("veintiuno"):
        name = name.removesuffix("uno") + "ún"
    elif name.endswith("uno"):
        name = name.removesuffix("o")
    return f"{name} mil"


def spell_spanish(value: int) -> tuple[str, ...]:
    """22: veintidós; 21,000: veintiún mil."""
    thousands, rest = divmod(value, 1000)
    if not thousands:
        return (spanish_below_thousand(value),)
    head = spanish_thousands(thousands)
    return (f"{head} {spanish_below_thousand(rest)}" if rest else head,)


# Italian: one word; tens lose their vowel before uno and otto, cento before otto; a final tre takes an accent.

ITALIAN_SMALL = words(
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove"
)
ITALIAN_TENS = words("– – venti trenta quaranta cinquanta sessanta settanta ottanta novanta")


@cache
def italian_below_thousand(value: int) -> str:
    """As it stands before `mila`, without an accent: ventitremila."""
    hundreds, rest = divmod(value, 100)
    if hundreds:
        tail = italian_below_thousand(rest) if rest else ""
        hundred = "cent" if tail.startswith("ott") else "cento"
        return f"{ITALIAN_SMALL[hundreds] if hundreds > 1 else ''}{hundred}{tail}"
    tens, units = divmod(value, 10)
    if tens < 2:
        return ITALIAN_SMALL[value]
    stem = ITALIAN_TENS[tens][:-1] if units in (1, 8) else ITALIAN_TENS[tens]
    return f"{stem}{ITALIAN_SMALL[units]}" if units else stem


def spell_italian(value: int) -> tuple[str, ...]:
    """23: ventitré; 1,001: milleuno; 2,000: duemila."""
    thousands, rest = divmod(value, 1000)
    if not thousands:
        head = ""
    elif thousands == 1:
        head = "mille"
    else:
        head = f"{italian_below_thousand(thousands)}mila"
    if thousands and not rest:
        return (head,)
    name = head + italian_below_thousand(rest)
    return (name.removesuffix("e") + "é" if name.endswith("tre") and value > 3 else name,)


LANGUAGES: dict[str, Speller] = {
    "English": spell_english,
    "German": spell_german,
    "French": spell_french,
    "Spanish": spell_spanish,
    "Italian": spell_italian,
}


def draw_number(rng: Random) -> tuple[str, str]:
    """A number in some language's words, and in digits: languages and lengths all equally likely.

    Zeros are drawn more often than other digits. Names are irregular around them, and people do say round numbers.
    """
    spell = rng.choice(tuple(LANGUAGES.values()))
    digits = rng.randint(1, LONGEST)
    value = rng.randrange(0 if digits == 1 else 1, 10)
    for _ in range(digits - 1):
        value = 10 * value + (0 if rng.random() < ZEROS else rng.randrange(10))
    return rng.choice(spell(value)), str(value)
