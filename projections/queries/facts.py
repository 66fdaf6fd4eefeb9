"""The facts and the profile of a scope, now or as of a time; counts of facts, and their export as JSON lines."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, fields, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, Literal
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import Composed
from pydantic import ValidationError

from mnemolog.projections.database import fetch_rows, fetch_value
from mnemolog.projections.errors import QueryError, UnknownFactError, check_limit, check_zones
from mnemolog.projections.queries.results import Fact, FoundFact, Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query, with_filter
from mnemolog.projections.sql import queries
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.filters import EVERYTHING, Filter
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

PROFILE_SECTIONS: Final = tuple(one.name for one in fields(Profile) if not one.name.endswith("_at"))
"""All sections; `upcoming` has what begins later of all categories."""
FACT_SECTIONS: Final = PROFILE_SECTIONS[:-2]
"""The sections that hold facts, by their categories: all but `upcoming` and `recent_changes`."""
_PROFILES: Final = queries("profiles")


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
    learned after the fact `after`. A fact keeps its place in the order for good: pages that each begin after the last
    fact of the page before have each fact once, whatever is stored meanwhile.
    Raises `QueryError` for a limit below 1, and `UnknownFactError`.
    """
    check_limit(limit)
    query, parameters = listing_query(scope, wanted, all_versions=all_versions, continued=after is not None)
    asked = {**parameters, **scope.parameters, "at": at, "limit": limit}
    if after is not None:
        place = await fetch_rows(conn, dict, queries("facts")["place"], {"tenant": scope.tenant, "after": after})
        if not place:
            raise UnknownFactError(scope.tenant, after)
        asked |= place[0]
    return await fetch_rows(conn, Fact, query, asked)


def listing_query(
    scope: ScopeFilter, wanted: Filter = EVERYTHING, *, all_versions: bool = False, continued: bool = False
) -> tuple[Composed, dict[str, Any]]:
    """The query of `facts`, and the parameters of the filter."""
    parts = {
        "states": None if all_versions or wanted.asks_about_state else "holding",
        "following": "after_a_fact" if continued else None,
    }
    return with_filter(read_query("facts", "listed_facts", scope=scope.parameters, at="%(at)s", parts=parts), wanted)


async def fact(conn: AsyncConnection[TupleRow], tenant: str, fact_id: UUID) -> FoundFact:
    """The version that stands for a fact now, or the last one that did. Raises `UnknownFactError`."""
    found = await fetch_rows(
        conn, FoundFact, read_query("facts", "current_fact"), {"tenant": tenant, "fact_id": fact_id}
    )
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
    parts = {"state_at": "state_at", "known": None if unknown_at is None else "not_known_at_another_time"}
    query = read_query("facts", "facts_as_of", scope=scope.parameters, state="s", at="%(true_at)s", parts=parts)
    times = {"believed_at": believed_at, "true_at": true_at, "other_time": unknown_at}
    return await fetch_rows(conn, Fact, query, {**scope.parameters, **times})


