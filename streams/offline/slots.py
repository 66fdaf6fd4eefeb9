"""What a sentence does to slots: a clause fills one, or ends or denies its value, only if it says so as a whole."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

from mnemolog.schemas.policy import is_single_valued
from mnemolog.streams.entities.names import is_first_name, name_key
from mnemolog.streams.offline.sentences import PARTS, TABLES, WORDS, Sentence, is_english, plain
from mnemolog.streams.text.times import find_times
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATES, compiled

_PATTERNS: Final = tuple(
    (act, slot, compiled(text, PARTS)) for slot, acts in TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, its keys, and the form of the clause, which may have groups that tell the key."""
FILLS: Final = ("states", "changes")
_PETS: Final = compiled("{pet}", PARTS).groupindex
_RELATIVES: Final = compiled("{relative}", PARTS).groupindex
_ROWS: Final = TABLES["written"]
WRITTEN: Final = _ROWS | dict.fromkeys(_PETS, _ROWS["pet"]) | dict.fromkeys(_RELATIVES, _ROWS["relative"])
"""By key how its facts are written: the text, more words for searches, the category and the importance."""
PLACES: Final = CITIES | COUNTRIES
_HOMES: Final = frozenset(Path(__file__).with_name("cities.txt").read_text(encoding="utf-8").splitlines())
"""Cities of at least 100 000 people, by the keys of their names (GeoNames, CC BY 4.0), without those of regions."""
_PROSE: Final = re.compile(r"(?!.*\.\.)(?:[^\W_]|[ ,.!?'-]|(?<=[.!?])\s+)+")  # a line break stands behind a sentence
_NO_VALUE: Final = frozenset(("the", "of", "st", "nd", "rd", "th"))
_LONG_AGO: Final = timedelta(days=366)


class SlotStatement(NamedTuple):
    """What a clause does to a value of `keys`: it states, changes, ends or denies it, or doubts it.

    `value` is empty where it ends or doubts every value. A clause that tells something else has no keys.
    """

    act: str
    keys: frozenset[str] = frozenset()
    value: str = ""

    @property
    def key(self) -> str:
        """The first of its keys."""
        return min(self.keys)


_TELLS: Final = SlotStatement("tells")


def same_value(one: str | None, other: str | None) -> bool:
    """Whether two values are the same: "nut" and "nuts", "June 14" and "14 June"."""
    words = [re.findall(r"\d+|[^\W\d_]+", (value or "").casefold()) for value in (one, other)]
    forms = [{DATES.get(word, word.rstrip("s")) for word in some} - _NO_VALUE for some in words]
    return forms[0] == forms[1] != set()


def are_plain(content: str, found: Sequence[Sentence], said: Sequence[Sequence[SlotStatement]]) -> bool:
    """Whether a message fills and ends the slots that its sentences speak of, as it is plain as a whole.

    Plain is prose of clauses that fill or end slots, each whole, with a greeting before them, and likings and questions
    about other things than words behind; it says nothing twice. Whatever takes back, hedges, quotes, plays a role or
    asks for work on a text is none of these.
    """
    if not _PROSE.fullmatch(plain(content).strip()) or _clash([one for some in said for one in some]):
        return False
    is_begun = False
    for one, some in zip(found, said, strict=True):
        is_begun = is_begun or any(statement.keys for statement in some)
        is_behind = bool(some) or WORDS["asks"].fullmatch(plain(one.text))
        if not (is_behind if is_begun else one.omitted == "greeting"):
            return False
    return is_begun


