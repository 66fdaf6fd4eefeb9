"""Splits a message into sentences, and says which state nothing of its speaker, and which fill a slot.

A clause fills one, or ends or denies its value, only if it says so as a whole. `phrases.toml` has the patterns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Final

import sentencex  # type: ignore[import-untyped]  # ships no types

from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import OmissionReason
from mnemolog.streams.text.times import find_times
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATE_PARTS, DATES, REGIONS, compiled, tables

_TABLES: Final = tables(Path(__file__).with_name("phrases.toml"))
_PARTS: Final = _TABLES["parts"] | DATE_PARTS
OMITTED: Final = {reason: compiled(text, _PARTS) for reason, text in _TABLES["omitted"].items()}
WORDS: Final = {name: compiled(text, _PARTS) for name, text in _TABLES["words"].items()}
_COPIED: Final = compiled(_TABLES["copied"]["passage"], _PARTS | _TABLES["copied"])
SLOT_PATTERNS: Final = tuple(
    (act, slot, compiled(text, _PARTS)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, its keys, and the form of the clause, which may have groups that tell the key."""
PETS: Final = tuple(compiled("{pet}", _PARTS).groupindex)
RELATIVES: Final = tuple(compiled("{relative}", _PARTS).groupindex)

FILLS: Final = ("states", "changes", "suggests")
_ROWS: Final = tables(Path(__file__).with_name("slots.toml"))
SLOTS: Final = _ROWS | dict.fromkeys(PETS, _ROWS["pet"]) | dict.fromkeys(RELATIVES, _ROWS["relative"])
PLACES: Final = CITIES | COUNTRIES
MAX_MESSAGE: Final = 20_000  # characters of a message that are read
MAX_SENTENCE: Final = 500  # characters of a sentence that are kept
MAX_LISTED: Final = 300  # characters that are listed of text that is not read
_SMALL_TALK: Final = 12  # words at the most
_JOKE_MARK: Final = 4  # words at the most of a mark that makes the sentence before it a joke
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'})
_BULLET: Final = re.compile(r"^\s*(?:[-*•+]|\d{1,2}\)|\d{1,2}\.(?= (?:I|My|We)\b))\s+(?:\[[ xX]\]\s+)?")
_UP_TO_END: Final = re.compile(r"(?s).*(?:[.!?](?=\s)|[\u3002\uff01\uff1f\n])|.* |.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Words of a message as they stand there, and why they are no fact."""

    text: str
    omitted: OmissionReason | None = None


def plain(text: str) -> str:
    """With typewriter quotes, character for character."""
    return text.translate(_TYPOGRAPHY)


def is_english(text: str) -> bool:
    """Whether a sentence is in English, as its small words show; in doubt it is, and rules may read it."""
    said = plain(text)
    return len(WORDS["other_language"].findall(said)) <= len(WORDS["english"].findall(said))


def sentences(content: str, speaker: str | None = None) -> list[Sentence]:
    """All of a message of a speaker, in its order; text that is too long to be read comes last."""
    read, rest = _cut(content, MAX_MESSAGE)
    found: list[Sentence] = []
    for passage, is_copied in _passages(read, speaker):
        for line in filter(str.strip, passage.splitlines()):
            copied = Sentence(text=line.strip()[:MAX_LISTED], omitted="quotation")
            for sentence in [copied] if is_copied else _of_line(line):
                is_mark = sentence.omitted == "joke" and len(sentence.text.split()) <= _JOKE_MARK
                if is_mark and found and not found[-1].omitted:
                    found[-1] = replace(found[-1], omitted="joke")
                found.append(sentence)
    return [*found, Sentence(text=rest[:MAX_LISTED], omitted="too_long")] if rest else found


def _passages(content: str, speaker: str | None) -> Iterator[tuple[str, bool]]:
    """A message in pieces, each with whether it is copied: code, data, a log, or words of somebody else.

    A message that others signed is copied as a whole; from the head of a mail, or words that announce a text ("her
    reply:"), all that follows is copied.
    """
    start, names = 0, ((speaker or "").casefold(), (speaker or "").partition(" ")[0].casefold())
    for match in _COPIED.finditer(plain(content)):
        begin, end = match.span("rest" if match["rest"] else 0)
        yield content[start:begin], False
        is_own = (match["name"] or match["signer"] or "\n").casefold().strip("_") in names
        start = match.start("said" if match["said"] else 0) if is_own else end
        yield "" if is_own else content[begin:start], True
    yield content[start:], False


def _of_line(line: str) -> Iterator[Sentence]:
    """The sentences of a line. What is stated before a question, and what is too long of one, is one of its own."""
    line = _BULLET.sub("", line, count=1)
    language = "en" if is_english(line) else "de"  # whose ordinals end in a full stop: "am 3. Mai"
    for piece in sentencex.segment(language, line):
        text, rest = _cut(piece.strip(), MAX_SENTENCE)
        if not any(sign.isalnum() for sign in text) and not OMITTED["joke"].search(text):
            continue
        omitted = reason_not_stated(text)
        before = WORDS["stated_before"].match(plain(text)) if omitted == "question" else None
        if before and reason_not_stated(before["stated"]) is None:
            yield Sentence(text=text[: before.end("stated")])
            text = text[before.end() :]
        yield Sentence(text=text, omitted=omitted)
        if rest:
            yield Sentence(text=rest[:MAX_LISTED], omitted="too_long")


def reason_not_stated(text: str) -> OmissionReason | None:
    """Why a sentence states nothing; None where it does, as far as is known."""
    said = WORDS["remember"].sub("", plain(text), count=1)
    is_short = len(said.split()) <= _SMALL_TALK and not WORDS["subject"].search(said)
    if is_short and WORDS["greeting"].match(said) and not OMITTED["question"].search(said):
        return "greeting"
    return next((reason for reason, pattern in OMITTED.items() if pattern.search(said)), None)


def _cut(text: str, limit: int) -> tuple[str, str]:
    """What of a text is read, to the last end of a sentence or a word within the limit, and the rest."""
    found = _UP_TO_END.match(text, 0, limit) if len(text) > limit else None
    end = found.end() if found else len(text)
    return text[:end].rstrip(), text[end:].strip()


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


def clashing_keys(said: Sequence[SlotStatement]) -> frozenset[str]:
    """The keys of which a message says two things: two values where one can be, or a value and its end."""
    found: set[str] = set()
    for one, other in combinations(dict.fromkeys(said), 2):
        are_fills = [some.act in FILLS for some in (one, other)]
        keys = {key for key in one.keys & other.keys if not all(are_fills) or is_single_valued(key)} - found
        if keys and any(are_fills):
            is_same = same_value(one.value, other.value) or not (one.value and other.value)
            found |= keys if is_same != all(are_fills) else set()
    return frozenset(found)


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
            besides = " ".join(plain(clause).split())
            for name, value in match.groupdict().items():
                besides = besides.replace(value, " ") if value and name.startswith(("v_", "old_")) else besides
            is_change = act == "states" and WORDS["change"].search(besides)
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
