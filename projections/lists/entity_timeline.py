"""What holds of one entity, and what happened to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities.model import Role

_MAX_TEXTS: Final = 50

MomentKind = Literal["named", "learned", "ended", "withdrawn", "related", "relation_ended"]
"""A new name; a fact that names it was learned, ended, or is no longer believed; a relation was stated, or ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityProfile:
    """What holds of an entity, now or at the times that were asked for, made of the facts that hold alone.

    `values` are the newest values of keys of facts that are about it; `texts` are those facts and the facts that say
    something of it, what matters most first, at most 50.
    """

    values: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMoment:
    """What happened to an entity at the time when it was decided, and the fact behind it."""

    at: datetime
    change: MomentKind
    text: str
    fact_id: UUID | None


async def profile_of(conn: AsyncConnection[TupleRow], entity_id: UUID) -> EntityProfile:
    """The profile of an entity."""
    rows = await (await conn.execute(queries("relations")["profile_of_entity"], {"entity_id": entity_id})).fetchall()
    return _profile(rows)


def profile_of_facts(facts: Iterable[tuple[Role, Fact]]) -> EntityProfile:
    """The profile that facts make, each with the role of the entity in it."""
    roles: dict[Role, list[Fact]] = {"subject": [], "object": []}
    for role, fact in facts:
        if role in roles:
            roles[role].append(fact)
    about = {fact.fact_id for fact in roles["subject"]}
    roles["object"] = [fact for fact in roles["object"] if fact.fact_id not in about]
    ranked = [(role, fact) for role, its in roles.items() for fact in sorted(its, key=_weight, reverse=True)]
    return _profile([(role, fact.key, fact.value, fact.text) for role, fact in ranked[:_MAX_TEXTS]])


def _weight(fact: Fact) -> tuple[float, datetime]:
    return fact.importance, fact.recorded_at


def _profile(rows: Iterable[TupleRow]) -> EntityProfile:
    rows = list(rows)
    values: dict[str, str] = {}
    for role, key, value, _ in rows:
        if role == "subject" and key is not None and value is not None:
            values.setdefault(key, value)
    return EntityProfile(values=values, texts=list(dict.fromkeys(text for *_, text in rows)))


async def timeline_of(conn: AsyncConnection[TupleRow], entity_id: UUID) -> list[EntityMoment]:
    """What happened to an entity, the oldest first."""
    return await fetch_rows(conn, EntityMoment, queries("relations")["timeline_of_entity"], {"entity_id": entity_id})
