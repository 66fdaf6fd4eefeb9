"""How turns and commands ended: what was published, the methods `status` and `wait`."""

import asyncio
import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import orjson

from mnemolog.client.base import Blocking, ClientBase, Follow
from mnemolog.client.ends import PAUSE
from mnemolog.client.inputs import DEFAULT_WAIT_SECONDS, kind_of
from mnemolog.errors import ServerUnavailableError, WaitTimeoutError
from mnemolog.projections.errors import QueryError, UnknownTurnError, check_id_text
from mnemolog.projections.queries.results import Result
from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn

Published = str | Result
"""A turn or a command: its id, or what publishing it returned."""
REUSED_NOTE: Final = (
    "this turn_id was used before, by a turn with other messages: the first turn of an id counts, and this is its "
    "result; publish the new messages with an id of their own"
)
_SUMMED: Final = ("changes", "added", "updated", "unchanged", "deleted", "held", "entities", "notes")


def message_hash(messages: Iterable[Any]) -> str:
    """Equal for equal messages, given as records or as the journal has them."""
    plain = [message if isinstance(message, dict) else message.model_dump() for message in messages]
    fields = [[message["role"], message["content"], message.get("name")] for message in plain]
    return hashlib.sha256(orjson.dumps(fields)).hexdigest()


def published(record: Turn | Command, *, position: str | None, notes: tuple[str, ...] = ()) -> Result:
    """What is known of a turn or a command that the broker has at `position`."""
    whose = {name: getattr(record.scope, name) for name in ("tenant", "user_id", "agent_id")}
    if isinstance(record, Turn):
        content = message_hash(record.messages)
        return Result(turn_id=record.turn_id, position=position, notes=notes, content_hash=content, **whose)
    order = record.order.kind
    return Result(turn_id=record.command_id, source_kind="command", order=order, position=position, **whose)


def summed_up(turn_id: str, parts: Iterable[Result]) -> Result:
    """The results of one command in several scopes as one; that of the only scope as it is."""
    several = tuple(parts)
    if len(several) == 1:
        return several[0]
    first = next((one for one in several if one.status == "pending"), None)
    first = first or next((one for one in several if not one.success), None) or next(iter(several), None)
    lists: dict[str, Any] = {
        name: tuple(chain.from_iterable(getattr(one, name) for one in several)) for name in _SUMMED
    }
    return Result(
        turn_id=turn_id,
        status=first.status if first else "done",
        error=first.error if first else None,
        source_kind="command",
        order=first.order if first else None,
        actor=first.actor if first else None,
        tenant=first.tenant if first else None,
        parts=several,
        **(lists if several else {"notes": ("no scope matches: no command was sent",)}),
    )


def _as_result(given: object) -> Result:
    """What is known of what is given. Raises `QueryError` for what is neither an id nor what publishing returned."""
    if isinstance(given, Result):
        return given
    if isinstance(given, str):
        check_id_text(turn_id=given)
        return Result(turn_id=given)
    raise QueryError(
        f"turn_id must be text, or what `add`, a command, `wait` or `status` returned, not {kind_of(given)}"
    )


