"""Relations between entities that a fact states, and statements that two names are of one entity."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from mnemolog.schemas.entities import (
    EntityLink,
    Strength,
    UnlinkedName,
    is_same_as,
    read_predicate,
)
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.stored import StoredRelation
from mnemolog.streams.entities.names import SpokenName, name_key, read_name
from mnemolog.streams.entities.resolver import (
    AskedName,
    FoundEntity,
    NameResolver,
    ProposedMerge,
    find_by_answer,
    names_of,
)


def relations_of(
    fact: ExtractedFact, links: Sequence[EntityLink], resolver: NameResolver
) -> tuple[StoredRelation, ...]:
    """The relations between the linked entities of a fact, each once: stated ones before ties in its names."""
    found: dict[tuple[UUID, str, UUID], StoredRelation] = {}
    for relation in (*_stated_relations(fact, links, resolver), *_tie_relations(fact, links, resolver)):
        found.setdefault(relation.key, relation)
    return tuple(found.values())


def _stated_relations(
    fact: ExtractedFact, links: Sequence[EntityLink], resolver: NameResolver
) -> Iterator[StoredRelation]:
    """A retraction ends what it states, and not what it mentions in passing: "my brother Tom left Acme"."""
    linked: dict[str, UUID] = {}
    for link in links:
        for key in name_forms(link.name or ""):
            linked.setdefault(key, link.entity_id)

    def id_of(name: str) -> UUID | None:
        named = linked.get(name_key(name))  # a dog with the user's name
        return named or (resolver.user().entity_id if resolver.context.is_user(name) else None)

    for said in fact.relations:
        if is_same_as(said.predicate):
            continue
        subject_id, object_id = id_of(said.subject), id_of(said.object)
        if subject_id is None or object_id is None or subject_id == object_id:
            continue
        strength = None if fact.action_hint == "retract" and said.strength != "medium" else said.strength
        for relation in _relation(fact, said.predicate, subject_id, object_id, strength):
            yield relation
            if relation.strength == "strong":
                resolver.add_tie(said.predicate, said.subject, subject_id, object_id)


def _tie_relations(
    fact: ExtractedFact, links: Sequence[EntityLink], resolver: NameResolver
) -> Iterator[StoredRelation]:
    """What names say in passing: "my brother Tom" is a brother.

    A retraction says it only of its subject, where it ends something else: "my colleague Ana no longer works at Acme".
    """
    ended = read_predicate(fact.key or "")
    for link in links if resolver.context.in_run is None else ():
        name = read_name(link.name or "")
        if name is None or name.tie is None or (owner_id := resolver.owner_of(name)) is None:
            continue
        told = read_predicate(name.tie)
        is_told = fact.action_hint != "retract" or (
            link.role == "subject" and ended is not None and told is not None and ended.predicate != told.predicate
        )
        if is_told and owner_id != link.entity_id:
            yield from _relation(fact, name.tie, owner_id, link.entity_id, "medium")


def _relation(
    fact: ExtractedFact, word: str, subject_id: UUID, object_id: UUID, strength: Strength | None
) -> Iterator[StoredRelation]:
    """The relation by the predicate of a word, if it has one, with the ends swapped for a word of the inverse ("son").

    An uncertain fact only suggests what it says.
    """
    if (read := read_predicate(word)) is not None:
        one, other = (object_id, subject_id) if read.is_reversed else (subject_id, object_id)
        yield StoredRelation(
            subject_id=one,
            predicate=read.predicate.name,
            object_id=other,
            inverse=read.predicate.inverse,
            strength="weak" if strength and fact.certainty in ("weak", "speculation") else strength,
        )


def name_forms(name: str) -> tuple[str, ...]:
    """The key of a name, and the key of the proper name in it: of "my brother Tom" also "tom"."""
    spoken = read_name(name)
    keys = (name_key(name), spoken.key if spoken else "")
    return tuple(dict.fromkeys(key for key in keys if key))


def apply_same_as(resolver: NameResolver, fact: ExtractedFact, pair: tuple[str, str]) -> None:
    """Apply the statement that two names are of one entity: the entity of the first gets the second as an alias.

    The first is a name of a known entity, else the subject of the fact, else what the fact names first. Where both
    names are of known entities, a merge of the two is proposed. A name that another entity has stays with that entity.
    Where the first name may mean several entities, none gets the alias: the alias is of a new entity, a possible twin
    of each.
    """
    types = {key: entity.type for entity in reversed(fact.entities) for key in name_forms(entity.name)}
    given = (types.get(key, "other") for name in pair for key in name_forms(name))
    kind = next((kind for kind in given if kind != "other"), "other")
    said = (fact.subject, *(one.name for one in fact.entities))
    named = [key for name in said for key in name_forms(name or "")]
    places = {
        name: min((named.index(key) for key in name_forms(name) if key in named), default=len(named)) for name in pair
    }
    resolved: list[tuple[AskedName, FoundEntity]] = []
    for name in sorted(pair, key=places.__getitem__):
        if resolver.context.is_user(name):
            resolved.append((AskedName(SpokenName(text=name), kind), FoundEntity(entity=resolver.user(), step="user")))
        elif (spoken := read_name(name)) is not None:
            resolved.append(resolver.find(spoken, kind))
        else:
            resolver.unlinked.append(UnlinkedName(name=name, reason="no_name"))
    resolved.sort(key=lambda one: not _is_known(*one))
    if len(resolved) < len(pair) or (entity_id := resolver.record(*resolved[0])) is None:
        return
    (first, finding), (other, other_finding) = resolved
    if _is_known(other, other_finding):
        other_id = resolver.record(other, other_finding)
        if other_id is not None and other_id != entity_id:
            into, merged = resolver.registry[entity_id], resolver.registry[other_id]
            resolver.propose(ProposedMerge(merged, into, fact.excerpt, is_stated=True))
    elif holders := resolver.registry.shown_of_name(other.name.key):
        resolver.report_taken(other.name.text, holders)
    elif finding.entity is not None and finding.step != "model" and finding.compared:
        in_doubt = FoundEntity(compared=(finding.entity, *finding.compared))
        chosen = find_by_answer(other.name, in_doubt, resolver.answers, resolver.registry)
        if chosen.entity is None:  # a person may give the name to one of them
            known = tuple(one for one in chosen.compared_ids if one not in resolver.new)
            resolver.unlinked.append(UnlinkedName(name=other.name.text, reason="in_doubt", compared=known))
        resolver.record(other, chosen)
    else:
        resolver.record(other, FoundEntity(entity=resolver.registry[entity_id], step="alias"), first.name.text)


def _is_known(asked: AskedName, finding: FoundEntity) -> bool:
    """Whether a name means a known entity, and readers see that name of it or it was found in another way."""
    entity = finding.entity
    return entity is not None and asked.name.key not in names_of(entity) - names_of(entity.as_shown)
