"""Entities that facts name: lists of them, and what is known of one: names, facts, profile, summary and history."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import fetch_rows
from mnemolog.projections.errors import (
    AmbiguousIdError,
    UnknownEntityError,
    check_id_text,
    check_limit,
    check_zones,
    scope_in_words,
)
from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.results import Fact, brief_repr, counted
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.projections.queries.trace import shown_reason
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities import (
    ONE_AT_A_TIME,
    AliasKind,
    Role,
    SummaryLanguage,
    name_head,
    name_of_predicate,
)
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTimes:
    """What was known at one time to be true at another; None is now, and `true_at` is `believed_at` unless given."""

    believed_at: datetime | None = None
    true_at: datetime | None = None

    @property
    def parameters(self) -> dict[str, datetime | None]:
        return {"believed_at": self.believed_at, "true_at": self.true_at}

    def had_happened(self, at: datetime) -> bool:
        """Whether what was decided at a time was known."""
        return self.believed_at is None or at <= self.believed_at


NOW: Final = AskedTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRelation:
    """A relation of exactly one scope: the object is the subject's `predicate`.

    It holds (`is_active`) while its `evidence` does; `since` is when the first of it began to be true, `until` when one
    that holds no longer ended. A mirror was stated in the other direction. Contested are several that hold of a
    predicate that has one object at a time. `endings` are facts that say that it is over. `strength`, 0 to 1, is .8
    where a fact says it, .6 in passing, .4 where it is suggested, and a quarter nearer to 1 with each repetition.
    """

    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    subject_id: UUID
    subject: str
    predicate: str
    object_id: UUID
    object: str
    is_active: bool
    is_mirror: bool
    is_contested: bool
    strength: float
    since: datetime | None
    until: datetime | None
    recorded_at: datetime
    evidence: list[UUID]
    endings: list[UUID]

    def __repr__(self) -> str:
        state = "" if self.is_active else ", is_active=False"
        return f"EntityRelation({self.subject!r} {self.predicate} {self.object!r}, strength={self.strength:.2f}{state})"


LISTED_RELATIONS: Final = 1000
"""Relations of a scope that a list or a graph has at most, unless more are asked for: those that were stated last."""


async def relations(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    *,
    subject_ids: Sequence[UUID] | None = None,
    predicate: str | None = None,
    all_versions: bool = False,
    mirrors: bool = False,
    limit: int | None = None,
    as_of: AskedTimes = NOW,
) -> list[EntityRelation]:
    """The relations of a scope that hold, or all, the oldest first; with `mirrors` each in both directions.

    `subject_ids` and `predicate`, a word for one, say which; no more than the `limit` that were stated last are read.
    Entities are those of now, after all merges and splits; what was taken back since is left out. Raises `QueryError`
    for a time without a zone and a limit below 1.
    """
    check_zones(**as_of.parameters)
    check_limit(limit)
    parts = {"relation_ids": "relations_of_scope" if subject_ids is None else "relations_of_entities"}
    query = read_query("relations", "listed_relations", scope=scope.parameters, row="r", parts=parts)
    asked = {
        "single_valued": list(ONE_AT_A_TIME),
        "all_versions": all_versions,
        "mirrors": mirrors,
        "limit": limit,
        "subject_ids": None if subject_ids is None else list(subject_ids),
        "predicate": None if predicate is None else name_of_predicate(predicate),
    }
    return await fetch_rows(conn, EntityRelation, query, {**scope.parameters, **asked, **as_of.parameters})


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySummary:
    """A text that a model wrote from the facts `fact_ids`, or that the offline rules made of them (`model`).

    `version` counts the summaries of the entity, `left_out` the facts for which there was no room, and `changed` the
    facts that are new since: with any the summary is stale. It is no evidence of anything.
    """

    event_id: UUID
    source_id: str
    version: int
    summary: str
    language: SummaryLanguage
    model: str
    prompt_version: str
    fact_ids: list[UUID]
    left_out: int
    input_tokens: int
    output_tokens: int
    written_at: datetime
    changed: int

    @property
    def is_stale(self) -> bool:
        return self.changed > 0

    def __repr__(self) -> str:
        return brief_repr(self, "summary", "version", "changed", "model")


async def summary_of(conn: AsyncConnection[TupleRow], entity_id: UUID) -> EntitySummary | None:
    """The summary of an entity; None where none was written, or none is valid any more."""
    found = await fetch_rows(conn, EntitySummary, queries("summaries")["summary_of_entity"], {"entity_id": entity_id})
    return found[0] if found else None


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


MIN_ID: Final = 4
"""Characters of an id that are taken for one."""
_ID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
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
        return self.entity.name

    def __repr__(self) -> str:
        facts = [f"  {one.role}: {one.fact.text} ({one.fact.fact_id})" for one in self.facts]
        return "\n".join([repr(self.entity), f"{counted(len(facts), 'fact')}:", *facts])


def profile_of(facts: Sequence[EntityFact]) -> EntityProfile:
    """The profile that facts make, in the order in which they were learned.

    The value of an end holds no longer, and one that is disputed may not.
    """
    about = {one.fact.fact_id for one in facts if one.role == "subject"}
    named = {one.fact.fact_id: one.fact for one in reversed(facts) if one.role != "mention"}.values()
    ranked = sorted(named, key=lambda fact: (fact.fact_id in about, fact.importance, fact.recorded_at), reverse=True)
    ranked = ranked[:_MAX_TEXTS]
    values: dict[str, str] = {}
    for fact in ranked:
        is_no_value = fact.action_hint == "retract" or fact.disputed
        if fact.fact_id in about and fact.key and fact.value is not None and not is_no_value:
            values.setdefault(fact.key, fact.value)
    return EntityProfile(values=values, texts=list(dict.fromkeys(fact.text for fact in ranked)))


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

    In a scope without any, the persons who have it as their first name.
    """
    check_id_text(name=given)
    ends = [given + str(UUID(int=one))[len(given) :] for one in (0, 2**128 - 1)]
    is_id = len(given) >= MIN_ID and all(map(_ID.fullmatch, ends))
    first, last = map(UUID, ends) if is_id else (None, None)
    asked = {"first_id": first, "last_id": last, "name": given, "key": key, "head": name_head(key)}
    query = read_query("entities", "entities_called", scope=scope.parameters, row="e", parts=ENTITY_PARTS)
    return await fetch_rows(conn, Entity, query, {**scope.parameters, **asked})


