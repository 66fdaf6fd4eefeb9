"""Looks up the entities that the facts of a source may name, and makes the events that link the facts to them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any, Protocol
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import Update
from mnemolog.schemas.entities import MAX_UNLINKED, Alias, EntityLink, KnownEntity, NameQuery, UnlinkedName
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
from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import DecidedBy, Decision
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import MAX_CANDIDATES_OF_KEY, EntityFactsQuery, LinkedFact, TwinDetails
from mnemolog.streams.entities.links import (
    FactNames,
    NameCarrier,
    TurnEntities,
    promoted_names,
    repeated_ids,
    source_ids,
    sources_of,
    subject_link,
    text_keys,
)
from mnemolog.streams.entities.questions import SHOWN_FACTS, DoubtfulNames, as_shown, doubtful_names, without_decided
from mnemolog.streams.entities.relations import StatedRelation
from mnemolog.streams.entities.resolver import (
    NO_KEYS,
    LookupKeys,
    NameContext,
    NameVectors,
    ProposedMerge,
    keys_of_names,
    lookup_keys,
    named_entities,
    names_of,
)
from mnemolog.streams.text.differences import EntityRelation, compare_subjects


class EntityFactReader(Protocol):
    """Reads facts of entities in one round trip; it waits while Postgres is unavailable."""

    async def facts_of_entities(
        self, scope: Scope, requests: Sequence[EntityFactsQuery], *, at: datetime
    ) -> Sequence[tuple[Candidate, ...]]:
        """Per request the newest active facts of its key in exactly `scope` that are about its entity, bounded."""


class EntityCandidates:
    """Adds known facts of a key that are about the entity of a new fact, by another name.

    `match` knows names alone, and looks at a few facts of a key. This looks in one round trip; in none where all facts
    of the keys are candidates, or entities have one name.
    """

    def __init__(self, finder: EntityFactReader) -> None:
        self._finder = finder

    async def add(self, envelope: MatchedFacts, named: TurnEntities | None, rules: EffectivePolicy) -> MatchedFacts:
        """The facts of a turn with these candidates too, told to be about the same entity."""
        if named is None or envelope.scope is None:
            return envelope
        asked = dict(_requests(envelope, named, rules))
        if not asked:
            return envelope
        found = await self._finder.facts_of_entities(envelope.scope, list(asked.values()), at=envelope.occurred_at)
        facts = list(envelope.facts)
        for place, more in zip(asked, found, strict=True):
            known = facts[place].candidates
            facts[place] = facts[place].model_copy(update={"candidates": (*known, *more)})
        return envelope.model_copy(update={"facts": tuple(facts)})


def _requests(
    envelope: MatchedFacts, named: TurnEntities, rules: EffectivePolicy
) -> Iterator[tuple[int, EntityFactsQuery]]:
    """What is asked, by the places of the facts."""
    for place, matched in enumerate(envelope.facts):
        fact, subject_id = matched.fact, named.subject_of(matched.fact)
        if fact.key is None or not (fact.single_valued or rules.is_single_valued(fact.key)):
            continue
        if subject_id is None or subject_id in named.new or _of_key(matched) < MAX_CANDIDATES_OF_KEY:
            continue
        subject = named.registry[subject_id]
        if len(subject.aliases) > 1 and not subject.keys("user"):
            known = tuple(one.fact_id for one in matched.candidates)
            yield place, EntityFactsQuery(entity_id=subject_id, key=fact.key, vector=matched.vector, known=known)


def _of_key(matched: MatchedFact) -> int:
    return sum(known.key == matched.fact.key for known in matched.candidates)


def with_subject_relations(
    envelope: MatchedFacts, found: TurnEntities, others: Sequence[KnownEntity] = ()
) -> MatchedFacts:
    """The facts of a turn with what the entities of their candidates say of whom these are about.

    `others` are those of candidates that were looked up after the names of the turn.
    """
    subjects = subjects_by_fact((*others, *found.registry))
    if not subjects:
        return envelope
    facts = []
    for matched in envelope.facts:
        subject_id = found.subject_of(matched.fact)
        subject = found.registry[subject_id] if subject_id else None
        candidates = (
            known.model_copy(
                update={
                    "subject_relation": entity_relation(subject, subjects.get(known.fact_id)) or known.subject_relation
                }
            )
            for known in matched.candidates
        )
        facts.append(matched.model_copy(update={"candidates": tuple(candidates)}))
    return envelope.model_copy(update={"facts": tuple(facts)})


def subjects_by_fact(subjects: Iterable[KnownEntity]) -> dict[UUID, KnownEntity]:
    """The entities by the facts that are about them."""
    return {fact_id: entity for entity in subjects for fact_id in entity.subject_of}


def entity_relation(one: KnownEntity | None, other: KnownEntity | None) -> EntityRelation | None:
    """Whether facts with these subjects are about one entity.

    Unknown where a fact has no entity, and for a user without a name, who may be anybody who is named.
    """
    if one is None or other is None:
        return None
    if one.entity_id == other.entity_id:
        return "same"
    if any(entity.keys("user") and not entity.keys("name") for entity in (one, other)):
        return None
    are_twins = other.entity_id in one.possible_twins or one.entity_id in other.possible_twins
    return "twin" if are_twins or _may_be_one(one, other) else "other"


def candidate_ids(envelope: MatchedFacts) -> Mapping[UUID, None]:
    """The known facts that a turn is compared with, each once."""
    return dict.fromkeys(known.fact_id for matched in envelope.facts for known in matched.candidates)


def _may_be_one(one: KnownEntity, other: KnownEntity) -> bool:
    """Whether one has all words of a name of the other, and nobody told the type of one: "Mira" and "Mira Kovac"."""
    pairs = product(names_of(one), names_of(other)) if "other" in (one.type, other.type) else ()
    return any(compare_subjects(name, known) != "other" for name, known in pairs)


def unlinked_names(found: TurnEntities | None, events: Sequence[AnyEntityEvent]) -> tuple[UnlinkedName, ...]:
    """The names that were left out, and those that no fact is linked by; the first 50. `events` are about entities."""
    if found is None:
        return ()
    linked = {link.entity_id for event in events if isinstance(event, FactLinked) for link in event.links}
    without_fact = (_without_fact(found, link) for link in found.links if link.entity_id not in linked)
    names = {(one.name, one.reason): one for one in (*found.names.unlinked, *without_fact) if one is not None}
    return tuple(names.values())[:MAX_UNLINKED]


def _without_fact(found: TurnEntities, link: EntityLink) -> UnlinkedName | None:
    """What is told of such a name. One that was new is not registered, so that nothing has its id."""
    if link.name is None:
        return None
    return UnlinkedName(
        name=link.name,
        reason="no_new_fact",
        step=link.step,
        entity_id=None if link.entity_id in found.new else link.entity_id,
        compared=tuple(one for one in link.compared if one not in found.new),
    )


def entity_events(
    found: TurnEntities, events: Sequence[MemoryEvent], names: FactNames | None = None
) -> tuple[AnyEntityEvent, ...]:
    """The events about what the facts of `events` name; what only other statements name stays unknown.

    Without `names` they name what was said.
    """
    names = names or NameCarrier(found, {}, reads_texts=False).names_of(events)
    related = [(fact_id, relation) for fact_id, stated in names.relations.items() for relation in stated]
    named = {entity_id for _, one in related for entity_id in (one.subject_id, one.object_id)}
    needed = _with_owners(found, named | {link.entity_id for links in names.links.values() for link in links})
    made: list[AnyEntityEvent] = []

    def place(later: int = 0) -> dict[str, Any]:
        ordinal = len(events) + len(made) + later
        return {"event_id": _event_id(found.names.context, ordinal), "ordinal": ordinal}

    for entity, _ in found.new.values():
        if entity.entity_id in needed:
            fields = entity.model_dump(include={"entity_id", "name", "type", "possible_twins"})
            made.append(EntityRegistered(**place(), **fields, aliases=entity.aliases))
    for one in found.names.added:
        if one.entity_id in needed:
            step, compared = one.finding.step, one.finding.compared_ids
            made.append(
                EntityAliasAdded(**place(), entity_id=one.entity_id, alias=one.alias, step=step, compared=compared)
            )
    for fact_id, links in names.links.items():
        if links:
            made.append(FactLinked(**place(), fact_id=fact_id, links=links))
    for fact_id, relation in related:
        made.append(_relation_event(place(), fact_id, relation))
    proposed = (merge for merge in found.names.proposed.values() if _is_to_propose(found, merge, needed))
    return *made, *(_proposal_event(place(later), merge, found.names.context) for later, merge in enumerate(proposed))


def _is_to_propose(found: TurnEntities, merge: ProposedMerge, needed: set[UUID]) -> bool:
    """Whether a new fact names one that is known under another name; what no new fact names stays unknown."""
    if not merge.is_told:
        return merge.into.entity_id in needed
    ids = {merge.into.entity_id, merge.merged.entity_id}
    return bool(ids & needed) and ids - found.new.keys() | needed >= ids


def _proposal_event(place: Mapping[str, Any], merge: ProposedMerge, context: NameContext) -> MergeProposed:
    if merge.is_told:
        reason = f'"{merge.name}" says that {merge.merged.name} is {merge.into.name}'
        by: DecidedBy = "policy" if context.model is None else "model"
        decision = Decision(by=by, reason=reason, model=context.model, prompt_version=context.prompt_version)
    else:
        reason = f'"{merge.name}" was said of {merge.into.name}, and {merge.merged.name} was known without a name'
        decision = Decision(by="policy", reason=reason)
    return MergeProposed(**place, decision=decision, merged=merge.merged.entity_id, into=merge.into.entity_id)


def _relation_event(
    place: Mapping[str, Any], fact_id: UUID, relation: StatedRelation
) -> RelationStated | RelationEnded:
    fields = {
        **place,
        "fact_id": fact_id,
        "subject_id": relation.subject_id,
        "predicate": relation.predicate.name,
        "object_id": relation.object_id,
        "inverse": relation.predicate.inverse,
    }
    if relation.ended_at is not None:
        return RelationEnded(**fields, ended_at=relation.ended_at)
    return RelationStated(**fields, strength=relation.strength)


def _with_owners(found: TurnEntities, needed: set[UUID]) -> set[UUID]:
    """With those whose ties the entities have: their keys name them."""
    waiting, complete = list(needed), set(needed)
    while waiting:
        for owner_id in _owners(_new_aliases(found, waiting.pop())):
            if owner_id not in complete:
                complete.add(owner_id)
                waiting.append(owner_id)
    return complete


def _new_aliases(found: TurnEntities, entity_id: UUID) -> Iterable[Alias]:
    if entity_id in found.new:
        yield from found.new[entity_id][0].aliases
    yield from (one.alias for one in found.names.added if one.entity_id == entity_id)


def _owners(aliases: Iterable[Alias]) -> list[UUID]:
    return [UUID(alias.key.rpartition(" ")[2]) for alias in aliases if alias.kind == "tie"]


def _event_id(context: NameContext, ordinal: int) -> UUID:
    return ids.event_id(context.owner, context.source_id, ordinal)


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
