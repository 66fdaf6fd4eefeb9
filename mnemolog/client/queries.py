"""The methods of the client that read facts, profiles, counts and decisions."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from os import PathLike
from typing import IO, Any, Unpack
from uuid import UUID

from mnemolog.client.base import ClientBase, checked, checked_time
from mnemolog.client.inputs import (
    WHOLE_TENANT,
    FactId,
    ScopeArgs,
    When,
    check_file,
    path_of,
    scope_and_filter,
    scope_filter,
    wide_filter,
)
from mnemolog.client.metrics import measured
from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries import diff, explain, facts, pending, write_result
from mnemolog.projections.queries.audit import FailedTurn, failed_turns, received_turn
from mnemolog.projections.queries.diff import Axis, Diff
from mnemolog.projections.queries.explain import Explanation, History
from mnemolog.projections.queries.facts import IdCount, count_facts, exported_lines, named_ids, published_profile
from mnemolog.projections.queries.ids import short_ids
from mnemolog.projections.queries.pending import PendingFact, PendingMerge, UnresolvedFact
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.results import Fact, FoundFact, Profile
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.write_result import WhyNot
from mnemolog.schemas.filters import Filter
from mnemolog.schemas.turn import Turn
from mnemolog.texts import explanation_sentences, missing_sentence


@measured
@checked(QueryError)
class FactQueryMixin(ClientBase):
    """Facts as they are and as they were, and how many there are of whom. No method needs Kafka."""

    async def get(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> FoundFact:
        """The fact of an id as it is now, whatever its status: of a former version what took its place (`former_id`).

        `fact_id` may be the beginning of the id, if only one fact has it. `history` has what a former version said.

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

    async def count(
        self, *, all_versions: bool = False, filters: Mapping[str, Any] | None = None, **scope: Unpack[ScopeArgs]
    ) -> int:
        """How many facts `facts` of the same arguments lists."""
        within, wanted = scope_and_filter(scope, filters)
        return await self._query(count_facts, within, wanted, all_versions=all_versions, at=self._now())

    async def export(
        self,
        file: str | PathLike[str] | IO[bytes],
        *,
        all_versions: bool = False,
        filters: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeArgs],
    ) -> int:
        """Write what `facts` of the same arguments lists into a file: a line of JSON for each, as `to_dict` has it.

        Returns how many there are. They are read in batches, all as of one moment. A file that is named is there once
        it is whole; until then its name ends in `.part`. Raises `QueryError` where it cannot be written.
        """
        within, wanted = scope_and_filter(scope, filters)
        if not isinstance(file, str | PathLike):
            check_file(file, "write", QueryError)
            return await self._export(file, within, wanted, all_versions=all_versions)
        whole = path_of(file, QueryError)
        part = whole.with_name(f"{whole.name}.part")
        try:
            with part.open("wb") as stream:
                written = await self._export(stream, within, wanted, all_versions=all_versions)
            part.replace(whole)
        except OSError as error:
            raise QueryError(f"{whole} cannot be written ({error.strerror}): name a file that can be") from error
        return written

    async def _export(self, stream: IO[bytes], within: ScopeFilter, wanted: Filter, *, all_versions: bool) -> int:
        written = 0
        async with self._connections.read_pool().connection() as connection:
            found = exported_lines(connection, within, wanted, all_versions=all_versions, at=self._now())
            async with aclosing(found):
                async for lines in found:
                    await asyncio.to_thread(stream.write, b"".join(lines))
                    written += len(lines)
        return written

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


@measured
@checked(QueryError)
class DecisionQueryMixin(ClientBase):
    """Decisions and their figures. No method needs Kafka."""

    async def history(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> History:
        """A fact's versions, and every event that made or touched them. Takes ids and raises as `get` does."""
        return await self._query(explain.history, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    async def explain(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Explanation:
        """Where a fact comes from: its turn and excerpt, how it was extracted and decided, what happened to it since.

        `words` of the result says it in sentences. Takes ids and raises as `get` does.
        """
        known = await self._fact_id(fact_id, scope)
        explanation, texts = await self._query(explain.explain, scope.get("tenant") or "", known)
        return replace(explanation, words=explanation_sentences(explanation, texts))

    async def why_not(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> WhyNot:
        """The statements of a turn that were not stored as facts, and why. Raises as `status` does."""
        found = await self._query(write_result.why_not, tenant or "", turn_id, user_id)
        return replace(found, missing=tuple(replace(one, because=missing_sentence(one)) for one in found.missing))

    async def pending(self, **scope: Unpack[ScopeArgs]) -> list[PendingFact | PendingMerge]:
        """Changes of facts that wait for a confirmation, with the guard that holds them, then merges; the oldest first.

        A merge is of two entities that a rule takes for one.
        """
        return await self._query(pending.pending_changes, scope_filter(scope), self._now())

    async def unresolved(self, **scope: Unpack[ScopeArgs]) -> list[UnresolvedFact]:
        """Facts that were added beside others because their conflict could not be decided, the oldest first."""
        return await self._query(pending.unresolved, scope_filter(scope), self._now())

    async def diff(
        self, since: When, until: When | None = None, *, axis: Axis = "believed", **scope: Unpack[ScopeArgs]
    ) -> Diff:
        """What changed from `since` up to `until` (now unless given), by kind.

        On the axis `believed` what was decided then; on the axis `true` what became or ceased to be true then, as it
        is known now. Either way the result also compares what was known at both ends.
        """
        return await self._query(
            diff.diff, scope_filter(scope), checked_time(since), checked_time(until or self._now()), axis=axis
        )

    async def quality(
        self, since: When | None = None, until: When | None = None, **scope: Unpack[ScopeArgs]
    ) -> DecisionQuality:
        """How often memory was overwritten, how often wrongly, what is pending, and what models cost.

        Of the last 30 days unless told otherwise, and of the whole tenant: an id that is not given is "**" here.
        """
        end = checked_time(until or self._now())
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(
            decision_quality,
            scope_filter(wide),
            checked_time(since or end - timedelta(days=30)),
            end,
            prices=self._prices,
        )

    async def failed_turns(self, *, limit: int = 100, **scope: Unpack[ScopeArgs]) -> list[FailedTurn]:
        """The newest turns that ended failed or rejected, of the whole tenant: an id that is not given is "**" here."""
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(failed_turns, scope_filter(wide), limit=limit)

    async def received_turn(
        self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> Turn | None:
        """A turn as it was first received; None where it is not known (yet), or what came was no valid turn."""
        return await self._query(received_turn, tenant or "", turn_id, user_id)

    async def short_ids(self, whole_ids: Collection[UUID]) -> dict[UUID, str]:
        """For each id of a fact or event the beginning, of eight characters or more, that stands for no other now."""
        given: object = whole_ids
        if not (isinstance(given, Collection) and all(isinstance(one, UUID) for one in given)):
            raise QueryError("whole_ids must be a list of UUIDs: those of the facts or events to be shown")
        return await self._query(short_ids, whole_ids)
