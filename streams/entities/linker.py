"""Looks up the entities that the facts of a source may name, and makes the events that link the facts to them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import Update
from mnemolog.schemas.entities import MAX_UNLINKED, Alias, UnlinkedName
from mnemolog.schemas.entity_events import (
    AnyEntityEvent,
    EntityAliasAdded,
    EntityRegistered,
    FactLinked,
    MergeProposed,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import DecidedBy, Decision, answered_by
from mnemolog.schemas.stored import LinkedFact
from mnemolog.streams.entities.known_names import text_keys
from mnemolog.streams.entities.links import (
    FactLinks,
    FactLinksBuilder,
    TurnEntities,
    repeated_fact_ids,
    source_ids,
    sources_of,
    subject_link,
)
from mnemolog.streams.entities.names import read_name
from mnemolog.streams.entities.questions import SHOWN_FACTS, DoubtfulNames, as_shown, doubtful_names, without_decided
from mnemolog.streams.entities.resolver import (
    NO_KEYS,
    LookupKeys,
    NameContext,
    NameVectors,
    ProposedMerge,
    keys_of_names,
    lookup_keys,
    named_entities,
)

if TYPE_CHECKING:
    from mnemolog.projections.stores.entities import EntityStore
    from mnemolog.projections.stores.facts import FactStore


@dataclass(frozen=True, slots=True)
class EntityLinker:
    """Finds the entities of a source by what is known when it is decided.

    Names with a cosine of at least `name_twin` may mean the same; 0 switches this off.
    """

    entities: "EntityStore"
    facts: "FactStore"
    name_twin: float

    async def find(
        self, envelope: MatchedFacts, facts: Sequence[ExtractedFact], besides: LookupKeys = NO_KEYS
    ) -> TurnEntities | None:
        """The entities that `facts` of this source name, looked up by their names and the keys `besides`.

        None for a source without scope, and for one without facts and keys.
        """
        if envelope.scope is None or not (facts or besides.heads):
            return None
        context = _context(envelope)
        asked = lookup_keys(facts, context) | besides
        if not envelope.infer:
            asked |= text_keys(fact.text for fact in facts)
        vectors = NameVectors.of(envelope.name_vectors, self.name_twin)
        known = await self.entities.known_entities(
            envelope.scope,
            heads=asked.heads,
            keys=asked.keys,
            ends=asked.ends,
            fact_ids=dict.fromkeys(known.fact_id for matched in envelope.facts for known in matched.candidates),
            meant=vectors.queries(entity for fact in facts for entity in named_entities(fact, context)),
            near_from=self.name_twin,
        )
        return TurnEntities.of_facts(facts, known, context, vectors)

    async def find_promoted(self, turn: MatchedFacts) -> TurnEntities | None:
        """The entities of the promoted facts of a turn, by all names of the entities in their originals."""
        origins = [one.original.promoted_from.fact_id for one in turn.facts if one.original is not None]
        originals = await self.facts.linked_facts(origins)
        entities = (entity for original in originals.values() for entity in original.entities.values())
        names = keys_of_names((alias.text for entity in entities for alias in entity.aliases), _context(turn))
        facts = [(one.fact, originals.get(fact_id)) for one, fact_id in zip(turn.facts, origins, strict=True)]
        unread = [fact for fact, original in facts if not (original and subject_link(fact, [original]))]
        found = await self.find(turn, unread, text_keys(fact.text for fact, _ in facts) | names)
        if found is not None:
            for fact, original in facts:
                if original is not None:
                    found.add_promoted(fact, original)
        return found

    async def names_to_ask(self, found: TurnEntities) -> DoubtfulNames | None:
        """The names of a source that a model is asked about; None where no name is in doubt."""
        names = doubtful_names(found)
        pairs = {pair for name in names for pair in name.pairs}
        names = without_decided(names, await self.entities.decided_pairs(pairs) if pairs else ())
        if not names:
            return None
        twins = dict.fromkeys(twin.entity_id for name in names for twin in name.twins)
        shown = await self.entities.shown(tuple(twins), most=SHOWN_FACTS)
        known_facts = {entity_id: one.facts for entity_id, one in shown.items()}
        return DoubtfulNames(found=found, names=as_shown(names, shown), known_facts=known_facts)

    async def events_of_turn(
        self, envelope: MatchedFacts, found: TurnEntities | None, events: Sequence[MemoryEvent]
    ) -> tuple[AnyEntityEvent, ...]:
        """The entity events of a turn, whose names mean the `found` entities."""
        if found is None:
            return ()
        sources = await self._sources(events, is_edit=False, repeated=repeated_fact_ids(found, events))
        links = FactLinksBuilder(found, sources, reads_texts=not envelope.infer).build(events)
        await self._drop_decided_merges(found)
        return entity_events(found, events, links)

    async def events_of_command(
        self, envelope: MatchedFacts, events: Sequence[MemoryEvent], found: TurnEntities | None = None
    ) -> tuple[AnyEntityEvent, ...]:
        """The entity events of a command, for the new facts that it makes; `found` are those of a promotion."""
        new = [(event, event.new_fact) for event in events if event.new_fact is not None]
        if not new:
            return ()
        is_edit = isinstance(envelope.order, Update)
        sources = await self._sources(events, is_edit=is_edit)
        if found is None:
            unread = [one for event, one in new if not subject_link(one, sources_of(event, sources, is_edit=is_edit))]
            found = await self.find(envelope, unread, text_keys(fact.text for _, fact in new))
        if found is None:
            return ()
        links = FactLinksBuilder(found, sources, reads_texts=True, is_edit=is_edit).build(events)
        await self._drop_decided_merges(found)
        return entity_events(found, events, links)

    async def _sources(
        self, events: Sequence[MemoryEvent], *, is_edit: bool, repeated: Collection[UUID] = ()
    ) -> Mapping[UUID, LinkedFact]:
        """The known facts that new facts are made of, and the repeated ones."""
        fact_ids = {fact_id for event in events for fact_id in source_ids(event, is_edit=is_edit)}.union(repeated)
        return await self.facts.linked_facts(fact_ids) if fact_ids else {}

    async def _drop_decided_merges(self, found: TurnEntities) -> None:
        """A merge that was proposed before, or that a person has rejected, is not proposed again."""
        if found.resolver.proposed:
            for pair in await self.entities.decided_pairs(found.resolver.proposed):
                del found.resolver.proposed[pair]


def _context(envelope: MatchedFacts) -> NameContext:
    reader = next((step for step in envelope.steps if step.stage == "extract"), None)
    return NameContext(
        owner=envelope.owner,
        source_id=envelope.id_source,
        speaker=envelope.speaker,
        user_names=envelope.user_names,
        model=reader.model if reader else None,
        prompt_version=reader.prompt_version if reader else None,
    )


def entity_events(
    found: TurnEntities, events: Sequence[MemoryEvent], facts: FactLinks | None = None
) -> tuple[AnyEntityEvent, ...]:
    """The events about the entities that the facts of `events` name; other entities of the source stay unregistered.

    Without `facts`, the links are those of the statements alone. The ordinals go on after those of `events`.
    """
    facts = facts or FactLinksBuilder(found, {}, reads_texts=False).build(events)
    needed = _entities_of(found, facts)
    context = found.resolver.context
    made: list[AnyEntityEvent] = []

    def add(event_class: Callable[..., AnyEntityEvent], **fields: Any) -> None:
        ordinal = len(events) + len(made)
        event_id = ids.event_id(context.owner, context.source_id, ordinal)
        made.append(event_class(event_id=event_id, ordinal=ordinal, **fields))

    for entity, _ in found.new.values():
        if entity.entity_id in needed:
            fields = entity.model_dump(include={"entity_id", "name", "type", "possible_twins"})
            add(EntityRegistered, **fields, aliases=_as_said(found, entity.aliases))
    for one in found.resolver.added:
        if one.entity_id in needed:
            step, compared = one.finding.step, one.finding.compared_ids
            entity_id = found.registry.bearer(one.entity_id, one.said) or one.entity_id
            (alias,) = _as_said(found, [one.alias])
            add(EntityAliasAdded, entity_id=entity_id, alias=alias, step=step, compared=compared)
    for fact_id, links in facts.links.items():
        if links:
            said = [one.model_copy(update={"entity_id": facts.bearers[fact_id, one.entity_id]}) for one in links]
            add(FactLinked, fact_id=fact_id, links=tuple(said))
    for fact_id, relation in facts.each_relation():
        is_over = relation.ended_at is not None
        subject_id, object_id = (
            facts.bearers.get((fact_id, end), end) for end in (relation.subject_id, relation.object_id)
        )
        add(
            RelationEnded if is_over else RelationStated,
            fact_id=fact_id,
            subject_id=subject_id,
            predicate=relation.predicate.name,
            object_id=object_id,
            inverse=relation.predicate.inverse,
            **({"ended_at": relation.ended_at} if is_over else {"strength": relation.strength}),
        )
    for merge in _merges_to_propose(found, needed):
        decision = _merge_decision(merge, context)
        add(MergeProposed, decision=decision, merged=merge.merged.entity_id, into=merge.into.entity_id)
    return tuple(made)


def _entities_of(found: TurnEntities, facts: FactLinks) -> set[UUID]:
    """The entities in these links and relations, the owners of their new ties, the owners of the owners' ties, ..."""
    complete = {link.entity_id for links in facts.links.values() for link in links}
    complete |= {end for _, relation in facts.each_relation() for end in (relation.subject_id, relation.object_id)}
    aliases: dict[UUID, list[Alias]] = {entity_id: list(entity.aliases) for entity_id, (entity, _) in found.new.items()}
    for one in found.resolver.added:
        aliases.setdefault(one.entity_id, []).append(one.alias)
    waiting = list(complete)
    while waiting:
        for alias in aliases.get(waiting.pop(), ()):
            if (owner_id := _owner_of_tie(alias)) is not None and owner_id not in complete:
                complete.add(owner_id)
                waiting.append(owner_id)
    return complete


