"""Whom the new facts of a source name, and what they say of relations, by what they are made of.

That is what an extraction named; what their sources carry over (the text that one replaces, the parts of a merged fact,
the fact that was promoted), as far as the new text still says the names; and known names in a text that none has read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from mnemolog.schemas.entities.model import MAX_LINKS, Alias, EntityLink, KnownEntity, ResolutionStep, Role
from mnemolog.schemas.entities.relations import MAX_RELATIONS, Predicate
from mnemolog.schemas.entities.stored import LinkedFact, StoredRelation
from mnemolog.schemas.events import (
    FactContradicted,
    FactCorrected,
    FactPending,
    FactReplaced,
    FactsMerged,
    MemoryEvent,
)
from mnemolog.schemas.facts import NewFact
from mnemolog.streams.entities.carried.found_again import FoundAgain
from mnemolog.streams.entities.carried.known_names import known_names_in, said_aliases
from mnemolog.streams.entities.source.fact_links import links_once
from mnemolog.streams.entities.stated_relations import StatedRelation
from mnemolog.streams.entities.turn_entities import TurnEntities

MAX_CARRIED: Final = 2 * MAX_RELATIONS
"""How many relations a fact may have from its sources and its own statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactNames:
    """The links and relations of facts, by their ids; a relation that is over has the time of its end."""

    links: Mapping[UUID, tuple[EntityLink, ...]] = field(default_factory=dict)
    relations: Mapping[UUID, tuple[StatedRelation, ...]] = field(default_factory=dict)


class _CarriedLink(NamedTuple):
    """A link of a source: the entity, its role there, and the names of it that the new text says."""

    source: LinkedFact
    entity: KnownEntity
    role: Role
    said: Sequence[Alias]


def source_ids(event: MemoryEvent, *, is_edit: bool) -> tuple[UUID, ...]:
    """The known facts that the new fact of an event is made of; an edit gives what it replaces another text."""
    promoted = () if event.promoted_from is None else (event.promoted_from.fact_id,)
    match event:
        case FactsMerged(targets=parts) | FactPending(action="merge", targets=parts):
            return (*promoted, *parts)
        case FactCorrected(target=old):
            return (old,)
        case FactReplaced(targets=old_texts) | FactContradicted(targets=old_texts) if is_edit:
            return old_texts
        case _:
            return promoted if event.new_fact else ()


def sources_of(event: MemoryEvent, known: Mapping[UUID, LinkedFact], *, is_edit: bool) -> list[LinkedFact]:
    """Those of its sources that are known."""
    return [known[fact_id] for fact_id in source_ids(event, is_edit=is_edit) if fact_id in known]


def promoted_names(events: Iterable[MemoryEvent], known: Mapping[UUID, LinkedFact]) -> Iterator[str]:
    """The names of the entities of another scope that promoted facts name."""
    origins = (event.promoted_from.fact_id for event in events if event.promoted_from is not None)
    named = (entity for fact_id in origins if fact_id in known for entity in known[fact_id].entities.values())
    return (alias.text for entity in named for alias in entity.aliases)


def repeated_ids(found: TurnEntities, events: Iterable[MemoryEvent]) -> set[UUID]:
    """The known facts that statements repeat which name anybody but the user."""
    repetitions = ((event.told_id, event) for event in events if event.new_fact is None)
    told = ((fact_id, found.said_by(event)) for fact_id, event in repetitions if fact_id is not None)
    return {fact_id for fact_id, said in told if any(link.step != "user" for link in said)}


def subject_link(fact: NewFact, sources: Iterable[LinkedFact]) -> tuple[LinkedFact, UUID] | None:
    """The source of the same subject, and the entity that this is."""
    links = ((source, *link) for source in sources if source.subject == fact.subject for link in source.links)
    return next(((source, entity_id) for source, entity_id, role in links if role == "subject"), None)