async def profile(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> Profile:
    """The profile of exactly one scope, as far as it is valid at `at`; empty where nothing is known.

    What begins after `at` is in `upcoming`, the earliest first.

    Raises `QueryError` for a wider scope.
    """
    check_exact(scope)
    found = await fetch_rows(conn, dict, _PROFILES["profile"], scope.parameters)
    return with_upcoming(Profile(**found[0].pop("sections"), **found[0]), at) if found else Profile()


def check_exact(scope: ScopeFilter) -> None:
    """Raise `QueryError` for a scope with a wildcard, which has no profile."""
    if not scope.is_exact:
        raise QueryError("a profile belongs to one scope: name each id, or leave it out, instead of '*'")


def with_upcoming(stored: Profile, at: datetime) -> Profile:
    """The entries that have not ended at `at`; those that begin later are in `upcoming`, the earliest first."""
    upcoming: list[dict[str, Any]] = []
    present: dict[str, Any] = {}
    for name in FACT_SECTIONS:
        ends = [(one, one["valid_until"]) for one in getattr(stored, name)]
        valid = [one for one, end in ends if end is None or datetime.fromisoformat(end) > at]
        later = [one for one in valid if datetime.fromisoformat(one["at"]) > at]
        present[name] = [one for one in valid if one not in later]
        upcoming += later
    return replace(stored, **present, upcoming=sorted(upcoming, key=itemgetter("at", "fact_id")))


async def published_profile(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> Profile:
    """The profile of exactly one scope as it was last published, as far as it is valid at `at`; empty before that.

    Where the policy has it published at once, it is the present one. Else it is what was known when the last session
    ended, or after the last turn whose number is a multiple of `profile_every` (which turn that is follows from the log
    alone), without what has ended or was taken back since. Raises `QueryError` for a wider scope.
    """
    check_exact(scope)
    try:
        exact = Scope(**{name: getattr(scope, name) for name in SCOPE_FIELDS})
    except ValidationError as error:
        raise QueryError(f"the scope is not valid: {describe_faults(error)}") from error
    from mnemolog.projections.stores.turns import fetch_policies  # noqa: PLC0415 - other queries do without

    rules = (await fetch_policies(conn, exact)).overlay(EffectivePolicy())
    if rules.publish_profile == "at_once":
        return await _with_sources(conn, await profile(conn, scope, at))
    every = rules.profile_every if rules.publish_profile == "every_turns" else None
    published_at = await fetch_value(conn, _PROFILES["published_at"], {**scope.parameters, "every": every})
    if published_at is None:
        return Profile()
    parameters = {**scope.parameters, "published_at": published_at}
    (seen,) = await fetch_rows(conn, dict, _PROFILES["published"], parameters)
    return await _with_sources(conn, with_upcoming(Profile(**seen.pop("sections"), **seen), at))


async def _with_sources(conn: AsyncConnection[TupleRow], known: Profile) -> Profile:
    """Each entry with the source of its fact, and what that said."""
    wanted = list({UUID(entry["fact_id"]) for name in PROFILE_SECTIONS for entry in getattr(known, name)})
    rows = await fetch_rows(conn, dict, _PROFILES["sources"], {"fact_ids": wanted}) if wanted else []
    sources = {str(row.pop("fact_id")): row for row in rows}
    with_sources: dict[str, Any] = {
        name: [entry | sources.get(entry["fact_id"], {}) for entry in getattr(known, name)] for name in PROFILE_SECTIONS
    }
    return replace(known, **with_sources)


IdName = Literal["user_id", "agent_id", "run_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdCount:
    """A user, an agent or a run: how many active or pending facts name it, in how many scopes."""

    id: str
    facts: int
    scopes: int


async def count_facts(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    wanted: Filter = EVERYTHING,
    *,
    all_versions: bool = False,
    at: datetime,
) -> int:
    """How many facts `facts` of the same arguments lists. It reads the facts of the scope, and no others."""
    states = {"states": None if all_versions or wanted.asks_about_state else "holding"}
    counted = read_query("facts", "counted_facts", scope=scope.parameters, at="%(at)s", parts=states)
    query, parameters = with_filter(counted, wanted)
    found: int = await fetch_value(conn, query, {**parameters, **scope.parameters, "at": at})
    return found


async def first_moments(conn: AsyncConnection[TupleRow], scope: ScopeFilter) -> tuple[datetime, datetime] | None:
    """When the first fact of a scope was learned, and since when the first one was true; None where there is none."""
    query = read_query("facts", "first_moments", scope=scope.parameters, at="%(at)s")
    (found,) = await fetch_rows(conn, dict, query, scope.parameters)
    return None if found["learned"] is None else (found["learned"], found["true_from"])


async def named_ids(
    conn: AsyncConnection[TupleRow],
    name: IdName,
    scope: ScopeFilter,
    *,
    limit: int | None = None,
    after: str | None = None,
) -> list[IdCount]:
    """The values that scopes with facts have of one id, in order, from the first or the one that follows `after` on.

    It reads the counts of scopes, and no fact. Raises `QueryError` for a limit below 1.
    """
    check_limit(limit)
    query = read_query("scopes", "named_ids", scope=scope.parameters, row="known", parts={"name": name})
    return await fetch_rows(conn, IdCount, query, {**scope.parameters, "limit": limit, "after": after})


EXPORT_BATCH: Final = 1000
"""How many facts are in memory at a time."""


async def exported_lines(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, wanted: Filter, *, all_versions: bool, at: datetime
) -> AsyncGenerator[list[bytes]]:
    """What `facts` of the same arguments lists, each fact a line of JSON with its end; all as of one moment."""
    query, parameters = listing_query(scope, wanted, all_versions=all_versions)
    given = {**parameters, **scope.parameters, "at": at, "limit": None}
    async with conn.transaction(), conn.cursor("exported_facts", row_factory=class_row(Fact)) as cursor:
        await cursor.execute(query, given)
        while found := await cursor.fetchmany(EXPORT_BATCH):
            yield [orjson.dumps(fact.to_dict(), option=orjson.OPT_APPEND_NEWLINE) for fact in found]