def of_one_name(given: str, found: Sequence[Entity]) -> Entity:
    """The only one that was found. Raises `UnknownEntityError`, and `AmbiguousIdError` for several."""
    if not found:
        raise UnknownEntityError(given)
    if len(found) == 1:
        return found[0]
    is_name = not all(str(one.entity_id).startswith(given) for one in found)
    if len({one.scope_ids for one in found}) == 1:
        shown = [", also ".join((one.name, *one.aliases[:1])) for one in found]
    else:
        shown = [f"{scope_in_words(one.scope)}: {one.name}" for one in found]
    candidates = [(str(one.entity_id), words) for one, words in zip(found, shown, strict=True)]
    raise AmbiguousIdError("entity", given, candidates, is_name=is_name)


async def details(
    conn: AsyncConnection[TupleRow], one: Entity, *, all_versions: bool = False, as_of: AskedTimes = NOW
) -> EntityDetails:
    """All that is known of an entity, or was known at one time to be true at another.

    Then the facts are those that `facts_as_of` has, names, timeline and history end at `believed_at`, and there is no
    summary.
    """
    scope = ScopeFilter.of_scope(one.scope)
    now = datetime.now(UTC)
    named = {"entity_id": one.entity_id}
    wanted = {**named, "all_versions": all_versions or as_of != NOW}
    rows = await fetch_rows(conn, dict, read_query("entities", "facts_of_entity"), wanted)
    facts = [EntityFact(role=row.pop("role"), fact=Fact(**row)) for row in rows]
    if as_of == NOW:
        holding = [
            each
            for each in facts
            if each.fact.status == "active"
            and not each.fact.begins_later
            and all(end is None or end > now for end in (each.fact.true_to, each.fact.valid_until))
        ]
    else:
        believed_at = as_of.believed_at or now
        of_scope = await facts_as_of(conn, scope, believed_at=believed_at, true_at=as_of.true_at or believed_at)
        then = {fact.fact_id: fact for fact in of_scope}
        holding = facts = [replace(each, fact=then[each.fact.fact_id]) for each in facts if each.fact.fact_id in then]
    names = await fetch_rows(conn, EntityName, queries("entities")["names_of_entity"], named)
    similar = read_query("entities", "twins_of_entity", scope=scope.parameters, row="e", parts=ENTITY_PARTS)
    timeline = read_query("relations", "timeline_of_entity", parts={"relation_ids": "relations_of_entities"})
    moments = await fetch_rows(
        conn, EntityMoment, timeline, named | {"subject_ids": [one.entity_id], "predicate": None, "limit": None}
    )
    history = await fetch_rows(conn, dict, queries("entities")["history_of_entity"], named)
    return EntityDetails(
        entity=one,
        names=[each for each in names if as_of.had_happened(each.recorded_at)],
        facts=facts,
        twins=await fetch_rows(conn, Entity, similar, {**scope.parameters, **named, "twins": one.possible_twins}),
        relations=await relations(
            conn, scope, subject_ids=[one.entity_id], all_versions=all_versions, mirrors=True, as_of=as_of
        ),
        profile=profile_of(holding),
        timeline=[each for each in moments if as_of.had_happened(each.at)],
        history=[
            EntityHistoryEntry(**row | {"reason": shown_reason(row["reason"], row.pop("names"))})
            for row in history
            if as_of.had_happened(row["decided_at"])
        ],
        summary=await summary_of(conn, one.entity_id) if as_of == NOW else None,
    )
