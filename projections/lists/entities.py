"""Whom and what facts name: lists of entities, and all that is known of one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, dict_row

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.lists.entity_summary import EntitySummary, summary_of
from mnemolog.projections.lists.entity_timeline import (
    EntityMoment,
    EntityProfile,
    profile_of,
    profile_of_facts,
    timeline_of,
)
from mnemolog.projections.lists.relations import NOW, AskedTimes, EntityRelation, relations
from mnemolog.projections.queries.errors import (
    AmbiguousIdError,
    UnknownEntityError,
    check_id_text,
    check_limit,
    scope_in_words,
)
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.results import Fact, brief_repr, counted
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.shown_reasons import shown_reason
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities.model import AliasKind, Role
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

MIN_ID: Final = 4
"""Characters of an id that are taken for one."""
ENTITY_PARTS: Final = {"entity_columns": "entity_columns", "pending_merges": "pending_merges_of_entity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A person, place or thing that facts of exactly one scope name.

    `aliases` are its other names, `facts` how many current facts name it, `possible_twins` those that may be the same,
    `pending_merges` the proposed merges of it that a person has to confirm or reject.
    """

    entity_id: UUID
    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    name: str
    type: str
    is_user: bool
    aliases: list[str]
    facts: int
    possible_twins: list[UUID]
    source_id: str
    recorded_at: datetime
    pending_merges: list[UUID] = field(default_factory=list)

    @property
    def scope_ids(self) -> tuple[str | None, ...]:
        """The ids of its scope, in the order of `SCOPE_FIELDS`."""
        return tuple(getattr(self, name) for name in SCOPE_FIELDS)

    @property
    def scope(self) -> Scope:
        """Its scope, in which its twins and all that it is related to are, too."""
        return Scope.from_columns(value or "" for value in self.scope_ids)

    def __repr__(self) -> str:
        return brief_repr(self, "name", "type", "aliases", "facts", "entity_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityName:
    """A name of an entity: a name, a tie to somebody ("my wife"), or that it is the user; and since when."""

    name: str
    kind: AliasKind
    recorded_at: datetime
    event_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFact:
    """A fact that names the entity, and in which role."""

    role: Role
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityHistoryEntry:
    """What was decided about an entity or written of it: an event, by whom, in which command, and whether it holds."""

    event_id: UUID
    event: str
    source_id: str
    decided_at: datetime
    decided_by: str
    reason: str
    undone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetails:
    """An entity with its names, the facts that name it, the entities that may be the same, and what became of it.

    Its relations are read from it, also those that were stated of others. The profile is what holds of it now, the
    timeline what happened to it; `history` is what persons decided about it, or about one that was merged into it or
    split from it, and when it was summarised. `summary` is None unless a policy allows summaries and one is valid.
    """

    entity: Entity
    names: list[EntityName]
    facts: list[EntityFact]
    twins: list[Entity]
    relations: list[EntityRelation] = field(default_factory=list)
    profile: EntityProfile = field(default_factory=EntityProfile)
    timeline: list[EntityMoment] = field(default_factory=list)
    history: list[EntityHistoryEntry] = field(default_factory=list)
    summary: EntitySummary | None = None

    @property
    def name(self) -> str:
        """The own name of the entity."""
        return self.entity.name

    def __repr__(self) -> str:
        facts = [f"  {one.role}: {one.fact.text} ({one.fact.fact_id})" for one in self.facts]
        return "\n".join([repr(self.entity), f"{counted(len(facts), 'fact')}:", *facts])


async def entities(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    *,
    kind: str | None = None,
    limit: int | None = None,
    after: UUID | None = None,
) -> list[Entity]:
    """The entities of a scope, in the order in which they were named first. Raises `QueryError` for a limit below 1."""
    check_limit(limit)
    query = read_query("entities", "listed_entities", scope=scope.parameters, row="e", parts=ENTITY_PARTS)
    return await fetch_rows(conn, Entity, query, {**scope.parameters, "type": kind, "limit": limit, "after": after})


async def called(conn: AsyncConnection[TupleRow], scope: ScopeFilter, given: str, key: str) -> list[Entity]:
    """The entities with this name, at most 20, or whose id begins so; `key` is the form in which it is compared.

    Where there are none in a scope, the persons of whom it is the first name.
    """
    check_id_text(name=given)
    is_id = len(given) >= MIN_ID and not given.strip("0123456789abcdef-")
    asked = {"prefix": f"{given}%" if is_id else "", "name": given, "key": key}
    query = read_query("entities", "entities_called", scope=scope.parameters, row="e", parts=ENTITY_PARTS)
    return await fetch_rows(conn, Entity, query, {**scope.parameters, **asked})


def of_one_name(given: str, found: Sequence[Entity]) -> Entity:
    """The only one that was found. Raises `UnknownEntityError`, and `AmbiguousIdError` for several."""
    if not found:
        raise UnknownEntityError(given)
    if len(found) > 1:
        is_name = not all(str(one.entity_id).startswith(given) for one in found)
        raise AmbiguousIdError("entity", given, _candidates(found), is_name=is_name)
    return found[0]


def _candidates(found: Sequence[Entity]) -> list[tuple[str, str]]:
    """The id of each with its name, and whose it is where they are of several scopes."""
    if len({one.scope_ids for one in found}) == 1:
        return [(str(one.entity_id), ", also ".join((one.name, *one.aliases[:1]))) for one in found]
    whose = [scope_in_words(one.scope) for one in found]
    return [(str(one.entity_id), f"{its}: {one.name}") for one, its in zip(found, whose, strict=True)]


async def details(
    conn: AsyncConnection[TupleRow], one: Entity, *, all_versions: bool = False, as_of: AskedTimes = NOW
) -> EntityDetails:
    """All that is known of an entity, or was known at one time to be true at another.

    Then the facts are those that `facts_as_of` has, names, timeline and history end at `believed_at`, and there is no
    summary.
    """
    scope = ScopeFilter.of_scope(one.scope)
    similar = read_query("entities", "twins_of_entity", scope=scope.parameters, row="e", parts=ENTITY_PARTS)
    twins = {**scope.parameters, "entity_id": one.entity_id, "twins": one.possible_twins}
    shown = EntityDetails(
        entity=one,
        names=await fetch_rows(conn, EntityName, queries("entities")["names_of_entity"], {"entity_id": one.entity_id}),
        facts=await _facts_of(conn, one.entity_id, all_versions=all_versions or as_of != NOW),
        twins=await fetch_rows(conn, Entity, similar, twins),
        relations=await relations(
            conn, scope, subject_ids=[one.entity_id], all_versions=all_versions, mirrors=True, as_of=as_of
        ),
        profile=await profile_of(conn, one.entity_id),
        timeline=await timeline_of(conn, one.entity_id),
        history=await _history_of(conn, one.entity_id),
        summary=await summary_of(conn, one.entity_id),
    )
    return shown if as_of == NOW else await _details_then(conn, shown, as_of)


async def _details_then(conn: AsyncConnection[TupleRow], shown: EntityDetails, as_of: AskedTimes) -> EntityDetails:
    """Of what is known of an entity in all versions what was known at a time."""
    then = {fact.fact_id: fact for fact in await _scope_then(conn, shown.entity, as_of)}
    named = [(one.role, then[one.fact.fact_id]) for one in shown.facts if one.fact.fact_id in then]
    return replace(
        shown,
        names=[one for one in shown.names if as_of.had_happened(one.recorded_at)],
        facts=[EntityFact(role=role, fact=fact) for role, fact in named],
        profile=profile_of_facts(named),
        timeline=[one for one in shown.timeline if as_of.had_happened(one.at)],
        history=[one for one in shown.history if as_of.had_happened(one.decided_at)],
        summary=None,
    )


async def _scope_then(conn: AsyncConnection[TupleRow], one: Entity, as_of: AskedTimes) -> list[Fact]:
    """What was known of the whole scope of an entity."""
    believed_at = as_of.believed_at or datetime.now(UTC)
    scope = ScopeFilter.of_scope(one.scope)
    return await facts_as_of(conn, scope, believed_at=believed_at, true_at=as_of.true_at or believed_at)


async def _history_of(conn: AsyncConnection[TupleRow], entity_id: UUID) -> list[EntityHistoryEntry]:
    rows = await fetch_rows(conn, dict, queries("entities")["history_of_entity"], {"entity_id": entity_id})
    return [EntityHistoryEntry(**row | {"reason": shown_reason(row["reason"], row.pop("names"))}) for row in rows]


async def _facts_of(conn: AsyncConnection[TupleRow], entity_id: UUID, *, all_versions: bool) -> list[EntityFact]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        asked = {"entity_id": entity_id, "all_versions": all_versions}
        rows = await (await cursor.execute(read_query("entities", "facts_of_entity"), asked)).fetchall()
    return [EntityFact(role=row.pop("role"), fact=Fact(**row)) for row in rows]