def slot_statements(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """What a sentence does to slots: nothing unless each of its clauses fills or ends one, or tells a liking."""
    said = without_fillers(sentence)
    if said.isupper() or not is_english(sentence):
        return ()
    whole = _read_clause(said, at)
    clauses = [whole] if whole else [_read_clause(part, at) for part in WORDS["joint"].split(said) if part]
    return tuple(one for clause in clauses for one in clause) if all(clauses) else ()


def doubts(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """The diets that a clause of any sentence ends or denies, and the allergies that it calls in question.

    An allergy is in question where a clause about the user says that it is none, or over, or that the food is eaten.
    """
    found: list[SlotStatement] = []
    for clause in map(without_fillers, WORDS["beside"].split(plain(sentence))):
        found += [one for one in _read_clause(clause, at) if "diet" in one.keys]
        if WORDS["unallergic"].search(clause) and not WORDS["others"].search(sentence):
            foods = WORDS["food"].findall(clause) or [""]
            found += [SlotStatement("doubts", frozenset({"allergy"}), food) for food in foods]
    are_over = [one for one in found if one.act not in FILLS]
    return () if WORDS["still"].search(sentence) or _clash(found) else tuple(are_over)


def _clash(said: Sequence[SlotStatement]) -> bool:
    """Whether a message says two things of one key: two values where one can be, or a value and its end."""
    for one, other in combinations(dict.fromkeys(said), 2):
        are_fills = [some.act in FILLS for some in (one, other)]
        keys = {key for key in one.keys & other.keys if not all(are_fills) or is_single_valued(key)}
        is_same = same_value(one.value, other.value) or not (one.value and other.value)
        if keys and any(are_fills) and is_same != all(are_fills):
            return True
    return False


def without_fillers(said: str) -> str:
    """A clause without contractions, greetings and polite words before it."""
    said = re.sub(r"\bi'?m\b", "I am", plain(said).replace("can't", "cannot"), flags=re.IGNORECASE)
    said = said.replace("n't", " not").replace("'ve", " have").replace("'re", " are").strip(".!,;:…)(")
    while (shorter := WORDS["filler"].sub("", said, count=1)) != said:
        said = shorter
    return said.strip()


def _read_clause(clause: str, at: datetime) -> list[SlotStatement]:
    """What a whole clause does to slots, or that it tells a liking; nothing for every other clause.

    What lies ahead, ends at a time or was long ago says nothing of today; nor does a time beside the present ("I live
    in Rome this week"), but "since".
    """
    said, is_dated = clause, False
    for when in reversed(find_times(clause, at)):
        if when.first > at.date() or when.role == "until" or (when.role == "at" and when.last < at.date() - _LONG_AGO):
            return []
        if when.role == "at":
            is_dated = True
            said = f"{WORDS['before_time'].sub(' ', said[: when.span[0]])}{said[when.span[1] :]}"
    adverbs = [] if WORDS["negation"].search(said) else [one.casefold() for one in WORDS["adverb"].findall(said)]
    said = " ".join((WORDS["adverb"].sub("", said) if adverbs else said).split()).strip(" ,")
    shorter = WORDS["tail"].sub("", said)
    for act, slot, pattern in _PATTERNS:
        bare = WORDS["role"].sub("", shorter) if slot == "employer" else shorter
        if (match := pattern.fullmatch(said) or pattern.fullmatch(bare)) and not (is_dated and act == "states"):
            is_change = act == "states" and not {"now", "again"}.isdisjoint(adverbs)
            found = _statements("changes" if is_change else act, slot, match)
            return [*found, _TELLS] if found and match.string != said else found
    return [_TELLS] if WORDS["aside"].fullmatch(said) else []


def _statements(act: str, slot: str, match: re.Match[str]) -> list[SlotStatement]:
    """What a clause of a slot's form does; nothing where its value is of another kind."""
    got = {name.partition("_")[0]: said for name, said in match.groupdict().items() if said}
    value, keys = got.get("v", ""), frozenset(got.keys() & WRITTEN.keys() or slot.split())
    is_known = {
        "home_city": name_key(value.partition(",")[0]) in _HOMES,
        "employer": not is_first_name(name_key(value)),  # "I work for Tom"
        "known_relative": is_first_name(name_key(value.partition(" ")[0])),  # not "Netflix is my boyfriend"
    }
    values = WORDS["several"].split(value) if slot == "allergy" else [value]
    return [SlotStatement(act, keys, one) for one in values if is_known.get(slot, True)]
