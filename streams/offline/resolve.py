"""Decides conflicts: only what is certain ends a known fact. In doubt both stay."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from mnemolog.schemas.events import OVERWRITE_OF_VERDICT
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.policy import is_single_valued
from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.entities.names import TIE_TYPES
from mnemolog.streams.llm.ports import NumberedConflict, NumberedConflicts
from mnemolog.streams.offline.extract import own_words
from mnemolog.streams.offline.sentences import PETS, WORDS, plain
from mnemolog.streams.offline.slots import (
    FILLS,
    SlotStatement,
    clauses,
    read_clauses,
    same_value,
    slot_statements,
    without_fillers,
)
from mnemolog.streams.text.assertions import DOUBTFUL, is_denial
from mnemolog.streams.text.differences import differences, relate_subjects, same_terms
from mnemolog.streams.text.times import names_end
from mnemolog.streams.text.tokens import NUMBERS, SENTENCE_STARTERS

_EMPTY: Final = SENTENCE_STARTERS | set("am is are do does did at all any really very so much too just".split())  # noqa: SIM905 -- words
_FORM_WORDS: Final = frozenset("a an the do does at all any".split())  # noqa: SIM905 -- words
_ORDER: Final[tuple[Verdict, ...]] = ("KEEP", *OVERWRITE_OF_VERDICT, "SIMILAR")
_TASTES: Final = ("liked", "disliked")
_FOR_LIFE: Final = frozenset({"name", "birthday"})
_Finding = tuple[Verdict, str]  # what a new fact means for a known one, and why
_Fact = ExtractedFact | Candidate
_ENDED: Final[_Finding] = ("RETRACT", "the later statement says that this has ended")
_BY_NAME: Final[_Finding] = ("RETRACT", "the later statement says that this has ended, by a name alone or none")
"""Ends a known fact only where it is the only one that may be meant: a cat and a dog may both be called Max."""


def judge(conflicts: NumberedConflicts) -> Iterator[dict[str, Any]]:
    """One decision for each new fact, as a reply has it. A known fact that one decision ends is ended by no other."""
    taken: set[int] = set()
    for conflict in conflicts.conflicts:
        free = {label: one for label, one in _findings(conflict, conflicts) if label not in taken}
        best = min(free.values(), key=lambda one: _ORDER.index(one[0]), default=("ADD", "says something else"))
        known = [label for label, one in free.items() if one[0] == best[0]]
        if best[0] in OVERWRITE_OF_VERDICT:
            names = [(one.value or "").partition(" ")[0] for _, one in conflict.candidates if one.key in TIE_TYPES]
            is_by_name = any(free[label] == _BY_NAME for label in known)
            if is_by_name and (len(known) > 1 or len(names) > len(set(names))):
                best = ("SIMILAR", "may end one of these: all are kept")
            else:
                taken.update(known)
        decision = {"new": conflict.number, "action": best[0], "known": known, "reason": best[1]}
        yield decision | {"text": None, "search_text": None, "ended_at": None}


def _findings(conflict: NumberedConflict, turn: NumberedConflicts) -> Iterator[tuple[int, _Finding]]:
    """What the new fact means for each known fact.

    A known fact that is true from a later time is judged as if it were said later: a fact that it ends is history.
    """
    fact, said_at = conflict.fact, conflict.valid_from if conflict.reconsidered_fact_id else turn.said_at
    for label, known in conflict.candidates:
        if relate_subjects(fact, known, turn.user_names) != "same":
            continue
        is_said_later = known.event_time is None and (known.said_at is None or known.said_at <= said_at)
        tells_change = fact.action_hint != "new" and is_said_later  # though it may have come about earlier
        if conflict.valid_from < known.true_from and not tells_change:
            finding = _finding(known, fact, known.true_from)
            if finding and finding[0] in OVERWRITE_OF_VERDICT:
                finding = ("REPLACE", finding[1])
        else:
            finding = _finding(fact, known, said_at)
        is_related = fact.certainty in DOUBTFUL or not is_denial(fact, known)
        if finding is None or (finding[0] == "SIMILAR" and not is_related):
            continue
        if finding[0] == "KEEP" and not same_terms(fact, known):
            changes = known.valid_until is not None or names_end(fact.excerpt, conflict.valid_from)
            finding = (
                ("REPLACE", "it has another end now") if changes else ("SIMILAR", "the same for a while: both are kept")
            )
        yield label, finding


def _finding(new: _Fact, old: _Fact, at: datetime) -> _Finding | None:
    for one in slot_statements(new.excerpt, at) or _of_answer(new):
        is_its_own = new.key is None or same_value(one.value, new.value)
        if is_its_own and (finding := _of_slot(one, new, old) if old.key in one.keys else _of_plain(one, new, old, at)):
            return finding
    if new.key is None:
        return None if old.key else _of_words(own_words(new.text, new.excerpt), own_words(old.text, old.excerpt))
    ends = (one for one in slot_statements(old.excerpt, at) if one.act == "ends" and new.key in {*one.keys} - {*PETS})
    is_again = old.key is None and any(same_value(one.value, new.value) for one in ends)
    return ("REPLACE", "what had ended is so again") if is_again else None


def _of_answer(fact: _Fact) -> tuple[SlotStatement, ...]:
    """What a fact states whose excerpt says nothing alone: it answered a question."""
    if fact.key is None or fact.value is None:
        return ()
    return (SlotStatement(act="states", keys=frozenset({fact.key}), value=fact.value, old=None),)


def _of_slot(statement: SlotStatement, new: _Fact, old: _Fact) -> _Finding | None:
    is_same = same_value(statement.value, old.value)
    match statement.act:
        case "corrects" | "may_correct" if same_value(statement.old, old.value):
            return ("CONTRADICT", "the later statement says that this was wrong")
        case "denies" if is_same:
            return ("CONTRADICT", "the later statement says that this never was so")
        case "ends":
            is_first_name = old.key in TIE_TYPES and f"{old.value} ".startswith(f"{statement.value} ")
            is_named = len(statement.keys) == 1 and is_same
            return _ENDED if is_named else _BY_NAME if is_same or is_first_name or not statement.value else None
        case "moves" if not is_same and same_value(statement.old or old.value, old.value):
            return ("REPLACE", "the later statement may be about a new home")
        case "states" | "suggests" | "changes" if new.key == old.key:
            return ("KEEP", "the same value is known") if is_same else _of_value(statement, old)
    return None


def _of_plain(statement: SlotStatement, new: _Fact, old: _Fact, at: datetime) -> _Finding | None:
    """What becomes of a sentence that says little more than a value which a later statement surely ends or replaces."""
    is_sure = statement.act in ("ends", "changes") or (statement.act == "moves" and statement.old is not None)
    parts = read_clauses(old.excerpt, at) if is_sure and old.key is None else ()
    for known in parts[0][1] if len(parts) == 1 else ():
        if known.act in FILLS and known.is_plain and known.keys <= statement.keys:
            (key,) = known.keys
            return _of_slot(statement, new, old.model_copy(update={"key": key, "value": known.value}))
    return None


def _of_value(statement: SlotStatement, old: _Fact) -> _Finding | None:
    """Another value of a key. A home may be a part of the known one unless it has changed: then a guard holds it."""
    is_part = statement.value in (old.value or "") or (old.value or "") in statement.value
    is_third = statement.old is not None and not same_value(statement.old, old.value)
    if old.key in _FOR_LIFE and is_single_valued(old.key) and not is_part:
        return ("CONTRADICT", f"nobody has two {old.key}s")
    if not is_single_valued(old.key) or is_third or is_part:
        return None
    if statement.act == "changes" or old.key == "home_city":
        return ("REPLACE", f"the later statement has another {(old.key or '').replace('_', ' ')}")
    return None


def _of_words(said: str, known: str) -> _Finding | None:
    """Two sentences that fill no slot: only a sentence that denies the very words of the other ends it."""
    whole, before = without_fillers(said), without_fillers(known)
    if (sold := _thing("sold", whole)) and sold == _thing("owned", before):
        return ("RETRACT", "it was sold")
    old, denials = _content(before), len(WORDS["negation"].findall(before))
    is_doubtful = any(WORDS[kind].search(said) for kind in ("temporary", "doubt"))
    is_telling = len(old) > 1 or any(WORDS[kind].search(plain(said)) for kind in ("subject", "ended"))
    is_certain = is_telling and not is_doubtful
    for clause in dict.fromkeys((whole, *map(without_fillers, clauses(said)))) if is_certain else ():
        ended = WORDS["ended"].search(clause)
        is_denied = {denials, len(WORDS["negation"].findall(clause))} == {0, 1} and (clause == whole or ended)
        if {*_content(clause)} == {*old} and old:
            if is_denied and {*_content(clause, _FORM_WORDS)} == {*_content(before, _FORM_WORDS)}:
                return ("RETRACT" if ended else "REPLACE", "the same words, denied")
            if clause == whole and not differences(clause, before) and _content(clause) == old:
                return ("KEEP", "the same words")
    liked, disliked = (frozenset(filter(None, (_thing(kind, whole), _thing(kind, before)))) for kind in _TASTES)
    if liked and liked == disliked:
        return ("REPLACE", "a liking and a dislike of the same")
    shared = sum(any(one.startswith(other) or other.startswith(one) for other in old) for one in {*_content(whole)})
    is_denied = len(WORDS["negation"].findall(whole)) != denials
    reason = "may end this: both are kept" if is_denied else "is about the same"
    return None if shared <= (not is_denied) else ("SIMILAR", reason)


def _thing(kind: str, said: str) -> str | None:
    """What a sentence says to be owned, or sold, and says nothing else."""
    match = WORDS[kind].fullmatch(said)
    return next((found.casefold() for found in match.groups() if found), None) if match else None


def _content(said: str, empty: frozenset[str] = _EMPTY) -> tuple[str, ...]:
    words = re.findall(r"[^\W_]+", WORDS["negation"].sub(" ", said.casefold()))
    return tuple(NUMBERS.get(word, word) for word in words if (len(word) > 1 or word.isdigit()) and word not in empty)
