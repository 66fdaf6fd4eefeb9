"""Words for numbers, months, weekdays and units in six languages, and English names of places, from the Unicode CLDR.

Each word is in small letters and without spaces, because texts are compared word by word. What CLDR does not have, or
has in phrases only, is in `streams/text/words.toml`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from babel import Locale
from babel.core import get_global
from babel.units import format_unit
from unicode_rbnf import RbnfEngine

LANGUAGES = ("en", "en_GB", "de", "fr", "es", "pt", "it")
PLACE_LANGUAGES = ("en", "en_GB")
SPELLING_LANGUAGES = ("en", "de", "fr", "fr_BE", "fr_CH", "es", "pt", "pt_PT", "it")
ABBREVIATED_MONTHS = ("en", "en_GB", "de")
ABBREVIATED_WEEKDAYS = ("en",)
"""Other abbreviations are words or names: "do", "so", "set", "sam", "dom"."""
PLURAL_WEEKDAYS = ("en", "de")
"""Where a weekday with an "s" is the weekday too: "on Mondays", "montags"."""
ARTICLES = frozenset({"un", "une", "una", "um", "uma", "ein", "eine", "einen", "einem", "einer", "eines"})
"""Words for one that are articles as well."""
SHORT_UNIT_LANGUAGE = "en"
NOT_UNITS = frozenset({"in", "once", "pie", "pies", "second", "segundo", "secondo", "cent", "cento", "ciento"})
"""Words with another meaning that is more frequent: English "in", "once" and "pie", an ordinal, a hundred."""
CARDINALS = re.compile("spellout-(numbering|cardinal.*)")
ORDINALS = re.compile("spellout-ordinal(-n|-r|-masculine|-feminine)?")
UNITS: Mapping[str, str] = {
    "length-kilometer": "km",
    "length-meter": "m",
    "length-centimeter": "cm",
    "length-millimeter": "mm",
    "length-mile": "mile",
    "length-foot": "foot",
    "length-inch": "inch",
    "mass-kilogram": "kg",
    "mass-gram": "g",
    "mass-milligram": "mg",
    "mass-pound": "pound",
    "mass-ounce": "ounce",
    "volume-liter": "litre",
    "volume-milliliter": "ml",
    "temperature-celsius": "celsius",
    "temperature-fahrenheit": "fahrenheit",
    "energy-kilocalorie": "kcal",
    "concentr-percent": "percent",
    "duration-second": "second",
    "duration-minute": "minute",
    "duration-hour": "hour",
    "duration-day": "day",
    "duration-week": "week",
    "duration-month": "month",
    "duration-year": "year",
    "digital-kilobyte": "kb",
    "digital-megabyte": "mb",
    "digital-gigabyte": "gb",
    "digital-terabyte": "tb",
}


def cldr_words() -> str:
    """The words of each section by their meaning, as JSON."""
    sections = {"numbers": _numbers(), "dates": _dates(), "units": _units()}
    words = {name: _grouped(pairs) for name, pairs in sections.items()}
    return json.dumps(words, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def cldr_places() -> str:
    """The names of countries, and those cities that give a time zone its name, as JSON."""
    countries: set[str] = set()
    cities = {zone.rpartition("/")[2].replace("_", " ") for zone in get_global("zone_territories")}
    for language in PLACE_LANGUAGES:
        locale = Locale.parse(language)
        countries |= {name for code, name in locale.territories.items() if code.isalpha()}
        cities |= {zone["city"] for zone in locale.time_zones.values() if "city" in zone}
    names = {"cities": cities - countries, "countries": countries}
    places = {kind: sorted({name.casefold() for name in found if name.isprintable()}) for kind, found in names.items()}
    return json.dumps(places, indent=0, ensure_ascii=False, sort_keys=True) + "\n"


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Meaning to words, in one string each so that a change is one line of a diff."""
    found: dict[str, set[str]] = {}
    for meaning, word in pairs:
        found.setdefault(meaning, set()).add(word.casefold().strip("."))
    return {meaning: " ".join(sorted(words)) for meaning, words in found.items()}


def _numbers() -> Iterator[tuple[str, str]]:
    """0 to 99 where they are one word, hundred, thousand, million, and the first three ordinals."""
    for language in SPELLING_LANGUAGES:
        engine = RbnfEngine.for_language(language)
        for number in (*range(100), 100, 1000):
            for phrase in _spelled(engine, number, CARDINALS):
                word = phrase.removeprefix("one ")
                if word.isalpha() and word not in ARTICLES:
                    yield str(number), word
        for number in (1_000_000, 2_000_000):
            for phrase in _spelled(engine, number, CARDINALS):
                yield "1000000", phrase.split()[-1]
        for number, meaning in enumerate(("1st", "2nd", "3rd"), start=1):
            for phrase in _spelled(engine, number, ORDINALS):
                yield meaning, phrase


def _spelled(engine: RbnfEngine, number: int, rules: re.Pattern[str]) -> Iterator[str]:
    for name in filter(rules.fullmatch, engine.rulesets):
        yield engine.format_number(number, ruleset_names=[name]).text.replace("\u00ad", "").strip()


def _dates() -> Iterator[tuple[str, str]]:
    for language in LANGUAGES:
        locale = Locale.parse(language)
        months, days = locale.months["format"], locale.days["format"]
        for month, word in months["wide"].items():
            yield f"month {month}", word
        for day, word in days["wide"].items():
            yield f"weekday {day + 1}", word.removesuffix("-feira")
            if language in PLURAL_WEEKDAYS:
                yield f"weekday {day + 1}", f"{word}s"
        if language in ABBREVIATED_MONTHS:
            for month, word in months["abbreviated"].items():
                yield f"month {month}", word
        if language in ABBREVIATED_WEEKDAYS:
            for day, word in days["abbreviated"].items():
                yield f"weekday {day + 1}", word


def _units() -> Iterator[tuple[str, str]]:
    for language in LANGUAGES:
        for unit, meaning in UNITS.items():
            for count in (1, 2):
                word = _unit_word(unit, count, "long", language)
                if word == unit:  # CLDR has the long form only as an alias of the short one
                    word = _unit_word(unit, count, "short", language)
                for found in {word, _unit_word(unit, count, "short", SHORT_UNIT_LANGUAGE)}:
                    if found == "%" or (len(found) > 1 and found not in NOT_UNITS):
                        yield meaning, found


def _unit_word(unit: str, count: int, width: Literal["long", "short"], language: str) -> str:
    """The last word: "degrees Celsius" is found by "Celsius"."""
    return format_unit(count, unit, length=width, locale=language).lstrip("12").split()[-1]