class NameCarrier:
    """Composes the names of new facts. With `reads_texts` known names are looked for in their texts."""

    def __init__(
        self, found: TurnEntities, sources: Mapping[UUID, LinkedFact], *, is_edit: bool = False, reads_texts: bool
    ) -> None:
        self._found = found
        self._sources = sources
        self._is_edit = is_edit
        self._reads_texts = reads_texts
        self._again = FoundAgain(found.names)

    def names_of(self, events: Iterable[MemoryEvent]) -> FactNames:
        """Of each new fact of these events; what is new among them is registered in the entities of the source."""
        links: dict[UUID, tuple[EntityLink, ...]] = {}
        relations: dict[UUID, tuple[StatedRelation, ...]] = {}
        for event in events:
            if event.told_id is None:
                continue
            named, stated = self._new_names(event, event.new_fact) if event.new_fact else self._repeated_names(event)
            told = links_once((*links.get(event.told_id, ()), *named))[:MAX_LINKS]
            links[event.told_id] = tuple(self._found.names.typed(link) for link in told)
            known = {one.key: one for one in relations.get(event.told_id, ())}
            known |= {one.key: one for one in stated if one.key not in known}
            relations[event.told_id] = tuple(known.values())[:MAX_CARRIED]
        return FactNames(links=links, relations=relations)

    def _new_names(self, event: MemoryEvent, fact: NewFact) -> tuple[Sequence[EntityLink], Sequence[StatedRelation]]:
        links = links_once(self._links(event, fact))
        ended_at = event.end_time or fact.true_from
        return links, [_dated(one, ended_at) for one in self._relations(event, fact, links)]

    def _repeated_names(self, event: MemoryEvent) -> tuple[Sequence[EntityLink], Sequence[StatedRelation]]:
        """What a repetition says beyond the known fact, which is about the same: else it says nothing for certain.

        A name that may be one of those whom the fact names says nothing new.
        """
        known = None if event.told_id is None else self._sources.get(event.told_id)
        said = [link for link in self._found.said_by(event) if link.step != "user"]
        if known is None or _is_about_another(said, known):
            return (), ()
        roles = dict(reversed(known.links))
        doubtful = {
            link.entity_id for link in said if link.step == "new" and not roles.keys().isdisjoint(link.compared)
        }
        relations = [
            _dated(one, known.true_from)
            for one in self._found.relations_of(event)
            if not (_has_stated(known, one) or doubtful & {one.subject_id, one.object_id})
        ]
        told_of = {entity_id for one in relations for entity_id in (one.subject_id, one.object_id)}
        told_of |= {one.entity_id for one in self._found.names.added} | self._found.names.types.keys()
        links = (link for link in said if link.entity_id in told_of or link.entity_id not in roles.keys() | doubtful)
        return [link.model_copy(update={"role": roles.get(link.entity_id, link.role)}) for link in links], relations

    def _links(self, event: MemoryEvent, fact: NewFact) -> list[EntityLink]:
        sources = self._sources_of(event)
        links = list(self._own_links(event, fact, sources))
        has_subject = any(link.role == "subject" for link in links)
        for carried in self._carried(event, fact, sources):
            role: Role = "mention" if has_subject and carried.role == "subject" else carried.role
            links += self._link(event, fact, carried._replace(role=role))
        if self._reads_texts:
            links += self._known_names(fact, [link.name for link in links if link.name])
        return links

    def _own_links(self, event: MemoryEvent, fact: NewFact, sources: Sequence[LinkedFact]) -> Iterable[EntityLink]:
        """What was named when it was said; of a text that none has read whom it is about, as its source was."""
        about = None if self._found.statements_of(event) else subject_link(fact, sources)
        if about is None:
            return self._found.links_of(event)
        source, entity_id = about
        entity = source.entities[entity_id]
        return self._link(event, fact, _CarriedLink(source, entity, "subject", said_aliases(entity, fact.text)))

    def _carried(self, event: MemoryEvent, fact: NewFact, sources: Sequence[LinkedFact]) -> Sequence[_CarriedLink]:
        """The links of the sources that the text still says. A promoted text is the same, and names the same.

        A merged text that says none of them is about all of them.
        """
        linked = [(source, source.entities[entity_id], role) for source in sources for entity_id, role in source.links]
        links = [_CarriedLink(*link, said_aliases(link[1], fact.text)) for link in linked if not _is_user(*link[1:])]
        if event.promoted_from is not None and not _is_merge(event):
            return links
        said = [link for link in links if link.said]
        return said or (links if _is_merge(event) else ())

    def _link(self, event: MemoryEvent, fact: NewFact, link: _CarriedLink) -> Iterator[EntityLink]:
        entity_id = self._id_here(event, fact, link.source, link.entity)
        if entity_id is None:
            return
        if link.entity.keys("user"):
            yield EntityLink(entity_id=entity_id, role=link.role, step="user")
            return
        name = link.said[0].text if link.said else link.entity.name
        new = self._found.new.get(entity_id)
        compared = new[1].compared_ids if new else ()
        step = "new" if new else _step(link)
        yield EntityLink(entity_id=entity_id, role=link.role, name=name, step=step, compared=compared)

    def _known_names(self, fact: NewFact, taken: Sequence[str]) -> Iterator[EntityLink]:
        for name, found in known_names_in(fact.text, self._found.registry, taken=taken):
            if found.entity is not None:
                yield EntityLink(
                    entity_id=found.entity.entity_id,
                    role="mention",
                    name=name,
                    step=found.step,
                    compared=found.compared_ids,
                )

    def _relations(self, event: MemoryEvent, fact: NewFact, links: Sequence[EntityLink]) -> Iterator[StatedRelation]:
        """A new text that denies what the old one said carries over no more that it is so.

        Two of another scope may be one here, and are nothing to each other.
        """
        yield from self._found.relations_of(event)
        named = {link.entity_id for link in links}
        is_denial = fact.action_hint == "retract" and event.promoted_from is None
        for source in self._sources_of(event):
            for relation in source.relations:
                if relation.ended_at is None and is_denial:
                    continue
                ends = [source.entities[entity_id] for entity_id in (relation.subject_id, relation.object_id)]
                here = [self._id_here(event, fact, source, end) for end in ends]
                is_named = all(one in named or end.keys("user") for one, end in zip(here, ends, strict=True))
                if is_named and len(set(here)) == len(here):
                    yield _stated(relation, *filter(None, here))

    def _sources_of(self, event: MemoryEvent) -> list[LinkedFact]:
        return sources_of(event, self._sources, is_edit=self._is_edit)

    def _id_here(self, event: MemoryEvent, fact: NewFact, source: LinkedFact, entity: KnownEntity) -> UUID | None:
        """The entity of a source in the scope of the new fact: only a promoted one is of another scope."""
        if event.promoted_from is None or source.fact_id != event.promoted_from.fact_id:
            return entity.entity_id
        return self._again.find(entity, f"{fact.text} {source.subject or ''}", source.entities)


