"""Which rules hold: what operators have set for a tenant and for a scope, over what is configured."""

from functools import partial
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import EffectivePolicy, StoredPolicies
from mnemolog.schemas.scope import Scope

_SQL: Final = queries("policies")


class PolicyStore:
    """Reads policies; every call is one round trip and waits while Postgres is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def effective_policy(self, scope: Scope, defaults: EffectivePolicy) -> EffectivePolicy:
        """What holds for `scope` as of now, where `defaults` are configured."""
        return (await retry_while_unavailable(partial(self._fetch_policies, scope), name="policies")).overlay(defaults)

    async def _fetch_policies(self, scope: Scope) -> StoredPolicies:
        async with self._pool.connection() as connection:
            return await fetch_policies(connection, scope)


async def fetch_policies(conn: AsyncConnection[TupleRow], scope: Scope) -> StoredPolicies:
    """What has been set for a scope and for its tenant, in one round trip."""
    row = await (await conn.execute(_SQL["set_for"], scope.columns)).fetchone()
    return StoredPolicies.from_json(*(row or (None, None)))


async def may_have_limits(conn: AsyncConnection[TupleRow], tenant: str) -> bool:
    """Whether any policy of a tenant sets a limit, as far as a quick look tells: where it has many, yes."""
    row = await (await conn.execute(_SQL["may_have_limits"], {"tenant": tenant})).fetchone()
    return row is None or bool(row[0])
