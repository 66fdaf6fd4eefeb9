"""A turn that no model could read: its raw facts, and what becomes of them once a later attempt reads it.

The turn has failed, so it may be published again. Its raw facts are believed until then, where its policy says so.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import FactAdded, FactRetracted, MemoryEvent
from mnemolog.schemas.provenance import Decision
from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.resolution.guards import clear_raw


def with_raw_facts(
    envelope: MatchedFacts, events: Sequence[MemoryEvent], raw: Mapping[UUID, StoredFact]
) -> tuple[MemoryEvent, ...]:
    """The events, marked where the turn has failed; else with the end of the `raw` facts in its place."""
    if envelope.end is not None and envelope.end.outcome == "failed":
        reason = f"{envelope.end.reason}: no model could read the turn, so what was said is kept as it is"
        return tuple(
            event.model_copy(update={"decision": event.decision.model_copy(update={"reason": reason})})
            if isinstance(event, FactAdded)
            else event
            for event in events
        )
    cleared = clear_raw(raw.values(), is_immutable=envelope.immutable)
    if not cleared.fact_ids:
        return tuple(events)
    decision = Decision(
        by="rule",
        reason="the turn has been read: its facts take the place of what was kept as it was said",
        before=tuple(raw[fact_id].snapshot for fact_id in cleared.fact_ids),
    )
    end = FactRetracted(
        event_id=ids.event_id(envelope.owner, envelope.id_source, len(events)),
        ordinal=len(events),
        decision=decision,
        targets=cleared.fact_ids,
        ended_at=None,
    )
    return (*events, end)