def _is_about_another(said: Iterable[EntityLink], known: LinkedFact) -> bool:
    subject = next((entity_id for entity_id, role in known.links if role == "subject"), None)
    return subject is not None and any(link.role == "subject" and link.entity_id != subject for link in said)


def _has_stated(known: LinkedFact, relation: StatedRelation) -> bool:
    return any((one.subject_id, one.predicate, one.object_id) == relation.key for one in known.relations)


def _dated(relation: StatedRelation, ended_at: datetime) -> StatedRelation:
    if not relation.is_over:
        return relation
    return replace(relation, ended_at=relation.ended_at or ended_at)


def _is_merge(event: MemoryEvent) -> bool:
    return isinstance(event, FactsMerged) or (isinstance(event, FactPending) and event.action == "merge")


def _is_user(entity: KnownEntity, role: Role) -> bool:
    """Whether it is the user as the subject: of whom a fact is, its own subject tells."""
    return role == "subject" and bool(entity.keys("user"))


def _step(link: _CarriedLink) -> ResolutionStep:
    if not link.said or link.said[0] == link.entity.aliases[0]:
        return "exact"
    return "tie" if link.said[0].kind == "tie" else "alias"


def _stated(relation: StoredRelation, subject_id: UUID, object_id: UUID) -> StatedRelation:
    return StatedRelation(
        subject_id=subject_id,
        predicate=Predicate(name=relation.predicate, inverse=relation.inverse),
        object_id=object_id,
        strength=relation.strength or "strong",
        is_over=relation.ended_at is not None,
        ended_at=relation.ended_at,
    )