def _as_said(found: TurnEntities, aliases: Iterable[Alias]) -> tuple[Alias, ...]:
    """Aliases with each tie to the entity that its words name, whatever that was merged into."""
    said = []
    for alias in aliases:
        owner_id, name = _owner_of_tie(alias), read_name(alias.text)
        bearer = found.registry.bearer(owner_id, name.owner) if owner_id and name else None
        key = alias.key.replace(str(owner_id), str(bearer)) if bearer else alias.key
        said.append(alias.model_copy(update={"key": key}))
    return tuple(said)


def _owner_of_tie(alias: Alias) -> UUID | None:
    """The entity to which an alias is a tie: its id ends the key."""
    return UUID(alias.key.rpartition(" ")[2]) if alias.kind == "tie" else None


def _merges_to_propose(found: TurnEntities, needed: set[UUID]) -> Iterator[ProposedMerge]:
    """The merges of which a fact of the events names an entity, and both entities are registered by now."""
    for merge in found.resolver.proposed.values():
        pair = {merge.into.entity_id, merge.merged.entity_id}
        is_registered = pair <= needed | (pair - found.new.keys())
        if (pair & needed and is_registered) if merge.is_stated else merge.into.entity_id in needed:
            yield merge


def _merge_decision(merge: ProposedMerge, context: NameContext) -> Decision:
    if merge.is_stated:
        reason = f'"{merge.words}" says that {merge.merged.name} is {merge.into.name}'
        by: DecidedBy = "policy" if context.model is None else answered_by(context.model)
        return Decision(by=by, reason=reason, model=context.model, prompt_version=context.prompt_version)
    reason = f'"{merge.words}" was said of {merge.into.name}, and {merge.merged.name} was known without a name'
    return Decision(by="policy", reason=reason)


def unlinked_names(found: TurnEntities | None, events: Sequence[AnyEntityEvent]) -> tuple[UnlinkedName, ...]:
    """The first `MAX_UNLINKED` names of a source that link no fact in these entity events, each with the reason.

    An entity that the source would have added is not registered, so that its id is left out.
    """
    if found is None:
        return ()
    linked = {link.entity_id for event in events if isinstance(event, FactLinked) for link in event.links}
    without_fact = (
        UnlinkedName(
            name=link.name,
            reason="no_new_fact",
            step=link.step,
            entity_id=None if link.entity_id in found.new else link.entity_id,
            compared=tuple(one for one in link.compared if one not in found.new),
        )
        for link in found.links
        if link.name is not None
        and linked.isdisjoint((link.entity_id, found.registry.bearer(link.entity_id, link.name)))
    )
    names = {(one.name, one.reason): one for one in (*found.resolver.unlinked, *without_fact)}
    return tuple(names.values())[:MAX_UNLINKED]
