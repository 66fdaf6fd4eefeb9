"""Finds values that an undo brings back beside others of their key: without a decision on the two, unresolved."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.entities.model import KnownEntity
from mnemolog.schemas.events import DecisionUndone, MemoryEvent
from mnemolog.schemas.facts import FactState, MovedEnd, Reversal
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.ends.end_rules import EndLookups, EndRules, may_be_rivals, values_of


class RivalReader(Protocol):
    """Reads what came after facts that have ended. Each call is one round trip."""

    async def facts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, StoredFact]:
        """Those of `fact_ids` that exist, whatever their scope and status."""

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> Sequence[KnownEntity]:
        """The entities that these facts are about, each with those of them that are (`subject_of`)."""

    async def values_since(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[UUID]]:
        """The active facts of the key of each of these that were not active when it was closed, or since then."""


async def mark_unresolved(
    events: Sequence[MemoryEvent], reader: RivalReader, rules: EndRules
) -> tuple[MemoryEvent, ...]:
    """The events of an undo, with the restored values that stand beside newer ones as unresolved."""
    undone = [event for event in events if isinstance(event, DecisionUndone)]
    restored = {one.fact_id: one for event in undone for one in event.reversals}
    open_again = [fact_id for fact_id, one in restored.items() if _is_open_again(one)]
    newer = await reader.values_since(open_again) if open_again else {}
    if not newer:
        return tuple(events)
    needed = tuple({*newer, *(other for others in newer.values() for other in others)})
    facts = await reader.facts(needed)
    lookups = EndLookups(facts=facts, subjects=await reader.subjects_of(needed))
    values = dict(values_of((), lookups, rules))
    beside = {
        fact_id: tuple(
            other
            for other in others
            if (other not in restored or _is_open_again(restored[other]))
            and _stand_open(facts[fact_id], facts[other])
            and may_be_rivals(values[fact_id], values[other], rules)
        )
        for fact_id, others in newer.items()
    }
    rivals = {fact_id: others for fact_id, others in beside.items() if others}
    return tuple(_marked(event, rivals) if isinstance(event, DecisionUndone) else event for event in events)


def _is_open_again(reversal: Reversal) -> bool:
    before = reversal.before
    return before is not None and before.status == "active" and before.true_to is None


def _stand_open(one: StoredFact, other: StoredFact) -> bool:
    """Whether both hold without an end."""
    return not (one.fact.valid_until or other.fact.valid_until or other.state.true_to)


def _marked(event: DecisionUndone, rivals: Mapping[UUID, tuple[UUID, ...]]) -> DecisionUndone:
    marked = [one for one in event.reversals if one.fact_id in rivals and _is_open_again(one)]
    if not marked:
        return event
    reversals = tuple(_unresolved(one) if one in marked else one for one in event.reversals)
    ends = (
        MovedEnd(fact_id=one.fact_id, ender=one.fact_id, unresolved=True, beside=rivals[one.fact_id]) for one in marked
    )
    return event.model_copy(update={"reversals": reversals, "moved_ends": (*event.moved_ends, *ends)})


def _unresolved(reversal: Reversal) -> Reversal:
    before: FactState | None = reversal.before and reversal.before.model_copy(update={"unresolved": True})
    return reversal.model_copy(update={"before": before})
