"""Looks up what the facts of a source may name, and finds their entities."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.command import Update
from mnemolog.schemas.entities.events import AnyEntityEvent
from mnemolog.schemas.entities.model import KnownEntity, NameQuery
from mnemolog.schemas.entities.stored import LinkedFact, TwinDetails
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.scope import Scope
from mnemolog.streams.entities.carried.known_names import text_keys
from mnemolog.streams.entities.carried.name_carrier import (
    NameCarrier,
    promoted_names,
    repeated_ids,
    source_ids,
    sources_of,
    subject_link,
)
from mnemolog.streams.entities.doubtful.doubtful_names import (
    SHOWN_FACTS,
    DoubtfulNames,
    as_shown,
    doubtful_names,
    without_decided,
)
from mnemolog.streams.entities.link_events import entity_events
from mnemolog.streams.entities.name_context import (
    NO_KEYS,
    LookupKeys,
    NameContext,
    keys_of_names,
    lookup_keys,
    named_entities,
)
from mnemolog.streams.entities.similar.name_vectors import NameVectors
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
        meant: Sequence[NameQuery] = (),
        near_from: float = 1.0,
    ) -> Sequence[KnownEntity]:
        """The entities of exactly `scope` with a name of one of these heads or ends, bounded, and those of these facts.

        Those called by a key come first, then those of a head. And, with the names that they are `near`, those nearest
        to what is `meant`, from the cosine `near_from` on.
        """

    async def shown(self, entity_ids: Collection[UUID], *, most: int) -> Mapping[UUID, TwinDetails]:
        """What may be shown of each of these entities, with `most` facts that name it, those about it first."""

    async def decided_pairs(self, pairs: Collection[tuple[UUID, UUID]]) -> set[tuple[UUID, UUID]]:
        """Those of these pairs of entities whose merge was proposed before, or that a person has said to be two."""


class LinkedFactReader(Protocol):
    """Reads whom known facts name. Each call is a round trip or two, and waits while Postgres is unavailable."""

    async def linked_facts(self, fact_ids: Collection[UUID]) -> Mapping[UUID, LinkedFact]:
        """These facts, as far as they are known, by their ids."""


class EntityLinker:
    """Finds the entities of a source, with what is known when it is decided.

    From the similarity `name_twin` on names may mean the same; with 0 none do.
    """

    def __init__(self, reader: EntityReader, linked: LinkedFactReader, name_twin: float) -> None:
        self._reader = reader
        self._linked = linked
        self._name_twin = name_twin

    async def find(
        self, envelope: MatchedFacts, facts: Sequence[ExtractedFact], besides: LookupKeys = NO_KEYS
    ) -> TurnEntities | None:
        """The entities that `facts` of this source name, with what else `besides` finds; None where it has none."""
        if envelope.scope is None or not (facts or besides.heads):
            return None
        context = _context(envelope)
        asked = lookup_keys(facts, context) | besides
        if not envelope.infer:
            asked |= text_keys(fact.text for fact in facts)
        vectors = NameVectors.of(envelope.name_vectors, self._name_twin)
        known = await self._reader.known_entities(
            envelope.scope,
            heads=asked.heads,
            keys=asked.keys,
            ends=asked.ends,
            fact_ids=candidate_ids(envelope),
            meant=vectors.queries(entity for fact in facts for entity in named_entities(fact, context)),
            near_from=self._name_twin,
        )
        return TurnEntities.of_facts(facts, known, context, vectors)

    async def names_to_ask(self, found: TurnEntities) -> DoubtfulNames | None:
        """The names of a source of which a model is asked whom they mean; None where there are none."""
        names = doubtful_names(found)
        pairs = {pair for name in names for pair in name.pairs}
        names = without_decided(names, await self._reader.decided_pairs(pairs) if pairs else ())
        if not names:
            return None
        twins = dict.fromkeys(twin.entity_id for name in names for twin in name.twins)
        shown = await self._reader.shown(tuple(twins), most=SHOWN_FACTS)
        known_facts = {entity_id: one.facts for entity_id, one in shown.items()}
        return DoubtfulNames(found=found, names=as_shown(names, shown), known_facts=known_facts)

    async def events_of_turn(
        self, envelope: MatchedFacts, found: TurnEntities | None, events: Sequence[MemoryEvent]
    ) -> tuple[AnyEntityEvent, ...]:
        """The events about what the facts of a turn name, whose statements name what was `found`."""
        if found is None:
            return ()
        sources = await self._sources(events, is_edit=False, repeated=repeated_ids(found, events))
        names = NameCarrier(found, sources, reads_texts=not envelope.infer).names_of(events)
        await self._leave_out_decided(found)
        return entity_events(found, events, names)

    async def events_of_command(
        self, envelope: MatchedFacts, events: Sequence[MemoryEvent]
    ) -> tuple[AnyEntityEvent, ...]:
        """The events about what the new facts of a command name."""
        new = [(event, event.new_fact) for event in events if event.new_fact is not None]
        if not new:
            return ()
        is_edit = isinstance(envelope.order, Update)
        sources = await self._sources(events, is_edit=is_edit)
        unread = [fact for event, fact in new if not subject_link(fact, sources_of(event, sources, is_edit=is_edit))]
        promoted = keys_of_names(promoted_names(events, sources), _context(envelope))
        besides = text_keys(fact.text for _, fact in new) | promoted
        found = await self.find(envelope, unread, besides)
        if found is None:
            return ()
        names = NameCarrier(found, sources, is_edit=is_edit, reads_texts=True).names_of(events)
        await self._leave_out_decided(found)
        return entity_events(found, events, names)

    async def _sources(
        self, events: Sequence[MemoryEvent], *, is_edit: bool, repeated: Collection[UUID] = ()
    ) -> Mapping[UUID, LinkedFact]:
        fact_ids = {fact_id for event in events for fact_id in source_ids(event, is_edit=is_edit)}.union(repeated)
        return await self._linked.linked_facts(fact_ids) if fact_ids else {}

    async def _leave_out_decided(self, found: TurnEntities) -> None:
        if found.names.proposed:
            for pair in await self._reader.decided_pairs(found.names.proposed):
                del found.names.proposed[pair]


def _context(envelope: MatchedFacts) -> NameContext:
    reader = next((step for step in envelope.steps if step.stage == "extract"), None)
    return NameContext(
        owner=envelope.owner,
        source_id=envelope.source_id,
        speaker=envelope.speaker,
        user_names=envelope.user_names,
        model=reader.model if reader else None,
        prompt_version=reader.prompt_version if reader else None,
    )
