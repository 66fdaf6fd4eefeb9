"""What applications ask the tables: facts, profiles, and how a turn ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_bounded_rows, fetch_rows, with_fact_columns
from mnemolog.projections.queries.errors import (
    AmbiguousTurnError,
    QueryError,
    UnknownTurnError,
    check_unicode,
    check_zones,
)
from mnemolog.projections.queries.results import Fact, Profile, WriteResult
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.trace import fact_ids_of_commit
from mnemolog.projections.queries.write_result import write_result
from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope

PROFILE_SECTIONS = (
    "identity",
    "hard_preferences",
    "soft_preferences",
    "current_tasks",
    "recent_changes",
    "sensitive_topics",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurnEnd:
    owner: str
    record: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    fact_id: UUID
    text: str


async def facts(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, all_versions: bool = False, at: datetime
) -> list[Fact]:
    """The facts of a scope in the order in which they were learned.

    Those that are active and hold at `at`; with `all_versions` every version that ever was. Raises `QueryError`
    for more than 10 000 of them.
    """
    query = queries("reading")["all_versions" if all_versions else "current_facts"]
    return await fetch_bounded_rows(conn, Fact, with_fact_columns(query), {**scope.parameters, "at": at})


async def facts_as_of(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, believed_at: datetime, true_at: datetime
) -> list[Fact]:
    """What was believed at `believed_at` to be so at `true_at`, each fact as it stood then.

    Status, confidence, mentions and ends are those that the tables told at `believed_at`, whatever happened since;
    what waited for a confirmation was not believed. Raises `QueryError` for a time without a zone, else as `facts`.
    """
    check_zones(believed_at=believed_at, true_at=true_at)
    parameters = {**scope.parameters, "believed_at": believed_at, "true_at": true_at}
    query = with_fact_columns(queries("reading")["facts_as_of"], state_alias="s")
    return await fetch_bounded_rows(conn, Fact, query, parameters)


async def profile(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> Profile:
    """What is known of exactly one scope and holds at `at`; an empty profile where nothing is.

    Raises `QueryError` for a wider scope.
    """
    if not scope.is_exact:
        raise QueryError("a profile belongs to one scope: name each id, or leave it out, instead of '*'")
    found = await fetch_rows(conn, Profile, queries("reading")["profile"], scope.parameters)
    return _valid_at(found[0], at) if found else Profile()


async def turn_status(
    conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None, *, verbose: bool = False
) -> WriteResult:
    """How a turn or a command ended, or that it is pending; `verbose` adds its trace.

    Of a turn that was refused for a limit and published again the last end counts. A record that was no turn is found
    by its position, topic/partition/offset. Raises `UnknownTurnError` where neither journal nor log has the turn,
    `AmbiguousTurnError` where several owners of the tenant have one.
    """
    commit = await last_commit(conn, tenant, turn_id, user_id)
    if commit is None:
        return WriteResult(turn_id=turn_id, status="pending")
    return write_result(commit, await fact_texts(conn, commit.scope, fact_ids_of_commit(commit)) if verbose else None)


async def last_commit(
    conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None
) -> Commit | None:
    """The last commit of a turn or a command; None while it has none. Raises as `turn_status` does."""
    for given in (tenant, turn_id, user_id or ""):
        check_unicode(given)
    parameters = {"tenant": _check_storable(tenant), "turn_id": _check_storable(turn_id), "user_id": user_id}
    ends = await fetch_rows(conn, _TurnEnd, queries("reading")["turn"], parameters)
    match ends:
        case []:
            raise UnknownTurnError(tenant, turn_id)
        case [_TurnEnd(record=None)]:
            return None
        case [_TurnEnd(record=bytes(record))]:
            return Commit.from_bytes(record)
        case _:
            raise AmbiguousTurnError(turn_id, [end.owner for end in ends])


async def fact_texts(conn: AsyncConnection[TupleRow], scope: Scope | None, fact_ids: Iterable[UUID]) -> dict[UUID, str]:
    """What these facts say, as far as they are of exactly `scope`."""
    if scope is None:
        return {}
    named = {**scope.columns, "fact_ids": list(fact_ids)}
    return {one.fact_id: one.text for one in await fetch_rows(conn, _Text, queries("reading")["texts"], named)}


def _check_storable(identifier: str) -> str:
    if "\x00" in identifier:
        raise QueryError("an id holds U+0000, which no stored id can")
    return identifier


def _valid_at(known: Profile, at: datetime) -> Profile:
    sections = {
        name: [entry for entry in getattr(known, name) if _has_not_ended(entry, at)] for name in PROFILE_SECTIONS
    }
    return Profile(**sections, updated_at=known.updated_at)


def _has_not_ended(entry: dict[str, object], at: datetime) -> bool:
    ends = (entry.get(name) for name in ("valid_until", "true_to"))
    return all(not isinstance(end, str) or datetime.fromisoformat(end) > at for end in ends)
