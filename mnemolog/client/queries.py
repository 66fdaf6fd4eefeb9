"""The methods of the client that read facts, profiles, counts and decisions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from mnemolog.client.base import ClientBase, Read, checked_time
from mnemolog.client.inputs import FactId, ScopeArgs, When, scope_and_filter, scope_filter
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries import facts
from mnemolog.projections.queries.facts import count_facts, published_profile
from mnemolog.projections.queries.results import Axis, Fact, FoundFact, Profile

if TYPE_CHECKING:
    from mnemolog.projections.queries.diff import Diff
    from mnemolog.projections.queries.explain import Explanation, History
    from mnemolog.projections.queries.pending import PendingFact, PendingMerge, UnresolvedFact
    from mnemolog.projections.queries.write_result import WhyNot


class QueryMixin(ClientBase):
    """Facts as they are and as they were, decisions, and their figures. No method needs Kafka."""

    @Read
    async def get(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> FoundFact:
        """The fact of an id as it is now, whatever its status: of a former version what took its place (`former_id`).

        `fact_id` may be the beginning of the id, if only one fact has it. `history` has what a former version said.

        Raises `UnknownFactError`, also for a fact that is not of the ids that are named, and `AmbiguousIdError`.
        """
        return await self._query(facts.fact, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    @Read
    async def facts(
        self,
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        after: FactId | None = None,
        believed_at: When | None = None,
        true_at: When | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> list[Fact]:
        """The current facts, in the order in which they were learned; or all versions.

        With times those that were known at `believed_at` to be true at `true_at`, each as it was then; each time is the
        other one unless given. Nothing else but the scope goes with them.

        `filters` narrows them further, for example `{"OR": [{"categories": "health"}, {"importance": {"gte": 0.8}}]}`;
        one that asks about `state` looks among all versions. Where no id is named beside it, it says whose facts:
        `{"user_id": "alice"}` are those without any other id, `{"OR": [{"user_id": "alice"}]}` those with any.

        All of them are returned, however many there are, or `limit` of them, from the first or from the one that
        follows the fact `after`: the id of a page's last fact gives the next page, and every fact is in one page,
        whatever is stored meanwhile.
        """
        if moment := believed_at or true_at:
            if all_versions or filters is not None or limit is not None or after is not None:
                raise QueryError("a list of another time is whole: leave out all_versions, filters, limit and after")
            times = {"believed_at": checked_time(moment), "true_at": checked_time(true_at or moment)}
            return await self._query(facts.facts_as_of, scope_filter(scope), **times)
        within, wanted = scope_and_filter(scope, filters)
        last = None if after is None else await self._fact_id(after, scope)
        return await self._query(
            facts.facts, within, wanted, all_versions=all_versions, at=self._now(), limit=limit, after=last
        )

    @Read
    async def profile(self, **scope: Unpack[ScopeArgs]) -> Profile:
        """What is known of exactly one scope, by section; empty where nothing is.

        It is the present one, or, where a policy says so, the one that was published last (`published_at`).
        """
        return await self._query(published_profile, scope_filter(scope), self._now())

    @Read
    async def count(
        self, *, all_versions: bool = False, filters: Mapping[str, Any] | None = None, **scope: Unpack[ScopeArgs]
    ) -> int:
        """How many facts `facts` of the same arguments lists."""
        within, wanted = scope_and_filter(scope, filters)
        return await self._query(count_facts, within, wanted, all_versions=all_versions, at=self._now())

    @Read
    async def history(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> "History":
        """A fact's versions, and every event that made or touched them. Takes ids and raises as `get` does."""
        from mnemolog.projections.queries import explain  # noqa: PLC0415 - the records of the log

        return await self._query(explain.history, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    @Read
    async def explain(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> "Explanation":
        """Where a fact comes from: its turn and excerpt, how it was extracted and decided, what happened to it since.

        `words` of the result says it in sentences. Takes ids and raises as `get` does.
        """
        from mnemolog.projections.queries import explain  # noqa: PLC0415 - the records of the log
        from mnemolog.texts import explanation_sentences  # noqa: PLC0415 - the same

        known = await self._fact_id(fact_id, scope)
        explanation, texts = await self._query(explain.explain, scope.get("tenant") or "", known)
        return replace(explanation, words=explanation_sentences(explanation, texts))

    @Read
    async def why_not(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> "WhyNot":
        """The statements of a turn that were not stored as facts, and why. Raises as `status` does."""
        from mnemolog.projections.queries import write_result  # noqa: PLC0415 - the records of the log
        from mnemolog.texts import missing_sentence  # noqa: PLC0415 - the same

        found = await self._query(write_result.why_not, tenant or "", turn_id, user_id)
        return replace(found, missing=tuple(replace(one, because=missing_sentence(one)) for one in found.missing))

    @Read
    async def pending(self, **scope: Unpack[ScopeArgs]) -> "list[PendingFact | PendingMerge]":
        """Changes of facts that wait for a confirmation, with the guard that holds them, then merges; the oldest first.

        A merge is of two entities that a rule takes for one.
        """
        from mnemolog.projections.queries import pending  # noqa: PLC0415 - few programs ask

        return await self._query(pending.pending_changes, scope_filter(scope), self._now())

    @Read
    async def unresolved(self, **scope: Unpack[ScopeArgs]) -> "list[UnresolvedFact]":
        """Facts that were added beside others because their conflict could not be decided, the oldest first."""
        from mnemolog.projections.queries import pending  # noqa: PLC0415 - few programs ask

        return await self._query(pending.unresolved, scope_filter(scope), self._now())

    @Read
    async def diff(
        self, since: When, until: When | None = None, *, axis: Axis = "believed", **scope: Unpack[ScopeArgs]
    ) -> "Diff":
        """What changed from `since` up to `until` (now unless given), by kind.

        On the axis `believed` what was decided then; on the axis `true` what became or ceased to be true then, as it
        is known now. Either way the result also compares what was known at both ends.
        """
        from mnemolog.projections.queries import diff  # noqa: PLC0415 - few programs ask

        return await self._query(
            diff.diff, scope_filter(scope), checked_time(since), checked_time(until or self._now()), axis=axis
        )
