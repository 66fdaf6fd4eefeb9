"""Decides conflicts: only what is certain ends a known fact. In doubt both stay."""

import re
from collections.abc import Iterator
from typing import Any, Final

from mnemolog.schemas.event import OVERWRITE_OF_VERDICT
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import NumberedConflict, NumberedConflicts
from mnemolog.streams.offline.phrases import WORDS
from mnemolog.streams.offline.slots import SlotStatement, clauses, same_value, slot_statements, without_fillers
from mnemolog.streams.text.differences import differences, subjects_compatible
from mnemolog.streams.text.word_lists import NUMBERS, SENTENCE_STARTERS

_WORD: Final = re.compile(r"[^\W_]+")
_EMPTY: Final = SENTENCE_STARTERS | set("am is are do does did at all any really very so much too just".split())  # noqa: SIM905 -- words
_ORDER: Final[tuple[Verdict, ...]] = ("KEEP", *OVERWRITE_OF_VERDICT, "SIMILAR")
_FOR_LIFE: Final = frozenset({"name", "birthday"})


_Finding = tuple[Verdict, str]
"""What a new fact means for a known one, and why."""


def judge(conflicts: NumberedConflicts) -> Iterator[dict[str, Any]]:
    """One decision for each new fact, as a reply has it. What one of them ends serves no other."""
    found = {conflict.number: dict(_findings(conflict)) for conflict in conflicts.conflicts}
    taken: dict[int, int] = {}
    for number, findings in found.items():
        for label, finding in findings.items():
            if finding[0] in OVERWRITE_OF_VERDICT:
                taken.setdefault(label, number)
    for number, findings in found.items():
        free = {label: one for label, one in findings.items() if taken.get(label, number) == number}
        best = min(free.values(), key=lambda one: _ORDER.index(one[0]), default=("ADD", "says something else"))
        known = [label for label, one in free.items() if one[0] == best[0]]
        decision = {"new": number, "action": best[0], "known": known, "reason": best[1]}
        yield decision | {"text": None, "search_text": None, "ended_at": None}


def _findings(conflict: NumberedConflict) -> Iterator[tuple[int, _Finding]]:
    fact = conflict.fact
    statements = slot_statements(fact.excerpt, conflict.valid_from)
    if fact.key:
        statements = tuple(one for one in statements if same_value(one.value, fact.value))
    for label, known in conflict.candidates:
        if subjects_compatible(fact.subject, known.subject):
            of_slot = (_of_slot(one, fact, known) for one in statements if known.key in one.keys)
            finding = next(filter(None, of_slot), None) or _of_words(fact, known)
            if finding:
                yield label, finding


def _of_slot(statement: SlotStatement, fact: ExtractedFact, known: Candidate) -> _Finding | None:
    is_same = same_value(statement.value, known.value)
    match statement.act:
        case "corrects" if same_value(statement.old, known.value):
            return ("CONTRADICT", "the new statement says that this was wrong")
        case "denies" if is_same:
            return ("CONTRADICT", "the new statement says that this never was so")
        case "ends" if is_same:
            return ("RETRACT", "the new statement says that this has ended")
        case "moves" if not is_same:
            return ("REPLACE", "the new statement may be about a new home")
        case "states" | "changes" if fact.key == known.key:
            return ("KEEP", "the same value is known") if is_same else _of_value(statement, fact, known)
    return None


def _of_value(statement: SlotStatement, fact: ExtractedFact, known: Candidate) -> _Finding | None:
    """Another value of a key. A home may be a part of the known one unless it has changed: then a guard holds it."""
    is_third = statement.old is not None and not same_value(statement.old, known.value)
    if not is_single_valued(known.key) or known.key in _FOR_LIFE or is_third:
        return None
    if statement.act == "changes" or fact.certainty == "strong":
        return ("REPLACE", f"the new statement has another {(known.key or '').replace('_', ' ')}")
    return None


def _of_words(fact: ExtractedFact, known: Candidate) -> _Finding | None:
    """Two sentences that fill no slot: one that denies the very words of the other ends it; one that may, does not."""
    if fact.key or known.key:
        return None
    before = without_fillers(known.excerpt)
    old, denials = _content(before), len(WORDS["negation"].findall(before))
    certain = fact.certainty == "explicit" and not WORDS["temporary"].search(fact.excerpt)
    for clause in dict.fromkeys((without_fillers(fact.excerpt), *map(without_fillers, clauses(fact.excerpt)))):
        new, is_whole = _content(clause), clause == without_fillers(fact.excerpt)
        is_denied = {denials, len(WORDS["negation"].findall(clause))} == {0, 1}
        if not (new and new == old and certain):
            continue
        if is_denied and (is_whole or WORDS["ended"].search(clause)):
            return ("RETRACT" if WORDS["ended"].search(clause) else "REPLACE", "the same words, denied")
        if is_whole and not differences(clause, before):
            return ("KEEP", "the same words")
    shared = sum(any(one.startswith(other) or other.startswith(one) for other in old) for one in _content(fact.excerpt))
    denied = len(WORDS["negation"].findall(fact.excerpt)) != denials
    if shared <= (not denied):
        return None
    return ("SIMILAR", "may end this: both are kept" if denied else "is about the same")


def _content(said: str) -> frozenset[str]:
    words = _WORD.findall(WORDS["negation"].sub(" ", said.casefold()))
    return frozenset(NUMBERS.get(word, word) for word in words if len(word) > 1 and word not in _EMPTY)
