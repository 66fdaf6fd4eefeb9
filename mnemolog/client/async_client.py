"""The asynchronous client: publish turns, send commands, wait for results, query facts."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Unpack

from mnemolog.client.arguments import TurnArgs
from mnemolog.client.base import scoped
from mnemolog.client.commands import CommandMixin
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.queries import QueryMixin
from mnemolog.client.record_builder import Messages, validated_turn
from mnemolog.errors import NotConnectedError, WaitTimeoutError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.projections.queries.trace import fact_ids_of_commit
from mnemolog.projections.queries.turn_status import fact_texts
from mnemolog.projections.queries.write_result import write_result
from mnemolog.schemas.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReceipt:
    """A turn that the broker has. It will reach exactly one end; `wait` and `status` tell which."""

    turn_id: str
    status: Literal["pending"] = "pending"


class AsyncMemoryClient(QueryMixin, CommandMixin):
    """Memory for an application.

    `kafka` (host:port) is needed to publish, `postgres` (URL) to query; each is connected to at its first use. What is
    not given is read from the `MNEMOLOG_` variables, and else from a running `mnemolog up` in this folder.
    `publish_timeout` is the seconds an acknowledgement may take. Use it in `async with`, or call `close`.

    Every method can raise `ServerUnavailableError`; queries raise `QueryError` for arguments that are not valid.
    A query names its scope exactly: an id that is not given finds what was stored without it, "*" finds any that is
    set, "**" any or none.
    `memory.scope(user_id="alice")` is a client that has these ids in every call.
    """

    @scoped
    async def add(self, messages: Messages, **turn: Unpack[TurnArgs]) -> TurnReceipt:
        """Publish one turn; returns once the broker has it for good.

        `messages` is a text of the user or a list of `{role, content, name}`. Further arguments: user_id, agent_id,
        app_id, run_id, tenant, infer, occurred_at, metadata, turn_id, speaker, valid_until, recalled, overrides
        (`TurnArgs` says what each means).

        Raises `InvalidTurnError` before anything is sent, `LimitExceededError` where it is known that the turn would be
        refused for a limit, and `PublishError` when no acknowledgement came in time: publish again with the same
        `turn_id`, a second copy does nothing.
        """
        built = self._build_turn(messages, turn)
        with suppress(NotConnectedError):  # nothing says where Postgres is: publishing does without
            await self._connections.limit_precheck.check(self._connections.read_pool(), built, self._now())
        producer = await self._connections.producer()
        await producer.publish(OutgoingRecord.of(built))
        return TurnReceipt(turn_id=built.turn_id)

    async def add_many(self, turns: Iterable[Turn]) -> list[TurnReceipt]:
        """Publish turns in their order, many at a time; returns once the broker has all of them.

        Raises `InvalidTurnError` for the first invalid turn, before anything is sent, and `PartlyPublishedError` that
        names those which were not acknowledged. Limits are not checked here: a turn over one ends as rejected.
        """
        limit = self._settings.max_turn_bytes
        records = [OutgoingRecord.of(validated_turn(turn, max_bytes=limit)) for turn in turns]
        producer = await self._connections.producer()
        return [TurnReceipt(turn_id=name) for name in await producer.publish_batch(records)]

    @scoped
    async def dry_run(
        self,
        messages: Messages,
        *,
        verbose: bool = True,
        timeout: float = 120.0,  # noqa: ASYNC109 - the error says what did not finish
        **turn: Unpack[TurnArgs],
    ) -> WriteResult:
        """What `add` of the same arguments would do now and what it would cost; nothing is stored or published.

        The very stages run here, with the models and settings of this process, on what the tables hold at the moment:
        turns that are still being processed are not waited for. Model calls are real, and not recorded. Needs Postgres,
        not Kafka. Raises `InvalidTurnError`, `WaitTimeoutError` after `timeout` seconds, and what building a model
        raises.
        """
        built = self._build_turn(messages, turn)
        try:
            async with asyncio.timeout(timeout):
                return await self._run_dry(built, verbose=verbose)
        except TimeoutError as error:
            raise WaitTimeoutError(
                f"the dry run did not finish within {timeout:g} s: are the models and Postgres reachable?"
            ) from error

    async def _run_dry(self, turn: Turn, *, verbose: bool) -> WriteResult:
        async with self._connections.read_pool().connection():
            pass  # raises where Postgres is away or has no tables: the stages would wait for it
        commit = await (await self._connections.dry_run()).decide(turn)
        if not verbose:
            return write_result(commit, None)
        # The texts of the facts in the commit: known ones, and those that the turn itself brings.
        fresh = {fact.fact_id: fact.text for event in commit.events if (fact := event.new_fact) is not None}
        known = await self._query(fact_texts, commit.scope, fact_ids_of_commit(commit))
        return write_result(commit, fresh | known)
