"""The methods of the client that tell what was decided, when and why."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Unpack
from uuid import UUID

from mnemolog.client.base import checked
from mnemolog.client.inputs.arguments import WHOLE_TENANT, ScopeArgs
from mnemolog.client.inputs.checks import When
from mnemolog.client.inputs.fact_ids import FactId
from mnemolog.client.inputs.scopes import scope_filter
from mnemolog.client.metrics import measured
from mnemolog.client.queries.arguments import FactIdReader, checked_time
from mnemolog.projections.queries import diff, explain, pending
from mnemolog.projections.queries import history as histories
from mnemolog.projections.queries.diff import Axis, Diff
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.explain import Explanation
from mnemolog.projections.queries.history import History
from mnemolog.projections.queries.ids import short_ids
from mnemolog.projections.queries.pending import PendingFact, PendingMerge, UnresolvedFact
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.turns import why_not as why_nots
from mnemolog.projections.queries.turns.audit import FailedTurn, failed_turns, received_turn
from mnemolog.projections.queries.turns.why_not import WhyNot
from mnemolog.schemas.turn import Turn
from mnemolog.texts import explanation_sentences, missing_sentence


@measured
@checked(QueryError)
class DecisionQueryMixin(FactIdReader):
    """Decisions and their figures. No method needs Kafka."""

    async def history(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> History:
        """A fact's versions, and every event that made or touched them. Takes ids and raises as `get` does."""
        return await self._query(histories.history, scope.get("tenant") or "", await self._fact_id(fact_id, scope))

    async def explain(self, fact_id: FactId, **scope: Unpack[ScopeArgs]) -> Explanation:
        """Where a fact comes from: its turn and excerpt, how it was extracted and decided, what happened to it since.

        `words` of the result says it in sentences. Takes ids and raises as `get` does.
        """
        known = await self._fact_id(fact_id, scope)
        explanation, texts = await self._query(explain.explain, scope.get("tenant") or "", known)
        return replace(explanation, words=explanation_sentences(explanation, texts))

    async def why_not(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> WhyNot:
        """The statements of a turn that were not stored as facts, and why. Raises as `status` does."""
        found = await self._query(why_nots.why_not, tenant or "", turn_id, user_id)
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
