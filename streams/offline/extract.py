"""From a turn to its facts: every sentence that states something in its own words, and what fills a slot."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from mnemolog.schemas.facts import IMPORTANCE_OF_CATEGORY, ActionHint, Certainty, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import DroppedStatement
from mnemolog.schemas.turn import Turn
from mnemolog.streams.offline.phrases import WORDS
from mnemolog.streams.offline.sentences import plain, sentences
from mnemolog.streams.offline.slots import SLOTS, SlotStatement, read_clauses, slot_statements
from mnemolog.streams.offline.times import find_times, noted

UNKNOWN_SPEAKER: Final = "The user"
MAX_FACTS: Final = 100  # of a turn
FILLS: Final = ("states", "changes")
_SHORTEST_REST: Final = 3  # words of a part that is kept without its sentence


@dataclass(slots=True)
class TurnReading:
    """The facts of a turn, each text once, and its sentences that became none."""

    facts: dict[str, ExtractedFact] = field(default_factory=dict)
    omitted: list[DroppedStatement] = field(default_factory=list)


def read_turn(turn: Turn) -> TurnReading:
    """What the user's messages state, in their order."""
    reading = TurnReading()
    for message in turn.messages:
        for sentence in sentences(message.content) if message.role == "user" else ():
            if sentence.omitted:
                reading.omitted.append(DroppedStatement(text=sentence.text, reason=sentence.omitted))
                continue
            speaker = " ".join((sentence.speaker or message.name or turn.speaker or UNKNOWN_SPEAKER).split())
            for fact in _read_sentence(sentence.text, speaker, turn.occurred_at):
                _add(reading, fact, turn.occurred_at)
    for text in list(reading.facts)[MAX_FACTS:]:
        reading.omitted.append(DroppedStatement(text=reading.facts.pop(text).excerpt, reason="too_long"))
    return reading


def _add(reading: TurnReading, fact: ExtractedFact, at: datetime) -> None:
    """Add a fact; what it corrects of the same turn is taken back, and it fills the slot instead."""
    for statement in slot_statements(fact.excerpt, at):
        wrong = next((one for one in reading.facts.values() if corrects(statement, one, fact)), None)
        if wrong and wrong.key:
            del reading.facts[wrong.text]
            reading.omitted.append(DroppedStatement(text=wrong.excerpt, reason="taken_back"))
            fact = slot_fact(wrong.key, statement, fact, fact.subject or UNKNOWN_SPEAKER)
    reading.facts.setdefault(fact.text, fact)


def corrects(statement: SlotStatement, known: ExtractedFact, fact: ExtractedFact) -> bool:
    same_subject = known.subject == fact.subject and known.key in statement.keys
    return statement.act == "corrects" and same_subject and statement.old == known.value


def _read_sentence(sentence: str, speaker: str, at: datetime) -> Iterator[ExtractedFact]:
    """The slots that it fills, and in its own words what else it says: a part that can stand alone, or all of it."""
    parts = read_clauses(sentence, at)
    whole = all(_stands_alone(part, statements) for part, statements in parts)
    for part, statements in parts:
        kept = kept_fact(part, speaker, at)
        fills = [one for one in statements if one.act in FILLS]
        for one in fills:
            (key,) = one.keys
            yield slot_fact(key, one, kept, speaker)
        if not fills and whole:
            yield kept
    if not whole:
        yield kept_fact(sentence, speaker, at)


def _stands_alone(part: str, statements: tuple[SlotStatement, ...]) -> bool:
    if statements:
        return all(one.is_whole for one in statements)
    return len(part.split()) >= _SHORTEST_REST and bool(WORDS["self"].match(plain(part)))


def kept_fact(said: str, speaker: str, at: datetime) -> ExtractedFact:
    """A sentence as a transcript has it, with the dates that its words for times mean."""
    words = plain(said)
    times = find_times(words, at)
    text = f"{speaker}: {noted(said, times)}"
    begun = [when.start(at) for when in times if when.last < at.date() and when.role != "until"]
    ahead = [when for when in times if when.last > at.date() and when.role != "from"]
    ends = [when.end(at) for when in ahead if when.role == "until" or WORDS["ahead"].search(words)]
    acts = [one.act for one in slot_statements(said, at) if one.act not in FILLS]
    hint: ActionHint = "update" if "moves" in acts else "retract" if acts or WORDS["ended"].search(words) else "new"
    certainty: Certainty = "weak" if WORDS["doubt"].search(words) else "strong" if "moves" in acts else "explicit"
    return ExtractedFact(
        text=text,
        excerpt=said,
        search_text=text,
        category="health" if WORDS["health"].search(words) else "other",
        importance_category="specific_event",
        importance=IMPORTANCE_OF_CATEGORY["specific_event"],
        certainty=certainty,
        action_hint=hint,
        subject=speaker,
        event_time=begun[0] if begun else None,
        valid_until=ends[-1] if ends and not begun else None,
    )


def slot_fact(key: str, statement: SlotStatement, kept: ExtractedFact, speaker: str) -> ExtractedFact:
    """The value of a slot in the words of the registry. A home that is only stated may be a part of another one."""
    slot = SLOTS[key]
    text = slot.text.format(s=speaker, v=statement.value)
    may_be_part = key == "home_city" and statement.act == "states"
    fields = {
        "text": text,
        "search_text": f"{text} {slot.about}",
        "key": key,
        "value": statement.value,
        "single_valued": is_single_valued(key),
        "category": slot.category,
        "importance_category": slot.importance,
        "importance": IMPORTANCE_OF_CATEGORY[slot.importance],
        "certainty": "strong" if may_be_part else "explicit",
        "action_hint": "new" if statement.act == "states" else "update",
        "valid_until": None,
    }
    return kept.model_copy(update=fields)
