"""How a new fact stands to known ones, judged by slots, denials and the words that two texts share."""

# ruff: noqa: SIM905 -- a list of words is best read as words

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from schemas.base import normalise
from schemas.facts import Candidate, ExtractedFact
from streams.providers.base import Conflict, Conflicts
from streams.providers.rules.clauses import marks

Action = Literal["ADD", "KEEP", "MERGE", "REPLACE", "CONTRADICT"]

_ONE_VALUE = frozenset(
    "name age birthday birth_place home_city home home_town native_language employer job_title employment_status"
    " field_of_study diet marital_status household wife husband partner girlfriend boyfriend spouse boss manager doctor"
    " dentist therapist salary bank rent budget mortgage car editor browser operating_system time_zone"
    " timezone shoe_size"
    " e_mail email phone phone_number address"
    " company blood_type height weight nationality religion hometown team"
    " profession job university school username mother father children".split()
)
_FOR_EVER = frozenset({"birthday", "birth_place", "native_language", "blood_type", "mother", "father"})
_DENYING = frozenset({"not", "never", "no", "longer", "dislikes", "hates", "detests", "cannot", "stopped"})
_SAME = {"loves": "likes", "enjoys": "likes", "adores": "likes", "prefers": "likes", "hates": "likes"}
_SAME |= {"like": "likes", "love": "likes", "loved": "likes", "liked": "likes", "enjoy": "likes", "dislikes": "likes"}
_SAME |= {"live": "lives", "lived": "lives", "work": "works", "worked": "works", "had": "has", "have": "has"}
_SAME |= {"used": "uses", "use": "uses", "was": "is", "detests": "likes", "prefer": "likes", "speak": "speaks"}
_EMPTY = frozenset("a an the does do to of in at on for as with since and their not never no longer cannot".split())
_TIMES = frozenset(name.lower() for name in calendar.month_name[1:]) | {"week", "weekend"}
_SHORT = 3  # "is" and "has" are no plurals
_WORD = re.compile(r"[^\W_]+(?:[.,:'-][^\W_]+)*")
_CHANGED = re.compile(r"\bswitched\b|\binstead of\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is to be done about one new fact, and why, in a few words."""

    new: int
    action: Action
    known: tuple[int, ...] = ()
    text: str | None = None
    search_text: str | None = None
    reason: str
    ended_at: datetime | None = None


def judge(conflicts: Conflicts) -> tuple[Judgement, ...]:
    """One judgement for each conflict; a known fact that one of them ends is not used by another."""
    used: set[int] = set()
    judgements: list[Judgement] = []
    for conflict in conflicts.conflicts:
        judgement = _judge(conflict, frozenset(used))
        used.update(judgement.known)
        judgements.append(judgement)
    return tuple(judgements)


def _judge(conflict: Conflict, used: frozenset[int]) -> Judgement:
    fact = conflict.fact
    found = [
        (action, label, reason)
        for label, known in conflict.candidates
        if label not in used
        for action, reason in _relation(fact, known)
    ]
    for wanted in ("KEEP", "CONTRADICT", "REPLACE", "MERGE"):
        chosen = [(label, reason) for action, label, reason in found if action == wanted]
        if chosen:
            return _judgement(conflict.number, wanted, fact, chosen)
    return Judgement(new=conflict.number, action="ADD", reason="says something else than what is known")


def _judgement(
    number: int,
    action: Literal["KEEP", "CONTRADICT", "REPLACE", "MERGE"],
    fact: ExtractedFact,
    chosen: list[tuple[int, str]],
) -> Judgement:
    merged = action == "MERGE"
    return Judgement(
        new=number,
        action=action,
        known=tuple(dict.fromkeys(label for label, _ in (chosen if not merged and action != "KEEP" else chosen[:1]))),
        text=fact.text if merged else None,
        search_text=fact.search_text if merged else None,
        reason=chosen[0][1],
    )


def _relation(fact: ExtractedFact, known: Candidate) -> Iterator[tuple[Action, str]]:
    if not _same_subject(fact, known):
        return
    new, old = _core(fact.text, fact.subject), _core(known.text, fact.subject)
    agree = _denies(fact.text) == _denies(known.text)
    if agree and _CHANGED.search(fact.excerpt) and _names(fact.excerpt, known.value):
        yield "REPLACE", "the new fact says what it took the place of"
    elif agree and fact.key == known.key and new and new <= old:
        yield "KEEP", "the known fact says it already"
    elif not agree and _statement(new) and _statement(new) <= old:
        yield _opposed(fact)
    elif agree and fact.key and fact.key == known.key and _fills_one(fact.key):
        yield from _same_slot(fact, known, new, old)
    elif agree and old and old < new and fact.key == known.key:
        yield "MERGE", "the new fact says the known one and more"


def _same_subject(fact: ExtractedFact, known: Candidate) -> bool:
    subject = normalise(fact.subject or "")
    said = normalise(known.text)
    return said.startswith((f"{subject} ", f"{subject}'s "))


def _core(text: str, subject: str | None) -> frozenset[str]:
    """The words that carry a text, without its subject and its denial."""
    words = _WORD.findall(normalise(text).removeprefix(normalise(subject or "")).removeprefix("'s"))
    return frozenset(_stem(_SAME.get(word, word)) for word in words if word not in _EMPTY)


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > _SHORT else word


def _statement(core: frozenset[str]) -> frozenset[str]:
    """A core without times and other numbers: a denial does not repeat those of what it denies."""
    return frozenset(word for word in core if not word[:1].isdigit() and word not in _TIMES)


def _denies(text: str) -> bool:
    words = _WORD.findall(normalise(text))
    return any(word in _DENYING for word in words)


def _opposed(fact: ExtractedFact) -> tuple[Action, str]:
    if "no longer" in fact.text or "stopped" in fact.text or "ended" in marks(fact.excerpt):
        return "REPLACE", "it was so and has ended"
    if not _denies(fact.text) and "corrected" not in marks(fact.excerpt):
        return "REPLACE", "it is so now"
    return "CONTRADICT", "the known fact is denied"


def _fills_one(key: str) -> bool:
    return key in _ONE_VALUE or key.startswith("favourite_")


def _same_slot(
    fact: ExtractedFact, known: Candidate, new: frozenset[str], old: frozenset[str]
) -> Iterator[tuple[Action, str]]:
    ours, theirs = normalise(fact.value or ""), normalise(known.value or "")
    slot = (fact.key or "").replace("_", " ")
    if old < new:
        yield "MERGE", "the new fact says the known one and more"
    elif ours == theirs and new < old:
        yield "KEEP", "the known fact says it already"
    elif ours == theirs:
        yield "ADD", "the same value, said with other details"
    elif fact.key in _FOR_EVER or "I meant" in fact.excerpt:
        yield "CONTRADICT", f"{slot} has one value, which does not change"
    else:
        yield "REPLACE", f"{slot} has one value, and it has changed"


def _names(text: str, value: str | None) -> bool:
    return bool(value) and bool(re.search(rf"\b{re.escape(normalise(value or ''))}\b", normalise(text)))
