"""What the arguments of a query mean: its scope, its times, the id of its fact."""

from collections.abc import Mapping
from datetime import datetime
from typing import cast
from uuid import UUID

from mnemolog.client.base import ClientBase
from mnemolog.client.inputs.arguments import ScopeArgs, scope_ids
from mnemolog.client.inputs.checks import When
from mnemolog.client.inputs.fact_ids import FactId, whole_id
from mnemolog.projections.queries.fact_rows import ANY_OR_NONE
from mnemolog.projections.queries.ids import resolve_fact_id
from mnemolog.projections.queries.scope_filter import ScopeFilter


class FactIdReader(ClientBase):
    """Finds the facts that an argument names."""

    async def _fact_id(self, given: FactId, scope: ScopeArgs) -> UUID:
        """The whole id, of a fact of the scope where ids are named: the tables are asked only where they are needed."""
        within = wide_filter(scope)
        if not within.named and (whole := whole_id(given)):
            return whole
        return await self._query(resolve_fact_id, within, given)


def wide_filter(ids: Mapping[str, object]) -> ScopeFilter:
    """What may be meant: ids that are not named may be any."""
    return ScopeFilter(**{name: ANY_OR_NONE if value is None else value for name, value in scope_ids(ids).items()})


def checked_time(given: When) -> datetime:
    """A time that was checked and converted at the call."""
    return cast("datetime", given)
