"""Translation memories (TMX 1.4), one translation unit at a time, however large the file.

    <tu>  <tuv xml:lang="de"><seg>Guten Tag</seg></tuv>  <tuv xml:lang="en"><seg>Good day</seg></tuv>  </tu>

Each element is thrown away once read. Entities are never expanded and nothing is fetched: a file of a kilobyte could
otherwise unfold to gigabytes, or read other files.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from dragoman.errors import DataError
from dragoman.text.reading import LONGEST_LINE, open_bytes

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
CODE = {"bpt", "ept", "ph", "it", "ut"}  # what these hold is markup of the original document, not text


def read_tmx(path: Path, source: str | None = None, target: str | None = None) -> Iterator[tuple[str, str] | None]:
    """Source and target text of each unit, None where it lacks one. Languages not given are those of the first unit;
    one that leaves a choice is refused."""
    met: dict[str, None] = {}
    paired, asked = False, [language for language in (source, target) if language]
    for unit in read_units(path):
        refuse_to_choose(path, unit, asked)
        source, target = choose_languages(unit, source, target)
        texts = text_in(unit, source), text_in(unit, target)
        paired = paired or None not in texts
        met.update(dict.fromkeys(unit) if len(met) < 50 else {})
        yield (texts[0], texts[1]) if texts[0] is not None and texts[1] is not None else None
    if met and not paired:
        raise DataError(
            "E-DATA-05",
            f"{path} has no unit in both {source or 'a source'} and {target or 'a target'} language; "
            f"its languages are {', '.join(met)}. Choose two of them with --src and --tgt.",
        )


def tmx_languages(path: Path, source: str | None = None, target: str | None = None) -> tuple[str, str]:
    for unit in read_units(path):
        source, target = choose_languages(unit, source, target)
        if source and target:
            break
    return source or "", target or ""


def read_units(path: Path) -> Iterator[dict[str, str]]:
    """Each unit's texts by language, in the order of the file."""
    unit: dict[str, str] = {}
    with open_bytes(path) as file:
        try:
            for element in parse(file):
                if etree.QName(element).localname == "tu":
                    yield unit
                    unit = {}
                else:
                    unit.setdefault(language_of(element), segment_of(element, path))
                forget(element)
        except etree.XMLSyntaxError as problem:
            raise DataError(
                "E-DATA-05", f"{path} is not well-formed XML: {problem.msg}. Export it again, or mend that line."
            ) from None


def parse(file: Any) -> Iterator[Any]:
    events = etree.iterparse(
        file,
        events=("end",),
        tag=("{*}tu", "{*}tuv"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        collect_ids=False,
        remove_comments=True,
        remove_pis=True,
    )
    return (element for _, element in events)


def forget(element: Any) -> None:
    """Frees the element's content and all before it; the element itself is still needed by the parser."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def language_of(variant: Any) -> str:
    language: str = variant.get(XML_LANG) or variant.get("lang") or ""
    return language.lower().replace("_", "-")


def segment_of(variant: Any, path: Path) -> str:
    segment = variant.find("{*}seg")
    text = "" if segment is None else text_of(segment)
    if len(text) > LONGEST_LINE:
        raise DataError(
            "E-DATA-07",
            f"{path} has a segment of {len(text):,} characters near line {variant.sourceline:,}; "
            f"a segment is one sentence, {LONGEST_LINE:,} at most. Split or remove it.",
        )
    return text


def text_of(element: Any) -> str:
    """The element's text with that of `hi` and the like inside it, but without markup of the original document."""
    parts = [element.text or ""]
    for child in element:
        is_text = isinstance(child.tag, str) and etree.QName(child).localname not in CODE  # an entity has no tag
        parts += [text_of(child) if is_text else "", child.tail or ""]
    return "".join(parts)


def choose_languages(unit: dict[str, str], source: str | None, target: str | None) -> tuple[str | None, str | None]:
    """Fills in what is not chosen yet with the first language met that is not the other side's; "de" for de-AT."""
    for language in unit:
        general = language.split("-")[0]
        if source is None and not (target and speaks(target, language)):
            source = language if target and speaks(general, target) else general
        elif target is None and not (source and speaks(source, language)):
            target = language if source and speaks(general, source) else general
    return source, target


def refuse_to_choose(path: Path, unit: dict[str, str], asked: list[str]) -> None:
    others = [language for language in unit if not any(speaks(one, language) for one in asked)]
    if len(asked) + len({language.split("-")[0] for language in others}) > 2 > len(asked):
        raise DataError("E-DATA-05", f"{path} has texts in {', '.join(unit)}; choose two of them with --src and --tgt.")


def speaks(wanted: str, language: str) -> bool:
    wanted = wanted.lower().replace("_", "-")
    return language == wanted or language.startswith(f"{wanted}-")


def text_in(unit: dict[str, str], wanted: str | None) -> str | None:
    return next((text for language, text in unit.items() if wanted is not None and speaks(wanted, language)), None)
