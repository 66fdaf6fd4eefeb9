"""The methods of the client that tell how turns and commands ended: status, wait."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeGuard, overload

from mnemolog.client.base import ClientBase, checked, wide_filter
from mnemolog.client.inputs import DEFAULT_WAIT_SECONDS
from mnemolog.client.producer import Published, PublishedId, SeveralPublished, TurnReceipt, message_hash
from mnemolog.common.retry import growing_delay
from mnemolog.errors import ServerUnavailableError, WaitTimeoutError
from mnemolog.projections.errors import QueryError, UnknownTurnError
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
    """Queries of the ends of turns and commands. None needs Kafka."""

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
        each decision with its reason, re-prompts and what was left out. Raises `UnknownTurnError` for one that is not
        in the tables (yet), `AmbiguousTurnError` where several users have a turn of this id: give `user_id`.
        """
        if is_list(turn_id):
            return [await self._status(PublishedId.of(one), user_id, tenant, verbose=verbose) for one in turn_id]
        return await self._status(PublishedId.of(turn_id), user_id, tenant, verbose=verbose)

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
        published = [PublishedId.of(one) for one in turn_id] if is_list(turn_id) else [PublishedId.of(turn_id)]
        ends = await self._wait_for_each(
            published,
            timeout_seconds=timeout,
            attempt=attempt,
            status=lambda one: self._status(one, user_id, tenant, verbose=verbose),
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
        named = published.tenant or tenant or "", user_id or published.user_id, published.agent_id
        result = await self._query(
            turn_status, named[0], published.id, *named[1:], prices=self._prices, verbose=verbose
        )
        return await self._with_notes(result, published.receipt, named)

    async def _with_notes(
        self, result: WriteResult, receipt: TurnReceipt | None, named: tuple[str, str | None, str | None]
    ) -> WriteResult:
        """The result, with what its receipt knows: what was left out, and whether another turn had the id before."""
        if receipt is None:
            return result
        notes = (*receipt.notes, *result.notes)
        own = receipt.content_hash is None or receipt.position in (None, result.position)
        if result.status == "pending" or own:
            return replace(result, notes=notes)
        first = await self._query(first_messages, named[0], receipt.turn_id, *named[1:])
        if first is None or message_hash(first) == receipt.content_hash:
            return replace(result, notes=notes)
        return replace(result, notes=(*notes, REUSED_NOTE), reused=True)

    async def _wait_for_each(
        self,
        published: Sequence[PublishedId],
        *,
        timeout_seconds: float,
        attempt: int = 1,
        status: Callable[[PublishedId], Awaitable[WriteResult]],
    ) -> list[WriteResult]:
        """Their ends, in their order, within one time for all."""
        ends: list[WriteResult] = []
        progress = _Progress()
        try:
            async with asyncio.timeout(timeout_seconds):
                for one in published:
                    ends += [await _end(partial(status, one), one, attempt, progress)]
        except TimeoutError as error:
            raise _not_in_time(published[len(ends) :], timeout_seconds, progress.words) from error
        return ends

    async def _wait_for_all(self, receipts: Iterable[Published], *, timeout_seconds: float) -> list[WriteResult]:
        """The ends of what this client has published."""
        published = [PublishedId.of(one) for one in receipts]
        return await self._wait_for_each(
            published, timeout_seconds=timeout_seconds, status=lambda one: self._status(one, None, None, verbose=False)
        )


def is_list(given: object) -> TypeGuard[Iterable[Published]]:
    """Whether several turns are given."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)


class _Progress:
    """How far the turn that is waited for has come, in words."""

    words = "it is not known yet"


async def _end(
    status: Callable[[], Awaitable[WriteResult]], published: PublishedId, attempt: int, progress: _Progress
) -> WriteResult:
    """The result of what was published once it has ended.

    What is not known yet, an end of an earlier `attempt` or record, and a Postgres that is away are waited for as well.
    """
    polls = 0
    while True:
        result, progress.words = await _poll(status)
        has_ended = result is not None and result.status != "pending" and result.attempt >= attempt
        if result is not None and has_ended and not published.may_follow(result):
            return result
        polls += 1
        await asyncio.sleep(_PAUSE(polls))


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


def _not_in_time(unfinished: Sequence[PublishedId], seconds: float, so_far: str) -> WaitTimeoutError:
    first = unfinished[0]
    others = f" (and {len(unfinished) - 1} after it)" if len(unfinished) > 1 else ""
    return WaitTimeoutError(
        f"{first.kind} {first.id}{others} did not finish within {seconds:g} s: {so_far}. "
        "It goes on: `wait` for it again",
        [one.id for one in unfinished],
    )
