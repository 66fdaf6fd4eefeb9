"""Splits a message into sentences, and says which state nothing of its speaker, and which fill a slot.

A clause fills one, or ends or denies its value, only if it says so as a whole. `phrases.toml` has the patterns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Final

from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import OmissionReason
from mnemolog.streams.entities.names import is_first_name, name_key
from mnemolog.streams.text.times import find_times
from mnemolog.streams.text.tokens import CITIES, COUNTRIES, DATE_PARTS, DATES, compiled, tables

_TABLES: Final = tables(Path(__file__).with_name("phrases.toml"))
_PARTS: Final = _TABLES["parts"] | DATE_PARTS
OMITTED: Final = {reason: compiled(text, _PARTS) for reason, text in _TABLES["omitted"].items()}
WORDS: Final = {name: compiled(text, _PARTS) for name, text in _TABLES["words"].items()}
_SHOWN_PARTS: Final = _PARTS | _TABLES["shown"]
_SHOWN: Final = {
    name: compiled(_TABLES["shown"][name], _SHOWN_PARTS) for name in ("begins", "label", "line", "row", "signed")
}
SLOT_PATTERNS: Final = tuple(
    (act, slot, compiled(text, _PARTS)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, its keys, and the form of the clause, which may have groups that tell the key."""
PETS: Final = tuple(compiled("{pet}", _PARTS).groupindex)
RELATIVES: Final = tuple(compiled("{relative}", _PARTS).groupindex)

FILLS: Final = ("states", "changes")
_ROWS: Final = _TABLES["written"]
SLOTS: Final = _ROWS | dict.fromkeys(PETS, _ROWS["pet"]) | dict.fromkeys(RELATIVES, _ROWS["relative"])
"""By key how its facts are written: the text, more words for searches, the category and the importance."""
PLACES: Final = CITIES | COUNTRIES
_HOMES: Final = frozenset(Path(__file__).with_name("cities.txt").read_text(encoding="utf-8").splitlines())
"""Cities of at least 100 000 people, by the keys of their names (GeoNames, CC BY 4.0), without those of regions."""
MAX_MESSAGE: Final = 20_000  # characters of a message that are read
MAX_SENTENCE: Final = 500  # characters of a sentence that are kept
MAX_LISTED: Final = 300  # characters that are listed of text that is not read
_SMALL_TALK: Final = 12  # words at the most
_JOKE_MARK: Final = 4  # words at the most of a mark that makes the sentence before it a joke
_TYPOGRAPHY: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'})
_BULLET: Final = re.compile(r"^\s*(?:[-*•+]|\d{1,2}\)|\d{1,2}\.(?= (?:I|My|We)\b))\s+(?:\[[ xX]\]\s+)?")
_PROSE: Final = re.compile(r"(?!.*\.\.)(?:[^\W_]|[ ,.!?'-]|(?<=[.!?])\s+)+")  # a line break stands behind a sentence
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
    for text, is_shown in _pieces(read, speaker):
        for sentence in [Sentence(text=text[:MAX_LISTED], omitted="quotation")] if is_shown else _of_piece(text):
            is_mark = sentence.omitted == "joke" and len(sentence.text.split()) <= _JOKE_MARK
            if is_mark and found and not found[-1].omitted:
                found[-1] = replace(found[-1], omitted="joke")
            found.append(sentence)
    return [*found, Sentence(text=rest[:MAX_LISTED], omitted="too_long")] if rest else found


def _pieces(content: str, speaker: str | None) -> Iterator[tuple[str, bool]]:
    """A message sentence by sentence, each with whether it is shown: code, data, a log, or words of somebody else.

    A message that somebody else signed is shown as a whole. From the head of a mail, or words that announce a text
    ("her reply:"), all that follows is shown; of a chat the lines of others.
    """
    import sentencex  # type: ignore[import-untyped]  # noqa: PLC0415 - no types; of `offline`, and commands read slots

    names = ((speaker or "").casefold(), (speaker or "").partition(" ")[0].casefold())
    signed = _SHOWN["signed"].match(plain(content))
    is_of_others, is_code = bool(signed and signed["signer"].casefold() not in names), False
    lines = list(filter(str.strip, content.splitlines()))
    is_diff = any(line.startswith("+") for line in lines)
    are_rows = [False, *(bool(_SHOWN["row"].match(plain(line))) for line in lines), False]
    for place, line in enumerate(lines, start=1):
        is_fence = line.strip().startswith(("```", "~~~"))
        is_table = are_rows[place] and (are_rows[place - 1] or are_rows[place + 1])
        is_data = _SHOWN["line"].match(plain(line)) or (is_diff and line.startswith("-"))
        is_whole = is_of_others or is_code or is_fence or is_data
        is_code ^= is_fence
        item = _BULLET.sub("", line, count=1)
        language = "en" if is_english(item) else "de"  # whose ordinals end in a full stop: "am 3. Mai"
        for piece in map(str.strip, [line] if is_whole else sentencex.segment(language, item)):
            is_of_others = is_of_others or bool(_SHOWN["begins"].match(plain(piece)))
            label = None if is_whole or is_of_others else _SHOWN["label"].match(plain(piece))
            if label and label["name"].strip("_").casefold() in names:
                yield piece[label.end() :], False
            else:
                yield piece, bool(is_whole or is_of_others or is_table or label)


