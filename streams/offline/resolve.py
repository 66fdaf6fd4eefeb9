"""Decides conflicts: only what is certain ends a known fact. In doubt both stay."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mnemolog.schemas.event import OVERWRITE_OF_VERDICT
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import NumberedConflict, NumberedConflicts
from mnemolog.streams.offline.phrases import WORDS
from mnemolog.streams.offline.sentences import plain
from mnemolog.streams.offline.slots import SlotStatement, same_value, slot_statements, written_out
from mnemolog.streams.text.differences import differences, subjects_compatible
from mnemolog.streams.text.word_lists import SENTENCE_STARTERS

_WORD: Final = re.compile(r"[^\W_]+")
_EMPTY: Final = SENTENCE_STARTERS | set("am is are do does did at all any really very so much too just ich bin".split())
_ORDER: Final[tuple[Verdict, ...]] = ("KEEP", *OVERWRITE_OF_VERDICT, "SIMILAR")
_FOR_LIFE: Final = frozenset({"name", "birthday"})


@dataclass(frozen=True, slots=True)
class Finding:
    """What a new fact means for a known one, and why."""

    action: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement(Finding):
    """What becomes of known facts, by their numbers, for the new fact of the number `new`."""

    new: int
    known: tuple[int, ...]


def judge(conflicts: NumberedConflicts) -> Iterator[Judgement]:
    """One judgement for each new fact. What one of them ends serves no other."""
    found = {conflict.number: _findings(conflict) for conflict in conflicts.conflicts}
    taken: dict[int, int] = {}
    for number, findings in found.items():
        for label, finding in findings.items():
            if finding.action in OVERWRITE_OF_VERDICT:
                taken.setdefault(label, number)
    for number, findings in found.items():
        free = {label: one for label, one in findings.items() if taken.get(label, number) == number}
        action = next((one for one in _ORDER if any(one == finding.action for finding in free.values())), None)
        if action is None:
            yield Judgement("ADD", "says something else", new=number, known=())
            continue
        labels = tuple(label for label, finding in free.items() if finding.action == action)
        yield Judgement(action, free[labels[0]].reason, new=number, known=labels)


def _findings(conflict: NumberedConflict) -> dict[int, Finding]:
    fact = conflict.fact
    statements = slot_statements(fact.excerpt, conflict.valid_from)
    if fact.key:
        statements = tuple(one for one in statements if same_value(one.value, fact.value))
    of_subject = [
        (label, known) for label, known in conflict.candidates if subjects_compatible(fact.subject, known.subject)
    ]
    found = {label: _of_slot(statements, fact, known) or _of_words(fact, known) for label, known in of_subject}
    return {label: finding for label, finding in found.items() if finding}


def _of_slot(statements: tuple[SlotStatement, ...], fact: ExtractedFact, known: Candidate) -> Finding | None:
    for statement in statements:
        if known.key is None or known.key not in statement.keys:
            continue
        is_same = same_value(statement.value, known.value)
        match statement.act:
            case "corrects" if same_value(statement.old, known.value):
                return Finding("CONTRADICT", "the new statement says that this was wrong")
            case "denies" if is_same:
                return Finding("CONTRADICT", "the new statement says that this never was so")
            case "ends" if is_same:
                return Finding("RETRACT", "the new statement says that this has ended")
            case "moves":
                return Finding("SIMILAR" if is_same else "REPLACE", "the new statement may be about a new home")
            case "states" | "changes" if fact.key == known.key:
                return _of_value(statement, fact, known, is_same=is_same)
    return None


def _of_value(statement: SlotStatement, fact: ExtractedFact, known: Candidate, *, is_same: bool) -> Finding | None:
    """Two values of a key. Without a word of change a home may be a part of the known one: then a guard holds it."""
    if is_same:
        return Finding("KEEP", "the same value is known")
    if not is_single_valued(known.key) and not known.single_valued:
        return None
    is_other = statement.old is not None and not same_value(statement.old, known.value)
    if statement.act == "changes" and not is_other and known.key not in _FOR_LIFE:
        return Finding("REPLACE", f"the new statement says that the {known.key} has changed")
    if fact.certainty == "strong":
        return Finding("REPLACE", f"the new statement has another {known.key}")
    return Finding("SIMILAR", "nothing says that this has changed")


def _of_words(fact: ExtractedFact, known: Candidate) -> Finding | None:
    """Two sentences that fill no slot. The same words denied end a sentence; a denial of some of them does not."""
    if fact.key or known.key:
        return None
    said, before = written_out(plain(fact.excerpt)), written_out(plain(known.excerpt))
    new, old = _content(said), _content(before)
    denied = bool(WORDS["negation"].search(said)) != bool(WORDS["negation"].search(before))
    certain = fact.certainty == "explicit" and not WORDS["temporary"].search(said)
    if new and new == old and certain:
        if denied:
            return Finding("RETRACT" if WORDS["ended"].search(said) else "REPLACE", "the same words, denied")
        if not differences(said, before):
            return Finding("KEEP", "the same words")
    shared = sum(any(one.startswith(other) or other.startswith(one) for other in old) for one in new)
    if denied and shared:
        return Finding("SIMILAR", "the new statement may end this: both are kept")
    return Finding("SIMILAR", "is about the same") if shared > 1 else None


def _content(said: str) -> frozenset[str]:
    words = _WORD.findall(WORDS["negation"].sub(" ", said.casefold()))
    return frozenset(word for word in words if len(word) > 1 and word not in _EMPTY)
