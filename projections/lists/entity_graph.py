"""The graph of entities and their relations: who is near somebody, and who is somebody's wife."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.lists.entities import Entity
from mnemolog.projections.lists.mermaid import mermaid
from mnemolog.projections.lists.relations import EntityRelation, relations
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.sql import queries

MAX_HOPS: Final = 2
_COLUMNS: Final = {"entity_columns": "entity_columns"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An entity within some hops of another one; `path` are the relations that lead to it."""

    entity: Entity
    hops: int
    path: list[EntityRelation]

    def __repr__(self) -> str:
        return f"Neighbour({self.entity.name!r}, hops={self.hops}, path={self.path!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityGraph:
    """The entities of a scope that are related, and the user, with the relations as they were stated."""

    entities: list[Entity]
    relations: list[EntityRelation]

    @property
    def mermaid(self) -> str:
        """A Mermaid flowchart. No name can be anything but a label in it; what holds no longer is dotted."""
        return mermaid(
            {one.entity_id: one.name for one in self.entities},
            ((one.subject_id, one.predicate.replace("_", " "), one.object_id, one.is_active) for one in self.relations),
        )

    def __repr__(self) -> str:
        return f"EntityGraph(entities={len(self.entities)}, relations={len(self.relations)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTie:
    """What somebody is asked to be to others: a word for a predicate, and of "my brother Tom" the key of the name.

    `tie` is the word if it is a tie that names can have.
    """

    predicate: str
    tie: str | None = None
    name_key: str = ""


async def graph(conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, all_versions: bool = False) -> EntityGraph:
    """The graph of a scope, with relations that hold or all that were stated."""
    found = await relations(conn, scope, all_versions=all_versions)
    ids = [entity_id for one in found for entity_id in (one.subject_id, one.object_id)]
    return EntityGraph(entities=await _entities(conn, scope, ids, with_user=True), relations=found)


async def user_entities(conn: AsyncConnection[TupleRow], scope: ScopeFilter) -> list[Entity]:
    """The user: one entity in each scope in which facts name them."""
    return await _entities(conn, scope, (), with_user=True)


async def neighbours(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, entity_id: UUID, *, hops: int = 1
) -> list[Neighbour]:
    """The entities within `hops` of one over relations that hold, the nearest first, each once.

    Raises `QueryError` for other hops than 1 or 2.
    """
    if not 1 <= hops <= MAX_HOPS:
        raise QueryError(f"hops is {hops}: give 1 or {MAX_HOPS}")
    known = await relations(conn, scope, mirrors=True)
    paths: dict[UUID, list[EntityRelation]] = {entity_id: []}
    for _ in range(hops):
        paths |= _one_hop_further(paths, known)
    found = {one.entity_id: one for one in await _entities(conn, scope, list(paths))}
    return [
        Neighbour(entity=found[reached], hops=len(path), path=path)
        for reached, path in paths.items()
        if path and reached in found
    ]


def _one_hop_further(
    paths: Mapping[UUID, list[EntityRelation]], known: Sequence[EntityRelation]
) -> dict[UUID, list[EntityRelation]]:
    """The shortest paths to what none leads to yet; among equal ones those of relations that were learned first."""
    new: dict[UUID, list[EntityRelation]] = {}
    for end, path in paths.items():
        for relation in known:
            if relation.subject_id == end and relation.object_id not in paths:
                new.setdefault(relation.object_id, [*path, relation])
    return new


async def related(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, owner_ids: Sequence[UUID], asked: AskedTie
) -> list[Entity]:
    """Who or what holds to be to the owners what is asked, those who were named first first.

    Of several with one predicate (a dog and a cat are both owned) those are meant who are called so, if any are, else
    those who are called nothing else of that kind.
    """
    found = await relations(conn, scope, subject_ids=owner_ids, predicate=asked.predicate, mirrors=True)
    entities = await _entities(conn, scope, [one.object_id for one in found])
    listed = _ids([one.entity_id for one in entities])
    rows = await (await conn.execute(queries("relations")["aliases_of"], listed)).fetchall()
    keys: dict[tuple[UUID, str], set[str]] = {}
    for entity_id, kind, key in rows:
        keys.setdefault((entity_id, kind), set()).add(key)
    if asked.name_key:
        entities = [one for one in entities if asked.name_key in _names(keys.get((one.entity_id, "name"), set()))]
    if asked.tie is None:
        return entities
    ties = {one.entity_id: _ties(keys.get((one.entity_id, "tie"), set()), owner_ids) for one in entities}
    called = [one for one in entities if asked.tie in ties[one.entity_id]]
    return called or [one for one in entities if not ties[one.entity_id]]


def _ties(keys: set[str], owner_ids: Sequence[UUID]) -> set[str]:
    """What an entity is called of these owners."""
    ends = tuple(f" of {owner_id}" for owner_id in owner_ids)
    return {key.partition(" ")[0] for key in keys if key.endswith(ends)}


def _names(keys: set[str]) -> set[str]:
    return {form for key in keys for form in (key.partition(" (")[0], key.partition(" ")[0])}


async def _entities(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, ids: Sequence[UUID], *, with_user: bool = False
) -> list[Entity]:
    query = read_query("entities", "entities_of_ids", scope=scope.parameters, row="e", parts=_COLUMNS)
    return await fetch_rows(conn, Entity, query, {**scope.parameters, **_ids(ids), "with_user": with_user})


def _ids(ids: Sequence[UUID]) -> dict[str, list[UUID]]:
    return {"entity_ids": list(ids)}