def _of_piece(piece: str) -> Iterator[Sentence]:
    """A sentence. What is stated before a question, and what is too long of one, is one of its own."""
    text, rest = _cut(piece, MAX_SENTENCE)
    if not any(sign.isalnum() for sign in text) and not OMITTED["joke"].search(text):
        return
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
    """What a clause does to a value of `keys`: it states, changes, ends or denies it.

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


def message_statements(content: str, found: Sequence[Sentence], at: datetime) -> list[tuple[SlotStatement, ...]] | None:
    """What each sentence of a message does to slots; None unless the whole message is plain.

    Plain is prose of clauses that fill or end slots, each whole, with a greeting before them, and likings and questions
    about other things than words behind; it says nothing twice. Whatever takes back, hedges, quotes, plays a role or
    asks for work on a text is none of these.
    """
    said = [() if one.omitted or not is_english(one.text) else slot_statements(one.text, at) for one in found]
    every = [one for some in said for one in some]
    is_plain = bool(every) and bool(_PROSE.fullmatch(plain(content).strip())) and not _clash(every)
    is_begun = False
    for one, some in zip(found, said, strict=True):
        form, text = ("asks", plain(one.text)) if one.omitted else ("aside", without_fillers(one.text))
        is_polite = one.omitted == "greeting" and not is_begun
        is_plain = is_plain and (bool(some) or is_polite or (is_begun and bool(WORDS[form].fullmatch(text))))
        is_begun = is_begun or bool(some)
    return said if is_plain else None


def slot_statements(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """What a sentence does to slots: nothing unless each of its clauses fills or ends one, or tells a liking."""
    said = without_fillers(sentence)
    whole = _read_clause(said, at)
    clauses = [whole] if whole else [_read_clause(part, at) for part in WORDS["joint"].split(said) if part]
    found = [one for clause in clauses for one in clause or ()]
    if said.isupper() or None in clauses:
        return ()
    is_whole = all(clauses) and all(one.is_whole for one in found)
    return tuple(replace(one, is_whole=is_whole) for one in found)


def doubts(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """The diets that a clause of any sentence ends or denies, and the allergies that it calls in question."""
    clauses = map(without_fillers, WORDS["beside"].split(plain(sentence)))
    found = [one for clause in clauses if clause for one in _read_clause(clause, at) or ()]
    are_over = [one for one in found if one.act not in FILLS and one.keys <= {"diet", "allergy"}]
    held = [one if "diet" in one.keys else replace(one, act="denies") for one in are_over]
    return () if WORDS["still"].search(sentence) or _clash(found) else tuple(held)


@lru_cache(maxsize=1024)
def may_give_voice(content: str) -> bool:
    """Whether "I" may be somebody else in the messages behind a user's message.

    It is the user after greetings, sentences about the user and questions, as long as none is about words or a game.
    """
    for one in sentences(content):
        said = plain(one.text)
        is_of_user = one.omitted in ("greeting", "question", "joke") or WORDS["own"].match(said)
        is_of_user = (is_of_user and one.omitted not in ("request", "quotation")) or WORDS["asks"].fullmatch(said)
        if not is_of_user or WORDS["about_words"].search(said):
            return True
    return False


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
    said = re.sub(r"\bi'?m\b", "I am", plain(said).replace("can't", "cannot"), flags=re.IGNORECASE)
    said = said.replace("n't", " not").replace("'ve", " have").replace("'re", " are").strip(".!,;:…)(")
    while (shorter := WORDS["filler"].sub("", said, count=1)) != said:
        said = shorter
    return said.strip()


def _read_clause(clause: str, at: datetime) -> list[SlotStatement] | None:
    """What a whole clause does to slots; nothing where it tells a liking. None for every other clause.

    What lies ahead, ends at a time or was long ago says nothing of today; nor does a time beside the present ("I live
    in Rome this week"), but "since".
    """
    said, is_dated = clause, False
    for when in reversed(find_times(clause, at)):
        if when.first > at.date() or when.role == "until":
            return None
        if when.role == "at":
            is_dated = True
            if when.last < at.date() - timedelta(days=366):
                return None
            said = f"{WORDS['before_time'].sub(' ', said[: when.span[0]])}{said[when.span[1] :]}"
    adverbs = [] if WORDS["negation"].search(said) else [one.casefold() for one in WORDS["adverb"].findall(said)]
    said = " ".join((WORDS["adverb"].sub("", said) if adverbs else said).split()).strip(" ,")
    shorter = WORDS["tail"].sub("", said)
    for act, slot, pattern in SLOT_PATTERNS:
        bare = WORDS["role"].sub("", shorter) if slot == "employer" else shorter
        if (match := pattern.fullmatch(said) or pattern.fullmatch(bare)) and not (is_dated and act == "states"):
            is_change = act == "states" and not {"now", "again"}.isdisjoint(adverbs)
            found = _statements("changes" if is_change else act, slot, match)
            return [replace(one, is_whole=match.string == said) for one in found] or None
    return [] if WORDS["aside"].fullmatch(said) else None


def _statements(act: str, slot: str, match: re.Match[str]) -> Iterator[SlotStatement]:
    got = {name.partition("_")[0]: said for name, said in match.groupdict().items() if said}
    value, keys = got.get("v", ""), frozenset(got.keys() & SLOTS.keys() or slot.split())
    known = {
        "home_city": name_key(value.partition(",")[0]) in _HOMES,
        "employer": not is_first_name(name_key(value)),  # "I work for Tom"
        "known_relative": is_first_name(name_key(value.partition(" ")[0])),  # not "Netflix is my boyfriend"
    }
    if not known.get(slot, True):
        return
    if slot == "birthday":  # "14 June" and "June the 14th" are one value
        words = re.findall(r"\d+|" + DATE_PARTS["month"], value, re.IGNORECASE)
        value = " ".join(sorted(words, key=lambda word: len(word) if word.isdigit() else 0))
    for said in WORDS["several"].split(value) if slot == "allergy" else [value]:
        yield SlotStatement(act=act, keys=keys, value=said, old=got.get("old"))
