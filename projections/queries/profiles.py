"""The profile of a scope as readers get it: published as its policy says, each value with its source."""

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, dict_row
from pydantic import ValidationError

from mnemolog.projections.db.fetch import Query, fetch_value
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.facts import FACT_SECTIONS, check_exact, profile, with_upcoming
from mnemolog.projections.queries.results import Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.policies import fetch_policies
from mnemolog.schemas.errors import describe_faults
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

SECTION_ENTRIES: Final = 50
_SQL: Final = queries("profiles")


async def published_profile(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> Profile:
    """The profile of exactly one scope as it was last published, as far as it is valid at `at`; empty before that.

    Where the policy has it published at once, it is the present one. Else it is what was known when the last session
    ended, or after the last turn whose number is a multiple of `profile_every`, whatever has changed since: which turn
    that is follows from the log alone. Raises `QueryError` for a wider scope.
    """
    check_exact(scope)
    try:
        exact = Scope(**{name: getattr(scope, name) for name in SCOPE_FIELDS})
    except ValidationError as error:
        raise QueryError(f"the scope is not valid: {describe_faults(error)}") from error
    rules = (await fetch_policies(conn, exact)).overlay(EffectivePolicy())
    if rules.publish_profile == "at_once":
        return await _with_sources(conn, await profile(conn, scope, at))
    every = rules.profile_every if rules.publish_profile == "every_turns" else None
    published_at = await fetch_value(conn, _SQL["published_at"], {**scope.parameters, "every": every})
    if published_at is None:
        return Profile()
    return await _with_sources(conn, await _profile_at(conn, scope, published_at, at))


async def _profile_at(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, published_at: datetime, at: datetime
) -> Profile:
    parameters = {**scope.parameters, "published_at": published_at, "at": at}
    sections: dict[str, list[dict[str, Any]]] = {name: [] for name in FACT_SECTIONS}
    for entry in await _fetch_dicts(conn, _SQL["entries_at"], parameters):
        sections[entry.pop("section")].append(entry)
    changes = await _fetch_dicts(conn, _SQL["changes_at"], parameters)
    return with_upcoming(
        Profile(
            **{name: list(islice(entries, SECTION_ENTRIES)) for name, entries in sections.items()},
            recent_changes=changes,
            updated_at=published_at,
            published_at=published_at,
        ),
        at,
    )


async def _with_sources(conn: AsyncConnection[TupleRow], known: Profile) -> Profile:
    """Each entry with the source of its fact, and what that said."""
    wanted = list({UUID(entry["fact_id"]) for entry in _entries(known)})
    rows = await _fetch_dicts(conn, _SQL["sources"], {"fact_ids": wanted}) if wanted else []
    sources = {str(row.pop("fact_id")): row for row in rows}
    with_sources: dict[str, Any] = {
        name: [entry | sources.get(entry["fact_id"], {}) for entry in getattr(known, name)] for name in _LISTS
    }
    return replace(known, **with_sources)


_LISTS: Final = tuple(one.name for one in fields(Profile) if not one.name.endswith("_at"))


def _entries(known: Profile) -> Iterator[dict[str, Any]]:
    for name in _LISTS:
        yield from getattr(known, name)


async def _fetch_dicts(
    conn: AsyncConnection[TupleRow], query: Query, parameters: dict[str, Any]
) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, parameters)
        return await cursor.fetchall()
