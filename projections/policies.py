"""Which rules hold: what operators have set for a tenant and for a scope, over what is configured."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.pools import Pool, persistently
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import Policy, Rules
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides

_SQL: Final = queries("policies")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicies:
    """The policies that were set for a scope's tenant and for the scope itself."""

    tenant: Policy | None = None
    scope: Policy | None = None

    def over(self, defaults: Rules) -> Rules:
        """What holds where `defaults` are configured."""
        rules = defaults if self.tenant is None else defaults.under(self.tenant, "tenant")
        return rules if self.scope is None else rules.under(self.scope, "scope")


NO_POLICIES: Final = SetPolicies()


class Policies:
    """Reads policies; every call is one round trip and waits while Postgres is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def rules(self, scope: Scope, defaults: Rules) -> Rules:
        """What holds for `scope` as of now, where `defaults` are configured."""
        return (await persistently(partial(self._set_for, scope), name="policies")).over(defaults)

    async def _set_for(self, scope: Scope) -> SetPolicies:
        async with self._pool.connection() as connection:
            return await policies_for(connection, scope)


async def policies_for(conn: AsyncConnection[TupleRow], scope: Scope) -> SetPolicies:
    """What has been set for a scope and for its tenant, in one round trip."""
    row = await (await conn.execute(_SQL["set_for"], scope.columns)).fetchone()
    return read_policies(*(row or (None, None)))


async def may_have_limits(conn: AsyncConnection[TupleRow], tenant: str) -> bool:
    """Whether any policy of a tenant sets a limit, as far as a quick look tells: where it has many, yes."""
    row = await (await conn.execute(_SQL["may_have_limits"], {"tenant": tenant})).fetchone()
    return row is None or bool(row[0])


def read_policies(tenant: str | None, scope: str | None) -> SetPolicies:
    """The policies in the JSON of the two rows; None is a row that is not there."""
    return SetPolicies(tenant=_policy(tenant), scope=_policy(scope))


def with_overrides(rules: Rules, overrides: Overrides) -> Rules:
    """The rules for one turn: its own word comes first."""
    names = ("add_only", "confidence", "confirm_below", "min_importance")
    said = {name: value for name in names if (value := getattr(overrides, name)) is not None}
    return replace(rules, **said)


def _policy(text: str | None) -> Policy | None:
    return None if text is None else Policy.model_validate_json(text)
