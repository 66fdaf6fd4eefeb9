"""What applications ask the tables: facts, profiles, and how a turn ended."""

from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.fetching import fetch, fetch_bounded, with_fact_columns
from projections.query_errors import AmbiguousTurnError, QueryError, UnknownTurnError, check_unicode
from projections.results import Fact, Profile, WriteResult
from projections.scoping import ScopeFilter
from projections.sql import queries
from projections.writes import write_result
from schemas.commit import Commit

SECTIONS = (
    "identity",
    "hard_preferences",
    "soft_preferences",
    "current_tasks",
    "recent_changes",
    "sensitive_topics",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    owner: str
    record: bytes | None


async def facts(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, all_versions: bool = False, at: datetime
) -> list[Fact]:
    """The facts of a scope in the order in which they were learned.

    Those that are active and hold at `at`; with `all_versions` every version that ever was. Raises `QueryError`
    for more than 10 000 of them.
    """
    query = queries("reading")["all_versions" if all_versions else "current_facts"]
    return await fetch_bounded(conn, Fact, with_fact_columns(query), {**scope.parameters, "at": at})


async def facts_as_of(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, believed_at: datetime, true_at: datetime
) -> list[Fact]:
    """What was believed at `believed_at` to be so at `true_at`.

    The rows are today's versions: status, confidence and mentions are those of now. Raises as `facts` does.
    """
    parameters = {**scope.parameters, "believed_at": believed_at, "true_at": true_at}
    return await fetch_bounded(conn, Fact, with_fact_columns(queries("reading")["facts_as_of"]), parameters)


async def profile(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> Profile:
    """What is known of exactly one scope and holds at `at`; an empty profile where nothing is.

    Raises `QueryError` for a wider scope.
    """
    if not scope.is_exact:
        raise QueryError("a profile belongs to one scope: name each id, or leave it out, instead of '*'")
    found = await fetch(conn, Profile, queries("reading")["profile"], scope.parameters)
    return _valid(found[0], at) if found else Profile()


async def turn_status(
    conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None
) -> WriteResult:
    """How a turn ended, or that it is pending.

    A record that was no turn is found by its position, topic/partition/offset. Raises `UnknownTurnError` where
    neither journal nor log has the turn, `AmbiguousTurnError` where several owners of the tenant have one.
    """
    for given in (tenant, turn_id, user_id or ""):
        check_unicode(given)
    parameters = {"tenant": _storable(tenant), "turn_id": _storable(turn_id), "user_id": user_id}
    ends = await fetch(conn, _End, queries("reading")["turn"], parameters)
    match ends:
        case []:
            raise UnknownTurnError(tenant, turn_id)
        case [_End(record=None)]:
            return WriteResult(turn_id=turn_id, status="pending")
        case [_End(record=bytes(record))]:
            return write_result(Commit.from_bytes(record))
        case _:
            raise AmbiguousTurnError(turn_id, [end.owner for end in ends])


def _storable(identifier: str) -> str:
    if "\x00" in identifier:
        raise QueryError("an id holds U+0000, which no stored id can")
    return identifier


def _valid(known: Profile, at: datetime) -> Profile:
    sections = {name: [entry for entry in getattr(known, name) if _holds(entry, at)] for name in SECTIONS}
    return Profile(**sections, updated_at=known.updated_at)


def _holds(entry: dict[str, object], at: datetime) -> bool:
    until = entry.get("valid_until")
    return not isinstance(until, str) or datetime.fromisoformat(until) > at
