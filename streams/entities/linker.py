"""Looks up what the facts of a source may name, and finds their entities."""

from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.entities.events import AnyEntityEvent
from mnemolog.schemas.entities.model import KnownEntity
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities.link_events import entity_events
from mnemolog.streams.entities.name_context import NameContext, lookup_keys
from mnemolog.streams.entities.subject_relations import candidate_ids
from mnemolog.streams.entities.turn_entities import TurnEntities


class EntityReader(Protocol):
    """Reads known entities. Each call is one round trip, and waits while Postgres is unavailable."""

    async def known_entities(
        self,
        scope: Scope,
        *,
        heads: Collection[str],
        keys: Collection[str],
        ends: Collection[str],
        fact_ids: Collection[UUID],
    ) -> Sequence[KnownEntity]:
        """The entities of exactly `scope` with a name of one of these heads or ends, bounded, and those of these facts.

        Those called by a key come first, then those of a head.
        """

    async def decided_pairs(self, pairs: Collection[tuple[UUID, UUID]]) -> set[tuple[UUID, UUID]]:
        """Those of these pairs of entities whose merge was proposed before, or that a person has said to be two."""


class EntityLinker:
    """Finds the entities of a source, with what is known when it is decided."""

    def __init__(self, reader: EntityReader) -> None:
        self._reader = reader

    async def find(self, envelope: MatchedFacts, facts: Sequence[ExtractedFact]) -> TurnEntities | None:
        """The entities that `facts` of this source name; None where it has none."""
        if not facts or envelope.scope is None:
            return None
        reader = next((step for step in envelope.steps if step.stage == "extract"), None)
        context = NameContext(
            owner=envelope.owner,
            source_id=envelope.source_id,
            speaker=envelope.speaker,
            user_names=envelope.user_names,
            model=reader.model if reader else None,
            prompt_version=reader.prompt_version if reader else None,
        )
        asked = lookup_keys(facts, context)
        known = await self._reader.known_entities(
            envelope.scope, heads=asked.heads, keys=asked.keys, ends=asked.ends, fact_ids=candidate_ids(envelope)
        )
        found = TurnEntities.of_facts(facts, known, context)
        if found.proposed:
            for pair in await self._reader.decided_pairs(found.proposed):
                del found.proposed[pair]
        return found

    async def events_of_command(
        self, envelope: MatchedFacts, events: Sequence[MemoryEvent]
    ) -> tuple[AnyEntityEvent, ...]:
        """The events about what the new facts of a command name: whom they are about."""
        found = await self.find(envelope, [event.new_fact for event in events if event.new_fact is not None])
        return entity_events(found, events) if found else ()
