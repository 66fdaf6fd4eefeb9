"""The registry of slots. A clause fills one, or ends, denies or corrects its value, only if it says so as a whole."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from mnemolog.schemas.facts import ImportanceCategory
from mnemolog.streams.offline.sentences import PETS, RELATIVES, SLOT_PATTERNS, WORDS, plain
from mnemolog.streams.text.times import find_times
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATES, REGIONS

_PASSING: Final = ("home_city", "employer", "diet")  # where one may be for a day
FILLS: Final = ("states", "changes", "suggests")
COUPLES: Final = {
    "unmarried": frozenset({"boyfriend", "girlfriend", "partner"}),
    "married": frozenset({"husband", "wife", "partner"}),
}
"""The keys whose value a separation ends, and a divorce."""
_PARTINGS: Final = (*COUPLES, "lover", "spouse")


class Slot(NamedTuple):
    """How a value of a key is written, and what kind of fact that is; `about` are words for searches."""

    text: str
    category: str
    importance: ImportanceCategory
    about: str


_HOME: Final = Slot("{s} lives in {v}.", "identity", "biographical_milestone", "home city")
SLOTS: Final = {
    "name": Slot("{s} is called {v}.", "identity", "biographical_milestone", "name"),
    "home_city": _HOME,
    "home_country": _HOME,
    "employer": Slot("{s} works at {v}.", "professional", "biographical_milestone", "employer, job"),
    "allergy": Slot("{s} is allergic to {v}.", "health", "stable_preference", "allergy"),
    "diet": Slot("{s} is {v}.", "hard_preference", "stable_preference", "diet"),
    "birthday": Slot("{s}'s birthday is {v}.", "identity", "biographical_milestone", "date of birth"),
    **{key: Slot(f"{{s}} has a {key} called {{v}}.", "other", "stable_preference", "pet") for key in PETS},
    **{k: Slot(f"{{s}}'s {k} is called {{v}}.", "relationship", "relationship_change", "family") for k in RELATIVES},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatement:
    """What a clause does to a value of `keys`: it states, suggests, changes, ends, denies or corrects it, or may move.

    `value` is empty where the clause ends every value of its keys, `old` is the value in whose place one comes. `rest`
    is what the clause says more, apart from a time.
    """

    act: str
    keys: frozenset[str]
    value: str
    old: str | None
    rest: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.rest

    @property
    def is_plain(self) -> bool:
        """Whether it says no more than the value, and a circumstance of it: "I live in Turin with my cousin"."""
        return self.is_whole or bool(WORDS["circumstance"].fullmatch(self.rest))


def same_value(one: str | None, other: str | None) -> bool:
    """Whether two values are the same: "nut" and "nuts", "June 14" and "14 June"."""
    return one is not None and other is not None and _value_form(one) == _value_form(other)


def _value_form(value: str) -> frozenset[str]:
    words = re.findall(r"\d+|[^\W\d_]+", value.casefold())
    return frozenset(DATES.get(word, word.rstrip("s")) for word in words) - {"the", "on", "of", "th", "rd", "nd"}


def slot_statements(said: str, at: datetime) -> tuple[SlotStatement, ...]:
    return tuple(one for _, statements in read_clauses(said, at) for one in statements)


@lru_cache(maxsize=512)  # a sentence is read to find its facts, their hints, and again for each known fact
def read_clauses(sentence: str, at: datetime) -> tuple[tuple[str, tuple[SlotStatement, ...]], ...]:
    """The clauses of a sentence, verbatim, and what each does to slots; all of it in one where none does anything.

    What is doubtful, passing, ahead, or about what somebody says or thinks, does nothing.
    """
    said = without_fillers(sentence)
    held_back = any(WORDS[name].search(said) for name in ("doubt", "temporary", "no_slots"))
    if held_back or said.isupper() or any(when.first > at.date() for when in find_times(said, at)):
        return ((sentence, ()),)
    parts = tuple((part, tuple(_read_clause(part, at))) for part in clauses(sentence))
    return parts if any(statements for _, statements in parts) else ((sentence, tuple(_read_clause(sentence, at))),)


def clauses(sentence: str) -> list[str]:
    joints = [(0, 0), *(match.span() for match in WORDS["joint"].finditer(plain(sentence))), (None, None)]
    parts = [sentence[start:end].strip() for (_, start), (end, _) in pairwise(joints)]
    return [part for part in parts if without_fillers(f"{part}, ")] or [sentence]


def without_fillers(said: str) -> str:
    said = re.sub(r"\bi'?m\b", "I am", plain(said).replace("can't", "cannot"), flags=re.IGNORECASE)
    said = said.replace("n't", " not").replace("'ve", " have").replace("'re", " are").strip(".!,;:…)(")
    while (shorter := WORDS["filler"].sub("", said, count=1)) != said:
        said = shorter
    return said.strip()


def _read_clause(clause: str, at: datetime) -> Iterator[SlotStatement]:
    said = plain(clause)
    times = find_times(said, at)
    is_today = any(when.role == "at" and when.first <= at.date() <= when.last for when in times)
    is_long_ago = any(when.last < at.date() - timedelta(days=366) for when in times)
    for when in reversed(times):
        said = f"{WORDS['before_time'].sub(' ', said[: when.span[0]])}{said[when.span[1] :]}"
    said = without_fillers(WORDS["correction"].sub("", said))
    if not WORDS["negation"].search(said):  # "not just", "not really"
        said = WORDS["adverb"].sub("", said)
    said = " ".join(said.split()).strip(" ,")
    for act, slot, pattern in SLOT_PATTERNS:
        match = pattern.fullmatch(said) or pattern.match(said)
        rest = said[match.end() :] if match else ""
        goes_on = WORDS["tail" if act in (*FILLS, "moves") and slot != "diet" else "joined"]
        if match and (not rest or (act != "denies" and goes_on.match(rest))):
            done = "changes" if act == "states" and WORDS["change"].search(clause) else act
            is_passing = is_today and slot in _PASSING and done in ("states", "suggests", "denies")
            if not (is_passing or (is_long_ago and slot in _PARTINGS)):
                is_sure = not is_long_ago and (not rest or bool(WORDS["joined"].match(rest)))
                yield from _statements(done, slot, match, rest=rest, is_sure=is_sure)
            return


def _is_place(name: str) -> bool:
    return name.partition(",")[0].casefold() in CITIES | COUNTRIES or bool(WORDS["city_form"].match(name))


def is_known_value(statement: SlotStatement) -> bool:
    """Whether the words of a value are known, so that a bare answer may be one: "Retired." is no employer."""
    is_place = statement.keys <= {"home_city", "home_country"}
    return statement.act in FILLS and (not is_place or statement.value.casefold() in CITIES | COUNTRIES)


def _statements(act: str, slot: str, match: re.Match[str], *, rest: str, is_sure: bool) -> Iterator[SlotStatement]:
    got = {name.partition("_")[0]: said for name, said in match.groupdict().items() if said}
    keys = frozenset(got.keys() & SLOTS.keys()) or COUPLES.get(slot, frozenset({slot}))
    if keys == {"any"}:
        keys = frozenset(SLOTS if "correct" in act else PETS)
    value = got.get("v", "")
    for said in WORDS["several"].split(value) if slot == "allergy" else [value]:
        value = WORDS["article"].sub("", said) if slot in ("allergy", "birthday") else said
        if slot == "home_city" and value.partition(",")[0].casefold() in REGIONS:
            continue
        if slot == "home_city" and value.casefold() in COUNTRIES:
            keys = frozenset({"home_country"})
        is_home = any(map(_is_place, filter(None, (value, got.get("old")))))
        done = "changes" if act == "moves" and is_home else act
        done = "states" if done == "changes" and not is_sure else done
        yield SlotStatement(act=done, keys=keys, value=value, old=got.get("old"), rest=rest)
