"""The registry of slots. A clause fills one, or ends or denies its value, only if it says so as a whole."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from mnemolog.streams.offline.sentences import PETS, RELATIVES, SLOT_PATTERNS, WORDS, plain
from mnemolog.streams.text.patterns import tables
from mnemolog.streams.text.times import find_times
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATES, REGIONS

FILLS: Final = ("states", "changes", "suggests")
_ROWS: Final = tables(Path(__file__).with_name("slots.toml"))
SLOTS: Final = _ROWS | dict.fromkeys(PETS, _ROWS["pet"]) | dict.fromkeys(RELATIVES, _ROWS["relative"])
PLACES: Final = CITIES | COUNTRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatement:
    """What a clause does to a value of `keys`: it states, suggests, changes, ends or denies it.

    `value` is empty where it ends every value, `old` is replaced; `is_whole`: its sentence says nothing else.
    """

    act: str
    keys: frozenset[str]
    value: str
    old: str | None
    is_whole: bool = True


def same_value(one: str | None, other: str | None) -> bool:
    """Whether two values are the same: "nut" and "nuts", "June 14" and "14 June"."""
    words = [re.findall(r"\d+|[^\W\d_]+", (value or "").casefold()) for value in (one, other)]
    forms = [{DATES.get(word, word.rstrip("s")) for word in some} - {"the", "of", "st", "th"} for some in words]
    return forms[0] == forms[1] != set()


def slot_statements(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """What a sentence does to slots: nothing where it is doubtful, passing, ahead, or what somebody says or thinks."""
    said = without_fillers(sentence)
    held_back = any(WORDS[name].search(said) for name in ("doubt", "temporary", "no_slots"))
    if held_back or said.isupper() or any(when.first > at.date() for when in find_times(said, at)):
        return ()
    clauses = [part for part in WORDS["joint"].split(plain(sentence)) if without_fillers(f"{part}, ")]
    found = [tuple(_read_clause(part, at)) for part in clauses]
    found = found if any(found) else [tuple(_read_clause(sentence, at))]
    return tuple(replace(one, is_whole=one.is_whole and all(found)) for some in found for one in some)


def without_fillers(said: str) -> str:
    said = re.sub(r"\bi'?m\b", "I am", plain(said).replace("can't", "cannot"), flags=re.IGNORECASE)
    said = said.replace("n't", " not").replace("'ve", " have").replace("'re", " are").strip(".!,;:…)(")
    while (shorter := WORDS["filler"].sub("", said, count=1)) != said:
        said = shorter
    return said.strip()


def _read_clause(clause: str, at: datetime) -> Iterator[SlotStatement]:
    """What a clause that says nothing else does to slots; where it fills one, a circumstance may follow."""
    said, times = plain(clause), find_times(plain(clause), at)
    if any(when.last < at.date() - timedelta(days=366) for when in times):
        return  # long ago: it says nothing of today
    for when in reversed(times):
        said = f"{WORDS['before_time'].sub(' ', said[: when.span[0]])}{said[when.span[1] :]}"
    said = without_fillers(said)
    said = " ".join((said if WORDS["negation"].search(said) else WORDS["adverb"].sub("", said)).split()).strip(" ,")
    for act, slot, pattern in SLOT_PATTERNS:
        match = pattern.fullmatch(said) or (pattern.match(said) if act in (*FILLS, "moves") else None)
        rest = said[match.end() :] if match else ""
        if match and (not rest or (slot != "diet" and WORDS["tail"].match(rest))):
            is_change = act == "states" and WORDS["change"].search(clause)
            yield from _statements("changes" if is_change else act, slot, match)
            return


def _statements(act: str, slot: str, match: re.Match[str]) -> Iterator[SlotStatement]:
    got = {name.partition("_")[0]: said for name, said in match.groupdict().items() if said}
    value, old, is_whole = got.get("v", ""), got.get("old"), match.end() == len(match.string)
    keys = frozenset(got.keys() & SLOTS.keys() or slot.split())
    if slot == "home_city":
        heads = [one.partition(",")[0].casefold() for one in (value, old or "")]
        is_known = not PLACES.isdisjoint(heads) or any(map(WORDS["city_form"].match, (value, old or "")))
        if heads[0] in REGIONS | COUNTRIES or (act == "moves" and not is_known):
            return
    if act in ("changes", "moves"):
        act = "changes" if is_whole else "states"
    for said in WORDS["several"].split(value) if slot == "allergy" else [value]:
        yield SlotStatement(act=act, keys=keys, value=said, old=old, is_whole=is_whole)
