"""The methods of the client that read: results, facts, history, pending facts, quality."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Unpack
from uuid import UUID

from mnemolog.client.arguments import WHOLE_TENANT, ScopeArgs, scope_ids
from mnemolog.client.base import ClientBase, scoped
from mnemolog.client.query_embedder import SearchResult
from mnemolog.errors import ServerUnavailableError, WaitTimeoutError
from mnemolog.projections.queries import diff, explain, facts, pending, turn_status
from mnemolog.projections.queries import history as histories
from mnemolog.projections.queries import search as searches
from mnemolog.projections.queries import why_not as why_nots
from mnemolog.projections.queries.diff import Axis, Diff
from mnemolog.projections.queries.errors import QueryError, UnknownTurnError, check_unicode
from mnemolog.projections.queries.explain import Explanation
from mnemolog.projections.queries.failed_turns import FailedTurn, failed_turns, received_turn
from mnemolog.projections.queries.history import History
from mnemolog.projections.queries.pending import PendingFact, UnresolvedFact
from mnemolog.projections.queries.quality import DecisionQuality, decision_quality
from mnemolog.projections.queries.results import Fact, Profile, WriteResult
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.short_ids import short_ids
from mnemolog.projections.queries.why_not import WhyNot
from mnemolog.projections.retry import growing_delay
from mnemolog.schemas.scope import SCOPE_FIELDS
from mnemolog.schemas.turn import Turn
from mnemolog.texts import explanation_sentences, missing_sentence

_PAUSE: Final = growing_delay(0.02, 0.5, factor=1.5)


class QueryMixin(ClientBase):
    """Queries of the tables. None needs Kafka."""

    @scoped
    async def status(
        self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None, verbose: bool = False
    ) -> WriteResult:
        """How a turn or a command ended and what it did, or that it is pending; `verbose` adds the trace.

        The trace tells what was retrieved, each decision with its reason, re-prompts and what was left out. Raises
        `UnknownTurnError` for one that is not in the tables (yet), `AmbiguousTurnError` where several users have a
        turn of this id: give `user_id`.
        """
        _check_text(turn_id=turn_id, user_id=user_id)
        return await self._query(turn_status.turn_status, tenant or "", turn_id, user_id, verbose=verbose)

    @scoped
    async def wait(
        self,
        turn_id: str,
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - the error says how far the turn is
        user_id: str | None = None,
        tenant: str | None = None,
        verbose: bool = False,
        attempt: int = 1,
    ) -> WriteResult:
        """Wait until a turn or a command has ended, `timeout` seconds at the most.

        A turn that failed, or was rejected for a limit, and is published again has another end: wait for `attempt` 2.
        Raises `WaitTimeoutError` that says how far the turn is; the stages go on with it.
        """
        return await _wait_for_end(
            lambda: self.status(turn_id, user_id=user_id, tenant=tenant, verbose=verbose),
            turn_id,
            timeout_seconds=timeout,
            attempt=attempt,
        )

    @scoped
    async def search(self, query: str, *, limit: int = 10, **scope: Unpack[ScopeArgs]) -> SearchResult:
        """The facts nearest to `query` in meaning and words, best first, each with the reasons for its place.

        Pending facts are found as well: `status` of the fact says so. The client needs the embedder that the stages
        have (`MNEMOLOG_EMBEDDING_PROVIDER` and `_MODEL`): vectors of another one find nothing by meaning. Without a
        vector the search goes by words; `mode` and `notice` of the result say so.
        """
        scope_filter = _filter(scope)
        _check_text(query=query)
        check_unicode(query)
        vector, notice = await self._connections.query_embedder.embed(query)
        hits = await self._query(searches.search, scope_filter, query, vector, limit=limit, at=self._now())
        return SearchResult(hits=tuple(hits), mode="hybrid" if vector else "lexical", notice=notice)

    @scoped
    async def facts(self, *, all_versions: bool = False, **scope: Unpack[ScopeArgs]) -> list[Fact]:
        """The current facts, in the order in which they were learned; or all versions."""
        return await self._query(facts.facts, _filter(scope), all_versions=all_versions, at=self._now())

    @scoped
    async def facts_as_of(
        self, believed_at: datetime, true_at: datetime | None = None, **scope: Unpack[ScopeArgs]
    ) -> list[Fact]:
        """What was known at `believed_at` to be true at `true_at` (the same unless given), each fact as it was then."""
        return await self._query(
            facts.facts_as_of, _filter(scope), believed_at=believed_at, true_at=true_at or believed_at
        )

    @scoped
    async def profile(self, **scope: Unpack[ScopeArgs]) -> Profile:
        """What is known of exactly one scope, by section; empty where nothing is."""
        return await self._query(facts.profile, _filter(scope), self._now())

    @scoped
    async def history(self, fact_id: UUID, *, tenant: str | None = None) -> History:
        """A fact's versions, and every event that made or touched them. Raises `UnknownFactError`."""
        return await self._query(histories.history, tenant or "", fact_id)

    @scoped
    async def explain(self, fact_id: UUID, *, tenant: str | None = None) -> Explanation:
        """Where a fact comes from: its turn and excerpt, how it was extracted and decided, what happened to it since.

        `words` of the result says it in sentences. Raises `UnknownFactError`.
        """
        explanation, texts = await self._query(explain.explain, tenant or "", fact_id)
        return replace(explanation, words=explanation_sentences(explanation, texts))

    @scoped
    async def why_not(self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None) -> WhyNot:
        """The statements of a turn that were not stored as facts, and why. Raises as `status` does."""
        _check_text(turn_id=turn_id, user_id=user_id)
        found = await self._query(why_nots.why_not, tenant or "", turn_id, user_id)
        return replace(found, missing=tuple(replace(one, because=missing_sentence(one)) for one in found.missing))

    @scoped
    async def pending(self, **scope: Unpack[ScopeArgs]) -> list[PendingFact]:
        """Changes that wait for a confirmation, the oldest first: what would replace what, and which guard holds it."""
        return await self._query(pending.pending, _filter(scope), self._now())

    @scoped
    async def unresolved(self, **scope: Unpack[ScopeArgs]) -> list[UnresolvedFact]:
        """Facts that were added beside others because their conflict could not be decided, the oldest first."""
        return await self._query(pending.unresolved, _filter(scope), self._now())

    @scoped
    async def diff(
        self, since: datetime, until: datetime | None = None, *, axis: Axis = "believed", **scope: Unpack[ScopeArgs]
    ) -> Diff:
        """What changed from `since` up to `until` (now unless given), by kind.

        On the axis `believed` what was decided then; on the axis `true` what became or ceased to be true then, as it
        is known now. Either way the result also compares what was known at both ends.
        """
        return await self._query(diff.diff, _filter(scope), since, until or self._now(), axis=axis)

    @scoped
    async def quality(
        self, since: datetime | None = None, until: datetime | None = None, **scope: Unpack[ScopeArgs]
    ) -> DecisionQuality:
        """How often memory was overwritten, how often wrongly, and what is pending.

        Of the last 30 days unless told otherwise, and of the whole tenant: an id that is not given is "**" here.
        """
        end = until or self._now()
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(decision_quality, _filter(wide), since or end - timedelta(days=30), end)

    @scoped
    async def failed_turns(self, *, limit: int = 100, **scope: Unpack[ScopeArgs]) -> list[FailedTurn]:
        """The newest turns that ended failed or rejected, of the whole tenant: an id that is not given is "**" here."""
        wide: ScopeArgs = {**WHOLE_TENANT, **scope}
        return await self._query(failed_turns, _filter(wide), limit=limit)

    @scoped
    async def received_turn(
        self, turn_id: str, *, user_id: str | None = None, tenant: str | None = None
    ) -> Turn | None:
        """A turn as it was first received; None where it is not known (yet), or what came was no valid turn."""
        return await self._query(received_turn, tenant or "", turn_id, user_id)

    async def short_ids(self, ids: Collection[UUID]) -> dict[UUID, str]:
        """For each id of a fact or event the beginning, of eight characters or more, that stands for no other now."""
        return await self._query(short_ids, ids)


