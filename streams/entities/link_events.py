"""Makes the events that link the new facts of a source to what they name, and that register it where it is new."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.entities.changes import MergeProposed
from mnemolog.schemas.entities.events import (
    AnyEntityEvent,
    EntityAliasAdded,
    EntityRegistered,
    FactLinked,
    RelationEnded,
    RelationStated,
)
from mnemolog.schemas.entities.model import Alias
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.provenance import DecidedBy, Decision
from mnemolog.streams.entities.carried.name_carrier import FactNames, NameCarrier
from mnemolog.streams.entities.found_entities import ProposedMerge
from mnemolog.streams.entities.name_context import NameContext
from mnemolog.streams.entities.stated_relations import StatedRelation
from mnemolog.streams.entities.turn_entities import TurnEntities


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
