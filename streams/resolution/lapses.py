"""Closes held overwrites of which nothing is left to overwrite: every fact that they challenged has ended."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import FactPending, MemoryEvent, PendingConfirmed, PendingRejected
from mnemolog.schemas.provenance import Decision
from mnemolog.streams.resolution.ports import ChallengeReader

LAPSE_REASON: Final = "everything that it challenged has ended"


class LapseWriter:
    """Adds to the events of a source those that close the held overwrites that lapse by them.

    Nothing lapses by an undo: it also takes back the closing, or is refused while a held overwrite depends on it.
    """

    def __init__(self, challenges: ChallengeReader) -> None:
        self._challenges = challenges

    async def __call__(
        self, envelope: MatchedFacts, events: Sequence[MemoryEvent], now: datetime
    ) -> tuple[MemoryEvent, ...]:
        """The events, and the rejections that follow from them. Looks up only where something ends by `now`."""
        ended = set(_ended_ids(events, now))
        if not ended or envelope.scope is None:
            return tuple(events)
        known = await self._challenges.challenges(envelope.scope, sorted(ended))
        own = {event.fact.fact_id: event.targets for event in events if isinstance(event, FactPending)}
        lapsed = _lapsed({**known, **own}, ended, events)
        return (*events, *_rejections(envelope, lapsed, len(events)))


def _ended_ids(events: Sequence[MemoryEvent], now: datetime) -> Iterable[UUID]:
    """What the events end by `now`; what was merged or corrected goes on in another fact."""
    ended: dict[UUID, None] = {}
    for event in events:
        if event.overwrite != "merge" and (event.end_time is None or event.end_time <= now):
            ended |= dict.fromkeys(event.ended_ids)
        for moved in event.moved_ends:
            if moved.ended_at is None or moved.ended_at > now:
                ended.pop(moved.fact_id, None)
    return ended


def _lapsed(
    challenges: Mapping[UUID, Sequence[UUID]], ended: set[UUID], events: Sequence[MemoryEvent]
) -> Iterator[UUID]:
    """The held overwrites of which each challenged fact is among `ended`, or has lapsed itself."""
    confirmed = {event.target for event in events if isinstance(event, PendingConfirmed)}
    merged = {target for event in events if event.overwrite == "merge" for target in event.ended_ids}
    waiting = {pending: fact_ids for pending, fact_ids in challenges.items() if pending not in confirmed | merged}
    gone = set(ended)
    while lapsed := [pending for pending, fact_ids in waiting.items() if gone.issuperset(fact_ids)]:
        for pending in lapsed:
            del waiting[pending]
            if pending not in gone:
                yield pending
        gone.update(lapsed)


def _rejections(envelope: MatchedFacts, lapsed: Iterator[UUID], ordinal: int) -> Iterator[PendingRejected]:
    for place, pending in enumerate(lapsed, ordinal):
        event_id = ids.event_id(envelope.owner, envelope.source_id, place)
        decision = Decision(by="policy", reason=LAPSE_REASON)
        yield PendingRejected(event_id=event_id, ordinal=place, decision=decision, target=pending)