def _filter(scope: ScopeArgs) -> ScopeFilter:
    _check_text(**scope)
    return ScopeFilter(**scope_ids(scope))


def _check_text(**arguments: object) -> None:
    """Raise `QueryError` for an argument that is not text; None leaves out an id of the scope."""
    for name, value in arguments.items():
        if not isinstance(value, str) and (value is not None or name not in SCOPE_FIELDS):
            raise QueryError(f"{name} must be text, not {type(value).__name__}")


async def _wait_for_end(
    status: Callable[[], Awaitable[WriteResult]], turn_id: str, *, timeout_seconds: float, attempt: int = 1
) -> WriteResult:
    """The result of a turn once it has ended, polled for up to `timeout_seconds`.

    A turn that is not known yet, an end of an earlier `attempt`, and a Postgres that is away are waited for as well.
    Raises `WaitTimeoutError` that says how far the turn is.
    """
    so_far, polls = "it is not known yet", 0
    try:
        async with asyncio.timeout(timeout_seconds):
            while True:
                result, so_far = await _poll(status)
                if result and result.status != "pending" and result.attempt >= attempt:
                    return result
                polls += 1
                await asyncio.sleep(_PAUSE(polls))
    except TimeoutError as error:
        raise WaitTimeoutError(f"turn {turn_id} did not finish within {timeout_seconds:g} s: {so_far}") from error


async def _poll(status: Callable[[], Awaitable[WriteResult]]) -> tuple[WriteResult | None, str]:
    """The status of a turn, and how far it is."""
    try:
        result = await status()
    except UnknownTurnError:
        return None, "not in the tables yet: check the tenant, and that a worker runs"
    except ServerUnavailableError as error:
        return None, str(error)
    if result.status != "pending":
        return result, f"its attempt {result.attempt} ended {result.status}, a later one has not finished"
    return result, "it is being processed; look at the worker's log, or wait longer"
