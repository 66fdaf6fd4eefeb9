"""Splits a message into sentences, and says which state nothing of its speaker, and which fill a slot.

A clause fills one, or ends or denies its value, only if it says so as a whole. `phrases.toml` has the patterns.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

from mnemolog.schemas.provenance import OmissionReason
from mnemolog.streams.entities.names import is_first_name, name_key
from mnemolog.streams.text.times import find_times
from mnemolog.streams.text.tokens import DATE_PARTS, DATES, PLACES, TENSES, compiled, tables, typewriter_quotes

_TABLES: Final = tables(Path(__file__).with_name("phrases.toml"))
_PARTS: Final = (
    _TABLES["parts"] | DATE_PARTS | {"past": "|".join(sorted(past for pasts, _ in TENSES for past in pasts))}
)
OMITTED: Final = {reason: compiled(text, _PARTS) for reason, text in _TABLES["omitted"].items()}
WORDS: Final = {name: compiled(text, _PARTS) for name, text in _TABLES["words"].items()}
_SHOWN: Final = {name: compiled(text, _PARTS | _TABLES["shown_parts"]) for name, text in _TABLES["shown"].items()}
MAX_MESSAGE: Final = 20_000  # characters of a message that are read
MAX_SENTENCE: Final = 500  # characters of a sentence that are kept
MAX_ANSWER: Final = 8  # words of an answer that is kept with its question
MAX_LISTED: Final = 300  # characters that are listed of text that is not read
_SMALL_TALK: Final = 12  # words at the most
_JOKE_MARK: Final = 4  # words at the most of a mark that makes the sentence before it a joke
_BULLET: Final = compiled(r"^\s*(?:[-*•+]|\d{1,2}\)|\d{1,2}\.(?! {month}\b)(?= \w+ \w))\s+(?:\[x? ?\]\s+)?", _PARTS)
_UP_TO_END: Final = re.compile(r"(?s).*(?:[.!?](?=\s)|[\u3002\uff01\uff1f\n])|.* |.*")
_PATTERNS: Final = tuple(
    (act, slot, compiled(text, _PARTS)) for slot, acts in _TABLES["slots"].items() for act, text in acts.items()
)
"""What a clause does to a slot, its keys, and the form of the clause, which may have groups that tell the key."""
FILLS: Final = ("states", "changes")
_ROWS: Final = _TABLES["written"]
_TIES: Final = {tie: _ROWS[kind] for kind in ("pet", "relative") for tie in compiled(f"{{{kind}}}", _PARTS).groupindex}
SLOTS: Final = _ROWS | _TIES
"""By key how its facts are written: the text, more words for searches, the category and the importance."""
_MANY: Final = (_ROWS["allergy"], _ROWS["pet"])  # of which a message may name several
_HOMES: Final = frozenset(Path(__file__).with_name("cities.txt").read_text(encoding="utf-8").splitlines())
"""Cities of at least 100 000 people, by the keys of their names (GeoNames, CC BY 4.0), without those of regions."""
_PROSE: Final = re.compile(r"(?!.*\.\.)(?:[^\W_]|[ ,.!?'-]|(?<=[.!?])\s+)+")  # a line break stands behind a sentence
_VALUE_WORDS: Final = re.compile(r"\d+|\b(?!(?:the|of)\b)[^\W\d_]+")


class Sentence(NamedTuple):
    """Words of a message as they stand there, and why they are no fact."""

    text: str
    omitted: OmissionReason | None = None


def is_english(text: str) -> bool:
    """Whether a sentence is in English, as its small words show; in doubt it is, and rules may read it."""
    said = typewriter_quotes(text)
    return len(WORDS["other_language"].findall(said)) <= len(WORDS["english"].findall(said))


def sentences(content: str, speaker: str | None = None) -> list[Sentence]:
    """All of a message of a speaker, in its order; text that is too long to be read comes last."""
    said, rest = _cut(content, MAX_MESSAGE)
    found: list[Sentence] = []
    for text, is_shown in _pieces(said, speaker):
        for sentence in [Sentence(text[:MAX_LISTED], "quotation")] if is_shown else _of_piece(text):
            is_mark = sentence.omitted == "joke" and len(sentence.text.split()) <= _JOKE_MARK
            if is_mark and found and not found[-1].omitted:
                found[-1] = Sentence(found[-1].text, "joke")
            found.append(sentence)
    return [*found, Sentence(rest[:MAX_LISTED], "too_long")] if rest else found


def _pieces(content: str, speaker: str | None) -> Iterator[tuple[str, bool]]:
    """A message sentence by sentence, each with whether it is shown: code, data, a log, or words of somebody else.

    A message that somebody else signed is shown as a whole. From the head of a mail, or words that announce a text
    ("her reply:"), all that follows is shown; of a chat the lines of others.
    """
    import sentencex  # type: ignore[import-untyped]  # noqa: PLC0415 - no types; of `offline`, and commands read slots

    names = ((speaker or "").casefold(), (speaker or "").partition(" ")[0].casefold())
    signed = _SHOWN["signed"].match(typewriter_quotes(content))
    is_of_others, end = bool(signed and signed["signer"].casefold() not in names), ""
    lines = list(filter(str.strip, content.splitlines()))
    is_diff = any(line.startswith("+") for line in lines)
    are_rows = [False, *(bool(_SHOWN["row"].match(typewriter_quotes(line))) for line in lines), False]
    for place, line in enumerate(lines, start=1):
        fence = _SHOWN["fence"].match(line)
        is_table = are_rows[place] and (are_rows[place - 1] or are_rows[place + 1])
        is_data = _SHOWN["line"].match(typewriter_quotes(line)) or (is_diff and line.startswith("-"))
        is_whole = bool(is_of_others or end or fence or is_data)
        end = ("" if end in line else end) if end else fence[1] or f"</{fence[2]}>" if fence else ""
        item = _BULLET.sub("", line, count=1)
        language = "en" if is_english(item) else "de"  # whose ordinals end in a full stop: "am 3. Mai"
        for piece in map(str.strip, [line] if is_whole else sentencex.segment(language, item)):
            is_of_others = is_of_others or bool(_SHOWN["begins"].match(typewriter_quotes(piece)))
            label = None if is_whole or is_of_others else _SHOWN["label"].match(typewriter_quotes(piece))
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
    before = WORDS["stated_before"].match(typewriter_quotes(text)) if omitted == "question" else None
    if before and reason_not_stated(before["stated"]) is None:
        yield Sentence(text[: before.end("stated")])
        text = text[before.end() :]
    yield Sentence(text, omitted)
    if rest:
        yield Sentence(rest[:MAX_LISTED], "too_long")


def reason_not_stated(text: str) -> OmissionReason | None:
    """Why a sentence states nothing; None where it does, as far as is known."""
    said = WORDS["remember"].sub("", typewriter_quotes(text), count=1)
    is_short = len(said.split()) <= _SMALL_TALK and not WORDS["subject"].search(said)
    reason = next((reason for reason, pattern in OMITTED.items() if pattern.search(said)), None)
    return "greeting" if reason is None and is_short and WORDS["greeting"].match(said) else reason


def _cut(text: str, limit: int) -> tuple[str, str]:
    """What of a text is read, to the last end of a sentence or a word within the limit, and the rest."""
    found = _UP_TO_END.match(text, 0, limit) if len(text) > limit else None
    end = found.end() if found else len(text)
    return text[:end].rstrip(), text[end:].strip()


@lru_cache(maxsize=1024)
def may_give_voice(role: str, content: str, asked: str) -> bool:
    """Whether "I" may be somebody else beside a message that does not greet, answer, tell of the user or ask."""
    if WORDS["plays" if role == "assistant" else "wording"].search(content):
        return True
    is_answer = "?" in asked and len(content.split()) <= MAX_ANSWER
    for one in sentences(content) if role == "user" and not is_answer else ():
        said = typewriter_quotes(one.text) if one.omitted else without_fillers(one.text)
        is_told = one.omitted in ("greeting", "question", "joke") or (not one.omitted and WORDS["told"].match(said))
        if WORDS["about_words"].search(said) or not (is_told or WORDS["asks"].fullmatch(said)):
            return True
    return False


class SlotStatement(NamedTuple):
    """A clause states, changes, ends, denies or doubts a value of `keys`, all if it is empty; or tells of none."""

    act: str
    keys: frozenset[str] = frozenset()
    value: str = ""


def same_value(one: str | None, other: str | None) -> bool:
    """Whether two values are the same: "nut" and "nuts", "June 14" and "14 June"."""
    said = [_VALUE_WORDS.findall(f"{value or ''}".casefold()) for value in (one, other)]
    forms = [{DATES.get(word, word.rstrip("s")) for word in words} for words in said]
    return forms[0] == forms[1] != set()


def are_plain(content: str, found: Sequence[Sentence], said: Sequence[Sequence[SlotStatement]]) -> bool:
    """Whether a message fills and ends the slots that its sentences speak of, as it is plain as a whole.

    Plain is prose of clauses that fill or end slots, each whole, with a greeting before them, and likings and questions
    about other things than words behind; it says nothing twice. Who takes back, hedges, quotes or plays is not plain.
    """
    if not _PROSE.fullmatch(typewriter_quotes(content).strip()) or _clash([one for some in said for one in some]):
        return False
    is_begun = False
    for one, some in zip(found, said, strict=True):
        is_begun = is_begun or any(statement.keys for statement in some)
        is_behind = bool(some) or WORDS["asks"].fullmatch(typewriter_quotes(one.text))
        if not (is_behind if is_begun else one.omitted == "greeting"):
            return False
    return is_begun


def slot_statements(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """What a sentence does to slots: nothing unless each of its clauses fills or ends one, or tells a liking."""
    said = without_fillers(sentence) if is_english(sentence) and not sentence.isupper() else ""
    whole = _read_clause(said, at)
    clauses = [whole] if whole else [_read_clause(part, at) for part in WORDS["joint"].split(said) if part]
    return tuple(one for clause in clauses for one in clause) if all(clauses) else ()


def doubts(sentence: str, at: datetime) -> tuple[SlotStatement, ...]:
    """The diets that a bare sentence ends or denies, and the diets and allergies that a clause calls in question."""
    found: list[SlotStatement] = []
    for clause in map(without_fillers, WORDS["beside"].split(typewriter_quotes(sentence))):
        found += [one for one in _read_clause(clause, at) if "diet" in one.keys]
        if WORDS["unallergic"].search(clause) and not WORDS["others"].search(sentence):
            foods = WORDS["food"].findall(clause) or [""]
            found += [SlotStatement("doubts", frozenset({"allergy"}), food) for food in foods]
    sure = WORDS["bare"].fullmatch(sentence)
    over = (one if sure else one._replace(act="doubts") for one in found if one.act not in FILLS)
    return () if WORDS["still"].search(sentence) or _clash(found) else tuple(over)


def _clash(said: Sequence[SlotStatement]) -> bool:
    """Whether a message says two things of one key: two values where one can be, or a value and its end."""
    for one, other in combinations(dict.fromkeys(said), 2):
        are_fills = [some.act in FILLS for some in (one, other)]
        keys = {key for key in one.keys & other.keys if not all(are_fills) or SLOTS[key] not in _MANY}
        is_same = same_value(one.value, other.value) or not (one.value and other.value)
        if keys and any(are_fills) and is_same != all(are_fills):
            return True
    return False


def without_fillers(said: str) -> str:
    """A clause without contractions, greetings and polite words before it."""
    said = re.sub(r"\bi'?m\b", "I am", typewriter_quotes(said).replace("can't", "cannot"), flags=re.IGNORECASE)
    said = said.replace("n't", " not").replace("'ve", " have").replace("'re", " are").strip(".!,;:…)(")
    while (shorter := WORDS["filler"].sub("", said, count=1)) != said:
        said = shorter
    return said.strip()


def _read_clause(clause: str, at: datetime) -> list[SlotStatement]:
    """What a whole clause does to slots, or that it tells a liking; nothing for every other clause.

    What lies ahead, ends or was long ago says nothing of today; nor does "I live in Rome this week", but "since".
    """
    said, is_dated = clause, False
    for when in reversed(find_times(clause, at)):
        is_long_ago = when.role == "at" and when.last < at.date() - timedelta(days=366)
        if when.first > at.date() or when.role == "until" or is_long_ago:
            return []
        if when.role == "at":
            is_dated = True
            said = f"{WORDS['before_time'].sub(' ', said[: when.span[0]])}{said[when.span[1] :]}"
    adverbs = [] if WORDS["negation"].search(said) else [one.casefold() for one in WORDS["adverb"].findall(said)]
    said = " ".join((WORDS["adverb"].sub("", said) if adverbs else said).split()).strip(" ,")
    at_place = (tail := WORDS["tail"].search(said)) and tail["place"]  # "in Zurich", and not "in Monopoly"
    is_tail = not at_place or name_key(at_place) in _HOMES or at_place.casefold() in PLACES
    shorter = said[: tail.start()] if tail and is_tail else said
    for act, slot, pattern in _PATTERNS:
        bare = WORDS["role"].sub("", shorter) if slot == "employer" else shorter
        if (match := pattern.fullmatch(said) or pattern.fullmatch(bare)) and not (is_dated and act == "states"):
            got = {name.partition("_")[0]: part for name, part in match.groupdict().items() if part}
            value, keys = got.get("v", ""), frozenset(got.keys() & SLOTS.keys() or slot.split())
            is_known = {
                "home_city": name_key(value.partition(",")[0]) in _HOMES,
                "employer": not is_first_name(name_key(value)),  # "I work for Tom"
                "known_relative": is_first_name(name_key(value.partition(" ")[0])),  # not "Netflix is my boyfriend"
            }
            values = WORDS["several"].split(value) if slot == "allergy" else [value]
            does = "changes" if act == "states" and not {"now", "again"}.isdisjoint(adverbs) else act
            found = [SlotStatement(does, keys, one) for one in values if is_known.get(slot, True)]
            return [*found, SlotStatement("tells")] if found and match.string != said else found
    return [SlotStatement("tells")] if WORDS["aside"].fullmatch(said) else []
