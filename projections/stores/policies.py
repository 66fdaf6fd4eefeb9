"""Which rules hold: what operators have set for a tenant and for a scope, over what is configured."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.schemas.policy import EffectivePolicy, Policy
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides

_SQL: Final = queries("policies")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPolicies:
    """The policies that were set for a scope's tenant and for the scope itself."""

    tenant: Policy | None = None
    scope: Policy | None = None

    def overlay(self, defaults: EffectivePolicy) -> EffectivePolicy:
        """What holds where `defaults` are configured."""
        rules = defaults if self.tenant is None else defaults.overlaid_by(self.tenant, "tenant")
        return rules if self.scope is None else rules.overlaid_by(self.scope, "scope")


NO_POLICIES: Final = StoredPolicies()


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
    return parse_policies(*(row or (None, None)))


async def may_have_limits(conn: AsyncConnection[TupleRow], tenant: str) -> bool:
    """Whether any policy of a tenant sets a limit, as far as a quick look tells: where it has many, yes."""
    row = await (await conn.execute(_SQL["may_have_limits"], {"tenant": tenant})).fetchone()
    return row is None or bool(row[0])


def parse_policies(tenant: str | None, scope: str | None) -> StoredPolicies:
    """The policies in the JSON of the two rows; None is a row that is not there."""
    return StoredPolicies(tenant=_parse_policy(tenant), scope=_parse_policy(scope))


def with_overrides(rules: EffectivePolicy, overrides: Overrides) -> EffectivePolicy:
    """The rules for one turn: its own word comes first."""
    names = ("add_only", "confidence", "confirm_below", "min_importance")
    said = {name: value for name in names if (value := getattr(overrides, name)) is not None}
    return replace(rules, **said)


def _parse_policy(text: str | None) -> Policy | None:
    return None if text is None else Policy.model_validate_json(text)
