"""Moves ends with their enders: what a fact has ended is open again, or ends otherwise, once the fact is disbelieved.

The result is that of a history in which the disbelieved fact was never told, or in which a fact that is found to have
begun earlier, or between two others, was told then. Resolution and commands call it on the events that they have made;
the log has the outcome, so the fold decides nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.entities.model import KnownEntity
from mnemolog.schemas.events import FactAdded, MemoryEvent
from mnemolog.schemas.stored import EndedFact, StoredFact
from mnemolog.streams.ends.commit_ends import events_with_ends
from mnemolog.streams.ends.end_rules import EndLookups, EndRules, heirs, moved_beginnings, weighed_ids


class EndedFactReader(Protocol):
    """Reads what facts have ended. Each call is one round trip, and waits while Postgres is unavailable."""

    async def facts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, StoredFact]:
        """Those of `fact_ids` that exist, whatever their scope and status."""

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> Sequence[KnownEntity]:
        """The entities that these facts are about, each with those of them that are (`subject_of`)."""

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> Sequence[EndedFact]:
        """The facts that were true until one of `fact_ids`, or what was merged into it, ended them."""

    async def values_before(self, fact_id: UUID, since: datetime) -> Sequence[UUID]:
        """The other facts of its key that held at `since` or began since then, and ended before it began."""


async def move_ends(events: Sequence[MemoryEvent], reader: EndedFactReader, rules: EndRules) -> tuple[MemoryEvent, ...]:
    """The events of one commit, with the ends that move; nothing is read where no ender changes."""
    disbelieved = [fact_id for event in events for fact_id in event.disbelieved_ids]
    moved = dict(begun for event in events for begun in moved_beginnings(event, rules))
    newer = (event.ended_by for event in events if isinstance(event, FactAdded) and event.ended_by is not None)
    enders = tuple(dict.fromkeys((*disbelieved, *moved, *newer)))
    if not enders and not any(heirs(event) or event.moved_ends for event in events):
        return tuple(events)
    ended = await reader.ended_facts(enders) if enders else ()
    between = {fact_id: await reader.values_before(fact_id, since) for fact_id, since in moved.items()}
    needed = dict.fromkeys(enders)
    for event in events:
        needed |= dict.fromkeys((*event.named_ids, *weighed_ids(event)))
    for one in ended:
        needed |= dict.fromkeys((one.fact_id, *one.rival_ids, *one.later_ids))
    for others in between.values():
        needed |= dict.fromkeys(others)
    facts, subjects = await reader.facts(tuple(needed)), await reader.subjects_of(tuple(needed))
    return events_with_ends(events, EndLookups(ended=ended, facts=facts, between=between, subjects=subjects), rules)
