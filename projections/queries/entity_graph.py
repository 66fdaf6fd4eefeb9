"""Relations between entities.

The relations of a scope, neighbours, ties such as somebody's wife, and the graph as a Mermaid flowchart.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import fetch_rows
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.entities import (
    ENTITY_PARTS,
    LISTED_RELATIONS,
    NOW,
    AskedTimes,
    Entity,
    EntityRelation,
    relations,
)
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities import tie_head

MAX_LABEL: Final = 60
"""Characters of a name that are shown; a longer one is cut."""
_PLAIN: Final = frozenset(" ,'")  # ".", "-" and "_" make lists and emphasis: a label is read as Markdown


def mermaid(names: Mapping[UUID, str], edges: Iterable[tuple[UUID, str, UUID, bool]]) -> str:
    """A flowchart of entities and edges; an edge that does not hold is dotted. One to what has no name is left out."""
    places = {entity_id: f"e{place}" for place, entity_id in enumerate(names)}
    lines = ["flowchart LR", *(f'    {place}["{label(names[one])}"]' for one, place in places.items())]
    lines += [
        f'    {places[subject_id]} {"-->" if holds else "-.->"}|"{label(predicate)}"| {places[object_id]}'
        for subject_id, predicate, object_id, holds in edges
        if subject_id in places and object_id in places
    ]
    return "\n".join(lines) + "\n"


def label(text: str) -> str:
    """A text that stands for itself in a quoted label: signs are codes, controls are spaces, and it has an end."""
    # Controls, and signs that turn the direction of text round, are no part of a name.
    printed = (" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in text)
    shown = " ".join("".join(printed).split())
    cut = shown if len(shown) <= MAX_LABEL else f"{shown[: MAX_LABEL - 1]}…"
    return "".join(sign if sign.isalnum() or sign in _PLAIN else f"#{ord(sign)};" for sign in cut) or "#63;"


MAX_HOPS: Final = 2
MAX_USERS: Final = 100
"""Scopes whose user "my" may mean in one question: each has its relations read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An entity within some hops of another one; `path` are the relations that lead to it."""

    entity: Entity
    hops: int
    path: list[EntityRelation]

    @property
    def name(self) -> str:
        return self.entity.name

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


async def graph(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, all_versions: bool = False, as_of: AskedTimes = NOW
) -> EntityGraph:
    """The graph of a scope, with relations that hold or all that were stated: of the last `LISTED_RELATIONS`."""
    found = await relations(conn, scope, all_versions=all_versions, limit=LISTED_RELATIONS, as_of=as_of)
    ids = [entity_id for one in found for entity_id in (one.subject_id, one.object_id)]
    return EntityGraph(entities=await _entities(conn, scope, ids, with_user=True), relations=found)


async def user_entities(conn: AsyncConnection[TupleRow], scope: ScopeFilter) -> list[Entity]:
    """The user: one entity in each scope in which facts name them. Raises `QueryError` for more than 100 scopes."""
    found = await _entities(conn, scope, (), with_user=True, limit=MAX_USERS + 1)
    if len(found) > MAX_USERS:
        raise QueryError(f'"my" is of one of more than {MAX_USERS} scopes with a user: give the ids of the one meant')
    return found


async def neighbours(
    conn: AsyncConnection[TupleRow], entity: Entity, *, hops: int = 1, as_of: AskedTimes = NOW
) -> list[Neighbour]:
    """The entities within `hops` of one over relations that hold, the nearest first, each once.

    Raises `QueryError` for other hops than 1 or 2.
    """
    if not 1 <= hops <= MAX_HOPS:
        raise QueryError(f"hops is {hops}: give 1 or {MAX_HOPS}")
    scope = ScopeFilter.of_scope(entity.scope)
    paths: dict[UUID, list[EntityRelation]] = {entity.entity_id: []}
    ends = [entity.entity_id]
    for _ in range(hops):
        # The shortest paths to what none leads to yet; among equal ones those of relations that were learned first.
        further: dict[UUID, list[EntityRelation]] = {}
        known = await relations(conn, scope, subject_ids=ends, mirrors=True, as_of=as_of)
        for end in ends:
            for relation in known:
                if relation.subject_id == end and relation.object_id not in paths:
                    further.setdefault(relation.object_id, [*paths[end], relation])
        paths |= further
        ends = list(further)
    found = {one.entity_id: one for one in await _entities(conn, scope, list(paths))}
    return [
        Neighbour(entity=found[reached], hops=len(path), path=path)
        for reached, path in paths.items()
        if path and reached in found
    ]


async def related(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    owner_ids: Sequence[UUID],
    asked: AskedTie,
    *,
    as_of: AskedTimes = NOW,
) -> list[Entity]:
    """Who or what holds to be to one of the owners what is asked, those who were named first first.

    A person who gave somebody this tie has said so, too. Of several with one predicate (a dog and a cat are both owned)
    those are meant who are called so, if any are, else those who are called nothing else of that kind.
    """
    found = await relations(conn, scope, subject_ids=owner_ids, predicate=asked.predicate, mirrors=True, as_of=as_of)
    pairs = {(one.subject_id, one.object_id) for one in found}
    if asked.tie is not None:
        owners = {f"{asked.tie} of {owner_id}": owner_id for owner_id in owner_ids}
        query = read_query("relations", "given_ties", scope=scope.parameters, row="alias")
        given = {"head": tie_head(asked.tie), "keys": list(owners), "believed_at": as_of.believed_at}
        rows = await (await conn.execute(query, {**scope.parameters, **given})).fetchall()
        pairs |= {(owners[key], entity_id) for entity_id, key in rows}
    entities = await _entities(conn, scope, [entity_id for _, entity_id in pairs])
    listed = {"entity_ids": [one.entity_id for one in entities]}
    keys: dict[tuple[UUID, str], set[str]] = defaultdict(set)
    for entity_id, kind, key in await (await conn.execute(queries("relations")["aliases_of"], listed)).fetchall():
        keys[entity_id, kind].add(key)
    meant: set[UUID] = set()
    for owner_id in owner_ids:
        # By the key of "Tom Keller (Graz)" without what tells two of one name apart, or its first word.
        its = [
            one.entity_id
            for one in entities
            if (owner_id, one.entity_id) in pairs
            and (
                not asked.name_key
                or any(asked.name_key in (key.split(" (")[0], key.split(" ")[0]) for key in keys[one.entity_id, "name"])
            )
        ]
        ties = {
            one: {key.partition(" ")[0] for key in keys[one, "tie"] if key.endswith(f" of {owner_id}")} for one in its
        }
        called = [one for one in its if asked.tie in ties[one]]
        meant.update(its if asked.tie is None else called or [one for one in its if not ties[one]])
    return [one for one in entities if one.entity_id in meant]


async def _entities(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    ids: Sequence[UUID],
    *,
    with_user: bool = False,
    limit: int | None = None,
) -> list[Entity]:
    query = read_query("entities", "entities_of_ids", scope=scope.parameters, row="e", parts=ENTITY_PARTS)
    asked = {"entity_ids": list(ids), "with_user": with_user, "limit": limit}
    return await fetch_rows(conn, Entity, query, {**scope.parameters, **asked})
