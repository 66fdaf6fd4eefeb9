"""The methods of the client that say how turns and commands ended: status, wait."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeGuard, overload

from mnemolog.client.base import ClientBase, checked
from mnemolog.client.inputs import DEFAULT_WAIT_SECONDS, wide_filter
from mnemolog.client.producer import Published, PublishedId, SeveralPublished, message_hash
from mnemolog.common.retry import growing_delay
from mnemolog.errors import ServerUnavailableError, WaitTimeoutError
from mnemolog.projections.errors import QueryError, UnknownTurnError
from mnemolog.projections.queries.audit import worker_problems
from mnemolog.projections.queries.ids import find_turn
from mnemolog.projections.queries.results import WriteResult
from mnemolog.projections.queries.write_result import first_messages, turn_status

REUSED_NOTE: Final = (
    "this turn_id was used before, by a turn with other messages: the first turn of an id counts, and this is its "
    "result; publish the new messages with an id of their own"
)
_PAUSE: Final = growing_delay(0.02, 0.5, factor=1.5)


@checked(QueryError)
class ResultMixin(ClientBase):
    """How turns and commands ended. No method needs Kafka."""

    @overload
    async def status(
        self, turn_id: Published, *, user_id: str | None = ..., tenant: str | None = ..., verbose: bool = ...
    ) -> WriteResult: ...
    @overload
    async def status(
        self, turn_id: SeveralPublished, *, user_id: str | None = ..., tenant: str | None = ..., verbose: bool = ...
    ) -> list[WriteResult]: ...
    async def status(
        self,
        turn_id: Published | SeveralPublished,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        verbose: bool = False,
    ) -> WriteResult | list[WriteResult]:
        """How a turn or a command ended and what it did, or that it is pending; `verbose` adds the trace.

        `turn_id` is an id, or what `add` or a command returned, or a list of these. The trace tells what was retrieved,
        each decision with its reason, re-prompts and what was left out. The notes of a pending one say what fails in
        the workers. Raises `UnknownTurnError` for one that is not
        in the tables (yet), `AmbiguousTurnError` where several users have a turn of this id: give `user_id`.
        """
        given = map(PublishedId.of, turn_id if is_list(turn_id) else [turn_id])
        found = [await self._status(one, user_id, tenant, verbose=verbose) for one in given]
        if any(one.status == "pending" for one in found) and (problems := await self._query(worker_problems)):
            notes = tuple(f"a worker says: {one}" for one in problems)
            found = [replace(one, notes=(*one.notes, *notes)) if one.status == "pending" else one for one in found]
        return found if is_list(turn_id) else found[0]

    @overload
    async def wait(
        self,
        turn_id: Published,
        *,
        timeout: float = ...,  # noqa: ASYNC109 - see below
        user_id: str | None = ...,
        tenant: str | None = ...,
        verbose: bool = ...,
        attempt: int = ...,
    ) -> WriteResult: ...
    @overload
    async def wait(
        self,
        turn_id: SeveralPublished,
        *,
        timeout: float = ...,  # noqa: ASYNC109 - see below
        user_id: str | None = ...,
        tenant: str | None = ...,
        verbose: bool = ...,
        attempt: int = ...,
    ) -> list[WriteResult]: ...
    async def wait(
        self,
        turn_id: Published | SeveralPublished,
        *,
        timeout: float = DEFAULT_WAIT_SECONDS,  # noqa: ASYNC109 - the error says how far the turn is
        user_id: str | None = None,
        tenant: str | None = None,
        verbose: bool = False,
        attempt: int = 1,
    ) -> WriteResult | list[WriteResult]:
        """Wait until a turn or a command has ended, or several have, `timeout` seconds at the most.

        `turn_id` is what `status` takes. An end may be `failed` or `rejected`: `success` of the result says so, nothing
        is raised. What failed, or was rejected for a limit, and is published again has another end: wait for its
        new receipt, or by id for `attempt` 2. Raises `WaitTimeoutError` that says how far it is; the stages go on.
        """
        ends = await self._wait_for_all(
            turn_id if is_list(turn_id) else [turn_id],
            timeout_seconds=timeout,
            attempt=attempt,
            user_id=user_id,
            tenant=tenant,
            verbose=verbose,
        )
        return ends if is_list(turn_id) else ends[0]

    async def find_turn_id(self, beginning: str, *, user_id: str | None = None, tenant: str | None = None) -> str:
        """The whole id of the only turn or command whose id begins so (four characters or more), or is just this.

        Raises `UnknownTurnError`, `AmbiguousIdError` that names the candidates, and `AmbiguousTurnError`.
        """
        return (await self._query(find_turn, wide_filter({"tenant": tenant, "user_id": user_id}), beginning)).id

    async def _status(
        self, published: PublishedId, user_id: str | None, tenant: str | None, *, verbose: bool
    ) -> WriteResult:
        """The result now. The receipt adds what was left out, and whether another turn had the id before."""
        owner = user_id or published.user_id, published.agent_id
        tenant = published.tenant or tenant or ""
        result = await self._query(turn_status, tenant, published.id, *owner, prices=self._prices, verbose=verbose)
        if (receipt := published.receipt) is None:
            return result
        result = replace(result, notes=(*receipt.notes, *result.notes))
        own = receipt.content_hash is None or receipt.position in (None, result.position)
        if result.status == "pending" or own:
            return result
        first = await self._query(first_messages, tenant, receipt.turn_id, *owner)
        if first is None or message_hash(first) == receipt.content_hash:
            return result
        return replace(result, notes=(*result.notes, REUSED_NOTE), reused=True)

    async def _wait_for_all(
        self,
        given: Iterable[object],
        *,
        timeout_seconds: float,
        attempt: int = 1,
        user_id: str | None = None,
        tenant: str | None = None,
        verbose: bool = False,
    ) -> list[WriteResult]:
        """The results of turns and commands in their order, once all have ended, within one time for all.

        What is not known yet, an end of an earlier `attempt` or record, and a Postgres that is away are waited for.
        """
        published = [PublishedId.of(one) for one in given]
        ends: list[WriteResult] = []
        progress = "it is not known yet"
        try:
            async with asyncio.timeout(timeout_seconds):
                for one in published:
                    polls = 0
                    while isinstance(
                        found := await self._end_or_progress(one, attempt, user_id, tenant, verbose=verbose), str
                    ):
                        progress = found
                        polls += 1
                        await asyncio.sleep(_PAUSE(polls))
                    ends.append(found)
        except TimeoutError as error:
            unfinished = published[len(ends) :]
            first = unfinished[0]
            others = f" (and {len(unfinished) - 1} after it)" if len(unfinished) > 1 else ""
            with suppress(ServerUnavailableError):
                progress = "; ".join([progress, *map(str, await self._query(worker_problems))])
            raise WaitTimeoutError(
                f"{first.kind} {first.id}{others} did not finish within {timeout_seconds:g} s: {progress}. "
                "It goes on: `wait` for it again",
                [one.id for one in unfinished],
            ) from error
        return ends

    async def _end_or_progress(
        self, published: PublishedId, attempt: int, user_id: str | None, tenant: str | None, *, verbose: bool
    ) -> WriteResult | str:
        """The result of a turn or command that has ended, else in words how far it is."""
        try:
            result = await self._status(published, user_id, tenant, verbose=verbose)
        except UnknownTurnError:
            return "not in the tables yet: check the tenant, and that a worker runs"
        except ServerUnavailableError as error:
            return str(error)
        if result.status == "pending":
            return "it is being processed; look at the worker's log, or wait longer"
        if result.attempt < attempt or published.may_follow(result):
            return f"its attempt {result.attempt} ended {result.status}, a later one has not finished"
        return result


def is_list(given: object) -> TypeGuard[Iterable[Published]]:
    """Whether several turns are given."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
