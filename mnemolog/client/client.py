"""The asynchronous client: publish turns, send commands, wait for results, query facts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Unpack

from mnemolog.client.arguments import TurnArgs
from mnemolog.client.base import scoped
from mnemolog.client.commands import CommandMixin
from mnemolog.client.dry_run import DryRunMixin
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.queries import QueryMixin
from mnemolog.client.turn_builder import Messages, validated_turn
from mnemolog.schemas.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReceipt:
    """A turn that the broker has. It will reach exactly one end; `wait` and `status` tell which."""

    turn_id: str
    status: Literal["pending"] = "pending"


class MemoryClient(QueryMixin, CommandMixin, DryRunMixin):
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
        if (pool := self._connections.read_pool_if_configured()) is not None:
            await self._connections.limit_precheck.check(pool, built, self._now())
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
