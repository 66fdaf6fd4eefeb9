"""The facts and the profile of a scope, now or as of a time."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import Composed

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import QueryError, UnknownFactError, check_limit, check_zones
from mnemolog.projections.queries.fact_rows import read_query, with_filter
from mnemolog.projections.queries.results import Fact, Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.sql import queries
from mnemolog.schemas.filters.model import EVERYTHING, Filter

FACT_SECTIONS: Final = (
    "identity",
    "work",
    "relationships",
    "sensitive_topics",
    "hard_preferences",
    "soft_preferences",
    "current_tasks",
    "other",
)
"""The sections that hold facts, by their categories."""
PROFILE_SECTIONS: Final = (*FACT_SECTIONS, "upcoming", "recent_changes")
"""All sections; `upcoming` has what begins later of all categories."""


async def facts(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    wanted: Filter = EVERYTHING,
    *,
    all_versions: bool = False,
    at: datetime,
    limit: int | None = None,
    after: UUID | None = None,
) -> list[Fact]:
    """The facts of a scope that a filter lets through, in the order in which they were learned.

    Those that are active and hold at `at`, or begin later, which is marked; with `all_versions`, and where the filter
    asks about the state, every version that ever was. `limit` of them, or all; from the first, or those that were
    learned after the fact `after`, of which only its place matters. A fact keeps its place for good, so pages of which
    each begins after the last fact of the one before have each fact once, whatever is stored meanwhile.
    Raises `QueryError` for a limit below 1, and `UnknownFactError`.
    """
    check_limit(limit)
    query, parameters = listing_query(scope, wanted, all_versions=all_versions, continued=after is not None)
    place = {} if after is None else await _place(conn, scope.tenant, after)
    return await fetch_rows(conn, Fact, query, {**parameters, **scope.parameters, **place, "at": at, "limit": limit})


def listing_query(
    scope: ScopeFilter, wanted: Filter = EVERYTHING, *, all_versions: bool = False, continued: bool = False
) -> tuple[Composed, dict[str, Any]]:
    """The query of `facts`, and the parameters of the filter."""
    parts = {
        "states": "in_any_state" if all_versions or wanted.asks_about_state else "holding",
        "following": "after_a_fact" if continued else "from_the_first",
    }
    return with_filter(read_query("facts", "listed_facts", scope=scope.parameters, at="%(at)s", parts=parts), wanted)


async def _place(conn: AsyncConnection[TupleRow], tenant: str, after: UUID) -> dict[str, Any]:
    """The parameters of a list that goes on after a fact. Raises `UnknownFactError`."""
    found = await fetch_rows(conn, dict, queries("facts")["place"], {"tenant": tenant, "after": after})
    if not found:
        raise UnknownFactError(tenant, after)
    return found[0]


async def fact(conn: AsyncConnection[TupleRow], tenant: str, fact_id: UUID) -> Fact:
    """One fact, whatever its status. Raises `UnknownFactError`."""
    found = await fetch_rows(conn, Fact, read_query("explain", "fact"), {"tenant": tenant, "fact_id": fact_id})
    if not found:
        raise UnknownFactError(tenant, fact_id)
    return found[0]


async def facts_as_of(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    *,
    believed_at: datetime,
    true_at: datetime,
    unknown_at: datetime | None = None,
) -> list[Fact]:
    """What was known at `believed_at` to be true at `true_at`, each fact with its state of that time.

    Status, confidence, mentions and ends are those that the tables had at `believed_at`, whatever happened since;
    what waited for a confirmation was not believed. With `unknown_at` only what was not known then to be true then.
    Raises `QueryError` for a time without a zone.
    """
    check_zones(believed_at=believed_at, true_at=true_at)
    parts = {"known": "at_any_time" if unknown_at is None else "not_known_at_another_time"}
    query = read_query("facts", "facts_as_of", scope=scope.parameters, state="s", at="%(true_at)s", parts=parts)
    times = {"believed_at": believed_at, "true_at": true_at, "other_time": unknown_at}
    return await fetch_rows(conn, Fact, query, {**scope.parameters, **times})


async def profile(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> Profile:
    """The profile of exactly one scope, as far as it is valid at `at`; empty where nothing is known.

    What begins after `at` is in `upcoming`, the earliest first.

    Raises `QueryError` for a wider scope.
    """
    check_exact(scope)
    found = await fetch_rows(conn, Profile, queries("facts")["profile"], scope.parameters)
    return with_upcoming(found[0], at) if found else Profile()


def check_exact(scope: ScopeFilter) -> None:
    """Raise `QueryError` for a scope with a wildcard, which has no profile."""
    if not scope.is_exact:
        raise QueryError("a profile belongs to one scope: name each id, or leave it out, instead of '*'")


def with_upcoming(stored: Profile, at: datetime) -> Profile:
    """The entries that have not ended at `at`; those that begin later are in `upcoming`, the earliest first."""
    valid = {name: [one for one in getattr(stored, name) if _has_not_ended(one, at)] for name in FACT_SECTIONS}
    upcoming = [one for entries in valid.values() for one in entries if _begins_later(one, at)]
    present: dict[str, Any] = {
        name: [one for one in entries if not _begins_later(one, at)] for name, entries in valid.items()
    }
    return replace(stored, **present, upcoming=sorted(upcoming, key=itemgetter("at", "fact_id")))


def _has_not_ended(entry: Mapping[str, Any], at: datetime) -> bool:
    return entry["valid_until"] is None or datetime.fromisoformat(entry["valid_until"]) > at


def _begins_later(entry: Mapping[str, Any], at: datetime) -> bool:
    return datetime.fromisoformat(entry["at"]) > at
