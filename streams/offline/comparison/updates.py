"""How a new fact stands to known ones, judged by slots, denials, ends and the words that two texts share."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mnemolog.schemas.provenance import Verdict
from mnemolog.streams.llm.ports import NumberedConflict, NumberedConflicts
from mnemolog.streams.offline.comparison.pairs import Relation
from mnemolog.streams.offline.comparison.relations import relations

_ORDER: Final[tuple[Verdict, ...]] = (
    "KEEP",
    "CONTRADICT",
    "RETRACT",
    "EXPIRE",
    "REPLACE",
    "MERGE",
    "EXTEND",
    "SIMILAR",
)
"""What a fact says already it cannot change; then what ends something, then what stands beside."""
_ONE_TARGET: Final[frozenset[Verdict]] = frozenset({"KEEP", "MERGE", "EXTEND", "SIMILAR"})
_ENDS: Final[frozenset[Verdict]] = frozenset({"MERGE", "REPLACE", "CONTRADICT", "RETRACT", "EXPIRE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is to be done about one new fact, and why, in a few words."""

    new: int
    action: Verdict
    known: tuple[int, ...] = ()
    text: str | None = None
    search_text: str | None = None
    reason: str
    ended_at: datetime | None = None


def judge(conflicts: NumberedConflicts) -> tuple[Judgement, ...]:
    """One judgement for each conflict. A known fact that one of them ends, the first that would, serves no other."""
    found = [(conflict, _found(conflict, conflicts.user_names)) for conflict in conflicts.conflicts]
    ended_by: dict[int, int] = {}
    for conflict, relations_to in found:
        judgement = _judge(conflict, relations_to)
        if judgement.action in _ENDS:
            ended_by.update({label: conflict.number for label in judgement.known if label not in ended_by})
    return tuple(
        _judge(conflict, [(label, relation) for label, relation in relations_to if _is_free(label, conflict, ended_by)])
        for conflict, relations_to in found
    )


def _is_free(label: int, conflict: NumberedConflict, ended_by: dict[int, int]) -> bool:
    return ended_by.get(label, conflict.number) == conflict.number


def _found(conflict: NumberedConflict, user_names: tuple[str, ...]) -> list[tuple[int, Relation]]:
    return [
        (label, relation)
        for label, known in conflict.candidates
        for relation in relations(conflict.fact, known, user_names)
    ]


def _judge(conflict: NumberedConflict, found: list[tuple[int, Relation]]) -> Judgement:
    for action in _ORDER:
        chosen = [(label, relation) for label, relation in found if relation.action == action]
        if chosen:
            return _judgement(conflict, action, chosen[:1] if action in _ONE_TARGET else chosen)
    return Judgement(new=conflict.number, action="ADD", reason="says something else than what is known")


def _judgement(conflict: NumberedConflict, action: Verdict, chosen: list[tuple[int, Relation]]) -> Judgement:
    fact, merged = conflict.fact, action == "MERGE"
    return Judgement(
        new=conflict.number,
        action=action,
        known=tuple(label for label, _ in chosen),
        text=fact.text if merged else None,
        search_text=fact.search_text if merged else None,
        reason=chosen[0][1].reason,
        ended_at=fact.valid_until if action == "EXPIRE" else None,
    )
