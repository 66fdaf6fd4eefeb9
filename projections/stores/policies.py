"""Reads the policies that were set for a tenant and a scope."""

from collections.abc import Sequence
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import EffectivePolicy, StoredPolicies
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope

_SQL: Final = queries("policies")


def with_policies(query: SQL) -> SQL:
    """A query of a table `asked` with the policies of each scope in it among its columns."""
    return SQL(query.format(asked_policies=_SQL["asked_policies"]).as_string())


_SET_FOR: Final = with_policies(_SQL["set_for"])


class PolicyStore(Store):
    """Reads policies; every call is one round trip."""

    async def effective_policy(self, scope: Scope, defaults: EffectivePolicy) -> EffectivePolicy:
        """The policy that applies to `scope` now, where `defaults` are configured."""
        return (await self.stored_policies([scope]))[0].overlay(defaults)

    async def stored_policies(self, scopes: Sequence[Scope]) -> list[StoredPolicies]:
        """What has been set for each scope and for its tenant."""
        return await self._run("policies", _fetch_all, scopes)


async def fetch_policies(conn: AsyncConnection[TupleRow], scope: Scope) -> StoredPolicies:
    """What has been set for a scope and for its tenant, in one round trip."""
    return (await _fetch_all(conn, [scope]))[0]


async def _fetch_all(conn: AsyncConnection[TupleRow], scopes: Sequence[Scope]) -> list[StoredPolicies]:
    columns = {name: [scope.columns[name] for scope in scopes] for name in SCOPE_FIELDS}
    rows = await (await conn.execute(_SET_FOR, columns)).fetchall()
    return [StoredPolicies.from_json(*row) for row in rows]


async def may_have_limits(conn: AsyncConnection[TupleRow], tenant: str) -> bool:
    """Whether any policy of a tenant sets a limit, by a quick look; True for a tenant with many policies."""
    row = await (await conn.execute(_SQL["may_have_limits"], {"tenant": tenant})).fetchone()
    return row is None or bool(row[0])
