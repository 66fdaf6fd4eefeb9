"""The methods of the client that read and list facts, and the profile."""

from collections.abc import Mapping
from typing import Any, Unpack

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import ScopeArgs
from mnemolog.client.inputs.checks import When
from mnemolog.client.inputs.fact_ids import FactId
from mnemolog.client.inputs.scopes import scope_and_filter, scope_filter
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import FactIdReader, checked_time
from mnemolog.projections.queries import facts
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.profiles import published_profile
from mnemolog.projections.queries.results import Fact, Profile


@measured
@checked(QueryError)
class FactQueryMixin(FactIdReader):
    """Facts as they are, and as they were. No method needs Kafka."""

    async def get(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Fact:
        """One fact, whatever its status. `fact_id` may be the beginning of the id, if only one fact has it.

        Raises `UnknownFactError`, also for a fact that is not of the ids that are named, and `AmbiguousIdError`.
        """
        return await self._query(facts.fact, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    async def facts(
        self,
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        after: FactId | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The current facts, in the order in which they were learned; or all versions.

        `filters` narrows them further, for example `{"OR": [{"categories": "health"}, {"importance": {"gte": 0.8}}]}`;
        one that asks about `state` looks among all versions. Where no id is named beside it, it says whose facts:
        `{"user_id": "alice"}` are those without any other id, `{"OR": [{"user_id": "alice"}]}` those with any.

        All of them are returned, however many there are, or `limit` of them, from the first or from the one that
        follows the fact `after`: the id of a page's last fact gives the next page, and every fact is in one page,
        whatever is stored meanwhile.
        """
        within, wanted = scope_and_filter(scope, filters)
        last = None if after is None else await self._fact_id(after, scope)
        return await self._query(
            facts.facts, within, wanted, all_versions=all_versions, at=self._now(), limit=limit, after=last
        )

    async def get_all(
        self,
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        after: FactId | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The same as `facts`, under its name in other memory layers."""
        return await self.facts(all_versions=all_versions, filters=filters, limit=limit, after=after, **scope)

    async def facts_as_of(
        self, believed_at: When, true_at: When | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[Fact]:
        """What was known at `believed_at` to be true at `true_at` (the same unless given), each fact as it was then."""
        return await self._query(
            facts.facts_as_of,
            scope_filter(scope),
            believed_at=checked_time(believed_at),
            true_at=checked_time(true_at or believed_at),
        )

    async def profile(self, **scope: Unpack[ScopeArgs]) -> Profile:
        """What is known of exactly one scope, by section; empty where nothing is.

        It is the present one, or, where a policy says so, the one that was published last (`published_at`).
        """
        return await self._query(published_profile, scope_filter(scope), self._now())