class ResultBase(ClientBase):
    """Asks how turns and commands ended, and waits for their ends."""

    async def _problems(self) -> list[str]:
        """What fails in the workers and hinders turns."""
        from mnemolog.projections.queries.audit import worker_problems  # noqa: PLC0415 - few ends are waited for

        return [str(one) for one in await self._query(worker_problems) if one.hinders]

    async def _status(self, given: Result, user_id: str | None, tenant: str | None, *, verbose: bool) -> Result:
        """The result now. What was published says what was left out, and whether another turn had the id before.

        What has a status and no position was never published, as a command that matched no scope: it stays as it is.
        """
        if given.parts or (given.status != "pending" and given.position is None):
            parts = [await self._status(part, user_id, tenant, verbose=verbose) for part in given.parts]
            return summed_up(given.turn_id, parts) if parts else given
        from mnemolog.projections.queries.write_result import first_messages, turn_status  # noqa: PLC0415 - the records

        owner = user_id or given.user_id, given.agent_id
        tenant = given.tenant or tenant or ""
        result = await self._query(turn_status, tenant, given.turn_id, *owner, prices=self._prices, verbose=verbose)
        if result.status == "pending":
            return given if given.status == "pending" else result
        if given.content_hash is None:
            return result
        result = replace(result, notes=(*given.notes, *result.notes))
        if given.position in (None, result.position):
            return result
        first = await self._query(first_messages, tenant, given.turn_id, *owner)
        if first is None or message_hash(first) == given.content_hash:
            return result
        return replace(result, notes=(*result.notes, REUSED_NOTE), reused=True)

    def _watch_ends(self, sent: Iterable[Result]) -> None:
        """Have `on_end` called with the ends of what was published, where the client has one."""
        if self._on_end is not None:

            async def look(one: Result) -> Result | str:
                return await self._end_or_progress(one, 1, None, None, verbose=False)

            self._connections.watch(self._on_end, look, in_thread=isinstance(self, Blocking)).add(sent)

    async def _wait_for_all(
        self,
        given: Iterable[object],
        seconds: float,
        *,
        attempt: int = 1,
        user_id: str | None = None,
        tenant: str | None = None,
        verbose: bool = False,
    ) -> list[Result]:
        """The results of turns and commands in their order, once all have ended, within one time for all.

        What is not known yet, an end of an earlier `attempt` or record, and a Postgres that is away are waited for.
        """
        followed = [_as_result(one) for one in given]
        ends: list[Result] = []
        progress = "it is not known yet"
        try:
            async with asyncio.timeout(seconds):
                for one in followed:
                    polls = 0
                    while isinstance(
                        found := await self._end_or_progress(one, attempt, user_id, tenant, verbose=verbose), str
                    ):
                        progress = found
                        polls += 1
                        await asyncio.sleep(PAUSE(polls))
                    ends.append(found)
        except TimeoutError as error:
            unfinished = followed[len(ends) :]
            first = unfinished[0]
            others = f" (and {len(unfinished) - 1} after it)" if len(unfinished) > 1 else ""
            with suppress(ServerUnavailableError):
                progress = "; ".join([progress, *await self._problems()])
            raise WaitTimeoutError(
                f"{first.source_kind} {first.turn_id}{others} did not finish within {seconds:g} s: {progress}. "
                "It goes on: wait for it again",
                [one.turn_id for one in unfinished],
            ) from error
        return ends

    async def _end_or_progress(
        self, one: Result, attempt: int, user_id: str | None, tenant: str | None, *, verbose: bool
    ) -> Result | str:
        """The result of a turn or command that has ended, else in words how far it is."""
        try:
            result = await self._status(one, user_id, tenant, verbose=verbose)
        except UnknownTurnError:
            return "not in the tables yet: check the tenant, and that a worker runs"
        except ServerUnavailableError as error:
            return str(error)
        if result.status == "pending":
            return "it is being processed; look at the worker's log, or wait longer"
        # A turn that failed, or what was rejected for a limit, may be published again under its id.
        can_retry = result.limit is not None or (result.source_kind == "turn" and result.status == "failed")
        partition, _, offset = (result.position or "").rpartition("/")
        own_partition, _, own_offset = (one.position or "").rpartition("/")
        is_earlier = bool(partition) and partition == own_partition and int(offset) < int(own_offset)
        if result.attempt < attempt or (can_retry and is_earlier):
            return f"its attempt {result.attempt} ended {result.status}, a later one has not finished"
        return result


class ResultMixin(ResultBase):
    """How turns and commands ended. No method needs Kafka."""

    @Follow
    async def status(
        self, turn_id: Published, *, user_id: str | None = None, tenant: str | None = None, verbose: bool = False
    ) -> Result:
        """How a turn or a command ended and what it did, or that it is pending; `verbose` adds the trace.

        `turn_id` is an id, or what `add` or a command returned. The trace tells what was retrieved, each decision with
        its reason, re-prompts and what was left out. The notes of a pending one say what fails in the workers. Raises
        `UnknownTurnError` for an id that is not in the tables (yet), `AmbiguousTurnError` where several users have a
        turn of this id: give `user_id`.
        """
        given = _as_result(turn_id)
        try:
            found = await self._status(given, user_id, tenant, verbose=verbose)
        except UnknownTurnError:
            if given is not turn_id:
                raise
            found = replace(given, notes=(*given.notes, "the broker has it, and the tables not yet"))
        if found.status == "pending":
            return replace(found, notes=(*found.notes, *(f"a worker says: {one}" for one in await self._problems())))
        return found

    @Follow
    async def wait(
        self,
        turn_id: Published,
        *,
        timeout: float = DEFAULT_WAIT_SECONDS,  # noqa: ASYNC109 - the error says how far the turn is
        user_id: str | None = None,
        tenant: str | None = None,
        verbose: bool = False,
        attempt: int = 1,
    ) -> Result:
        """Wait until a turn or a command has ended, `timeout` seconds at the most.

        `turn_id` is what `status` takes. An end may be `failed` or `rejected`: `success` of the result says so, nothing
        is raised. What failed, or was rejected for a limit, and is published again has another end: wait for what
        publishing it returned, or by id for `attempt` 2. Raises `WaitTimeoutError` that says how far it is; the stages
        go on.
        """
        whose: dict[str, Any] = {"user_id": user_id, "tenant": tenant}
        (end,) = await self._wait_for_all([turn_id], timeout, attempt=attempt, verbose=verbose, **whose)
        return end
