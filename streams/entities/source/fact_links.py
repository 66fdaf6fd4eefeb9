"""Tells of one fact whom it names, and what it says that these are to each other."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from mnemolog.schemas.entities.model import EntityLink
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.name_context import named_entities
from mnemolog.streams.entities.name_keys import name_key
from mnemolog.streams.entities.source.source_names import SourceNames
from mnemolog.streams.entities.spoken_names import read_name
from mnemolog.streams.entities.stated_relations import (
    StatedRelation,
    entities_by_name,
    stated_relations,
    tie_relation,
)


def links_of(fact: ExtractedFact, names: SourceNames) -> Iterator[EntityLink]:
    """Whom a fact names, with those whose ties it names: of "Tom's wife" Tom too. Who is new is made known."""
    if names.context.is_user(fact.subject):
        yield user_link(names)
    owned = []
    for entity in named_entities(fact, names.context):
        name = read_name(entity.name)
        if name is None or (found := names.entity_of(name, entity.type)) is None:
            names.leave_out(entity.name, is_name=name is not None)
            continue
        entity_id, finding = found
        yield EntityLink(
            entity_id=entity_id,
            role=entity.role,
            name=entity.name,
            step=finding.step,
            compared=finding.compared_ids,
            compared_by=finding.compared_by,
            reason=finding.reason,
        )
        if name.owner is not None and not names.context.is_user(name.owner):
            owned.append(name)
    for name in owned:
        if (owner_id := names.owner_of(name)) is not None:
            yield EntityLink(entity_id=owner_id, role="mention", name=name.owner, step="exact")


def user_link(names: SourceNames) -> EntityLink:
    return EntityLink(entity_id=names.user().entity_id, role="subject", step="user")


def links_once(links: Iterable[EntityLink]) -> tuple[EntityLink, ...]:
    """Each entity once, in the first of its roles."""
    found: dict[UUID, EntityLink] = {}
    for link in links:
        found.setdefault(link.entity_id, link)
    return tuple(found.values())


def relations_of(fact: ExtractedFact, links: Sequence[EntityLink], names: SourceNames) -> tuple[StatedRelation, ...]:
    """Each once: what the fact says before what its names say in passing."""
    named = entities_by_name(links)

    def id_of(name: str) -> UUID | None:
        return names.user().entity_id if names.context.is_user(name) else named.get(name_key(name))

    found: dict[tuple[UUID, str, UUID], StatedRelation] = {}
    for relation in (*stated_relations(fact, id_of), *_tie_relations(fact, links, names)):
        found.setdefault(relation.key, relation)
    return tuple(found.values())


def _tie_relations(fact: ExtractedFact, links: Sequence[EntityLink], names: SourceNames) -> Iterator[StatedRelation]:
    for link in links:
        name = read_name(link.name or "")
        if name is None or name.tie is None or (owner_id := names.owner_of(name)) is None:
            continue
        if (relation := tie_relation(fact, name.tie, owner_id, link.entity_id)) is not None:
            yield relation
