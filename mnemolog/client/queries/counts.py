"""The methods of the client that count facts, and list whose they are."""

from collections.abc import Mapping
from typing import Any, Unpack

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import ScopeArgs
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import FactIdReader, scope_and_filter, wide_filter
from mnemolog.projections.lists.counts import IdCount, count_facts, named_ids
from mnemolog.projections.queries.errors import QueryError


@measured
@checked(QueryError)
class CountQueryMixin(FactIdReader):
    """How many facts there are, and of whom. No method needs Kafka."""

    async def count(
        self, *, all_versions: bool = False, filters: Mapping[str, Any] | None = None, **scope: Unpack[ScopeArgs]
    ) -> int:
        """How many facts `facts` of the same arguments lists."""
        within, wanted = scope_and_filter(scope, filters)
        return await self._query(count_facts, within, wanted, all_versions=all_versions, at=self._now())

    async def users(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The users of the tenant of whom something is known, each with the number of active and pending facts.

        In order of their ids: all, or `limit` of them, from the first or from the one that follows the id `after`. An
        id that is not given is "**" here: with `agent_id="bot"` they are the users of this agent.
        """
        return await self._query(named_ids, "user_id", wide_filter(scope), limit=limit, after=after)

    async def agents(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The agents, as `users` lists users."""
        return await self._query(named_ids, "agent_id", wide_filter(scope), limit=limit, after=after)

    async def runs(
        self, *, limit: int | None = None, after: str | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[IdCount]:
        """The runs, as `users` lists users: with `user_id="alice"` those of Alice."""
        return await self._query(named_ids, "run_id", wide_filter(scope), limit=limit, after=after)
