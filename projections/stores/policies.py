"""Reads the policies that were set for a tenant and a scope."""

from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import EffectivePolicy, StoredPolicies
from mnemolog.schemas.scope import Scope

_SQL: Final = queries("policies")


class PolicyStore(Store):
    """Reads policies; every call is one round trip."""

    async def effective_policy(self, scope: Scope, defaults: EffectivePolicy) -> EffectivePolicy:
        """The policy that applies to `scope` now, where `defaults` are configured."""
        return (await self._run("policies", fetch_policies, scope)).overlay(defaults)


async def fetch_policies(conn: AsyncConnection[TupleRow], scope: Scope) -> StoredPolicies:
    """What has been set for a scope and for its tenant, in one round trip."""
    row = await (await conn.execute(_SQL["set_for"], scope.columns)).fetchone()
    return StoredPolicies.from_json(*(row or (None, None)))


async def may_have_limits(conn: AsyncConnection[TupleRow], tenant: str) -> bool:
    """Whether any policy of a tenant sets a limit, by a quick look; True for a tenant with many policies."""
    row = await (await conn.execute(_SQL["may_have_limits"], {"tenant": tenant})).fetchone()
    return row is None or bool(row[0])
