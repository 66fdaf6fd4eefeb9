"""The registry of slots: a clause fills a slot, or ends, denies or corrects its value, only if it says so as a whole."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from mnemolog.schemas.facts import ImportanceCategory
from mnemolog.streams.offline.phrases import PETS, RELATIVES, SLOT_PATTERNS, WORDS, any_of
from mnemolog.streams.offline.sentences import plain
from mnemolog.streams.offline.times import find_times
from mnemolog.streams.text.word_lists import CITIES, COUNTRIES, DATES

Act = Literal["states", "changes", "moves", "ends", "denies", "corrects"]


@dataclass(frozen=True, slots=True)
class Slot:
    """How a value of a key is written, and what kind of fact that is; `about` are words for searches."""

    text: str
    category: str
    importance: ImportanceCategory
    about: str


_CITY: Final = Slot("{s} lives in {v}.", "identity", "biographical_milestone", "home city")
SLOTS: Final = {
    "name": Slot("{s} is called {v}.", "identity", "biographical_milestone", "name"),
    "home_city": _CITY,
    "home_country": _CITY,
    "employer": Slot("{s} works at {v}.", "professional", "biographical_milestone", "employer, job"),
    "allergy": Slot("{s} is allergic to {v}.", "health", "stable_preference", "allergy"),
    "diet": Slot("{s} is {v}.", "hard_preference", "stable_preference", "diet"),
    "birthday": Slot("{s}'s birthday is {v}.", "identity", "biographical_milestone", "date of birth"),
    **{key: Slot(f"{{s}} has a {key} called {{v}}.", "other", "stable_preference", "pet") for key in PETS},
    **{key: Slot(f"{{s}}'s {key} is called {{v}}.", "relationship", "relationship_change", "family") for key in RELATIVES},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatement:
    """What a clause does to a value of `keys`; `old` is the value that it takes the place of, where it names it.

    What `moves` may be a change of the home, or of something else. `is_whole`: apart from a time, the clause says nothing more.
    """

    act: Act
    keys: frozenset[str]
    value: str
    old: str | None
    is_whole: bool


_WRITTEN_OUT: Final = tuple(
    (any_of(short), written)
    for short, written in (
        (r"\bi'?m\b", "i am"), (r"\b(i|we)'ve\b", r"\1 have"), (r"\b(\w+)n't\b", r"\1 not"), (r"\bca not\b", "cannot"),
        (r"\b(it|that)'s\b", r"\1 is"), (r"\bwe're\b", "we are"), (r"\bj habite\b", "j'habite"),
    )
)  # fmt: skip
_JOINING: Final = frozenset("the on of de st nd rd th er".split())
_SEVERAL = any_of(r"\s*,\s*|\s+(?:and|or|und|oder|et|ou|y|e|o|ni)\s+")
_BEFORE_TIME = any_of(r"[\s,]*(?:\b(?:on|am|in|since|seit|the|el|le|la))?\s*$")
_ARTICLE = any_of(r"^(?:à la|à l'|aux|au|al|a la|a los|a las|den|die)\s*")


def written_out(said: str) -> str:
    """With English contractions written out."""
    for short, written in _WRITTEN_OUT:
        said = short.sub(written, said)
    return said


def same_value(one: str | None, other: str | None) -> bool:
    """Whether two values are the same: "Lyon" and "Lyon, France", "nut" and "nuts", "June 14" and "14. Juni"."""
    return one is not None and other is not None and _value_form(one) == _value_form(other)


def _value_form(value: str) -> frozenset[str]:
    said = value if any(sign.isdigit() for sign in value) else value.split(",")[0]
    words = (DATES.get(word, word.rstrip("s")) for word in re.findall(r"\d+|[^\W\d_]+", said.casefold()))
    return frozenset(word for word in words if word not in _JOINING)


def read_clauses(sentence: str, at: datetime) -> list[tuple[str, tuple[SlotStatement, ...]]]:
    """The parts of a sentence, verbatim, and what each does to slots; one part where none does anything.

    What is doubtful, passing, or about what somebody says or thinks, does nothing.
    """
    said = _without_fillers(written_out(plain(sentence)))
    held_back = any(WORDS[name].search(said) for name in ("doubt", "temporary", "no_slots"))
    if held_back or said.isupper() or any(when.first > at.date() for when in find_times(said, at)):
        return [(sentence, ())]
    parts = [(part, _read_clause(part, at)) for part in _clauses(sentence)]
    return parts if any(statements for _, statements in parts) else [(sentence, _read_clause(sentence, at))]


def slot_statements(said: str, at: datetime) -> tuple[SlotStatement, ...]:
    return tuple(one for _, statements in read_clauses(said, at) for one in statements)


def _clauses(sentence: str) -> list[str]:
    starts = [0, *(match.end() for match in WORDS["joint"].finditer(plain(sentence)))]
    parts = [_clean(sentence[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return [part for part in parts if WORDS["filler"].sub("", f"{plain(part)} ").strip()] or [sentence]


def _clean(part: str) -> str:
    trimmed = re.sub(r"(?:[\s,;–—-]+|\s(?:and|but|so|und|aber|et|mais|y|pero))+$", "", part.strip())
    return trimmed or part.strip()


def _read_clause(clause: str, at: datetime) -> tuple[SlotStatement, ...]:
    """What a clause does to slots."""
    said = plain(clause)
    words = _shortened(said, at)
    for act, slot, pattern in SLOT_PATTERNS:
        match = pattern.match(words)
        rest = words[match.end() :] if match else ""
        if match and (not rest or (act in ("states", "changes") and WORDS["tail"].match(rest))):
            found = tuple(_statements(act, slot, match, is_whole=not rest))
            return tuple(replace(one, act="changes") for one in found) if _tells_change(found, said) else found
    return ()


def _tells_change(found: tuple[SlotStatement, ...], said: str) -> bool:
    return all(one.act == "states" for one in found) and bool(WORDS["change"].search(said))


def _shortened(said: str, at: datetime) -> str:
    """The clause without times, fillers, adverbs and closing signs, with contractions written out."""
    for when in reversed(find_times(said, at)):
        said = f"{_BEFORE_TIME.sub(' ', said[: when.span[0]])}{said[when.span[1] :]}"
    said = _without_fillers(WORDS["correction"].sub("", written_out(said)))
    return " ".join(WORDS["adverb"].sub("", said).split()).strip(" ,")


def _without_fillers(said: str) -> str:
    said = said.strip(" .!,;:…)(")
    while (shorter := WORDS["filler"].sub("", said, count=1)) != said:
        said = shorter
    return said


def _statements(act: Act, slot: str, match: re.Match[str], *, is_whole: bool) -> Iterator[SlotStatement]:
    got = {name.partition("_")[0]: said for name, said in match.groupdict().items() if said and "_" in name}
    keys = frozenset(key for key in (*PETS, *RELATIVES) if match.groupdict().get(key)) or frozenset({slot})
    if slot == "any" and "any" in keys:
        keys = frozenset(SLOTS if act == "corrects" else PETS)
    for value in _SEVERAL.split(got["v"]) if slot == "allergy" else [got["v"]]:
        if slot == "home_city" and value.casefold() in COUNTRIES:
            keys = frozenset({"home_country"})
        if act == "moves" and (value.casefold() in CITIES or "home_country" in keys):
            act = "changes"
        value = _ARTICLE.sub("", value) if slot == "allergy" else value.strip()
        yield SlotStatement(act=act, keys=keys, value=value, old=got.get("old"), is_whole=is_whole)
