"""What applications import: publish turns, give orders, wait for their ends, ask what is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from mnemolog.client.commands import CommandMixin
from mnemolog.client.dry_run import DryRunMixin
from mnemolog.client.producer import OutgoingRecord
from mnemolog.client.queries import QueryMixin
from mnemolog.client.turn_builder import Messages, TurnDraft, build_turn, validated_turn
from mnemolog.schemas.turn import Overrides, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReceipt:
    """A turn that the broker has. It will reach exactly one end; `wait` and `status` tell which."""

    turn_id: str
    status: Literal["pending"] = "pending"


class MemoryClient(QueryMixin, CommandMixin, DryRunMixin):
    """Memory for an application.

    `kafka` (host:port) is needed to publish, `postgres` (URL) to ask; each is connected to at its first use. What is
    not given is read from the `MNEMOLOG_` variables, and else from a running `mnemolog up` in this folder.
    `publish_timeout` is the seconds an acknowledgement may take. Use it in `async with`, or call `close`.

    Every method can raise `ServerUnavailableError`; those that ask raise `QueryError` for a question that is wrong.
    A query names its scope exactly: an id that is not given finds what was stored without it, "*" finds any.
    """

    async def add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        tenant: str | None = None,
        infer: bool = True,
        occurred_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        turn_id: str | None = None,
        speaker: str | None = None,
        valid_until: datetime | None = None,
        recalled: Sequence[str] = (),
        overrides: Overrides | Mapping[str, Any] | None = None,
    ) -> TurnReceipt:
        """Publish one turn; returns once the broker has it for good.

        `messages` is a text of the user or a list of `{role, content, name}`. `infer=False` stores the user's messages
        as they are, without a model. `occurred_at` (with a zone) is now unless given. `recalled` is memory that was in
        the prompt: context, never evidence. `overrides` hold for this turn only (`Overrides` names them).
        Raises `InvalidTurnError` before anything is sent, `LimitExceededError` where it is known that the turn would be
        refused for a limit, and `PublishError` when no acknowledgement came in time: publish again with the same
        `turn_id`, a second copy does nothing.
        An own `turn_id` must be new for the user over all agents, apps and runs: the first turn of an id counts.
        """
        draft = TurnDraft(
            messages=messages,
            turn_id=turn_id or self._new_id(),
            occurred_at=occurred_at or self._now(),
            tenant=tenant or self._settings.tenant,
            user_id=user_id,
            agent_id=agent_id,
            app_id=app_id,
            run_id=run_id,
            infer=infer,
            metadata=metadata or {},
            valid_until=valid_until,
            speaker=speaker,
            recalled=recalled,
            overrides=overrides,
        )
        turn = build_turn(draft, max_bytes=self._settings.max_turn_bytes)
        if (reader := self._read_pool_if_configured()) is not None:
            await self._limit_precheck.check(reader, turn, self._now())
        publisher = await self._connect_producer()
        await publisher.publish(OutgoingRecord.of(turn))
        return TurnReceipt(turn_id=turn.turn_id)

    async def add_many(self, turns: Iterable[Turn]) -> list[TurnReceipt]:
        """Publish turns in their order, many at a time; returns once the broker has all of them.

        Raises `InvalidTurnError` at the first that is none, before anything is sent, and `PartlyPublishedError`
        that names those which were not acknowledged. Limits are not looked at here: a turn over one ends as rejected.
        """
        limit = self._settings.max_turn_bytes
        letters = [OutgoingRecord.of(validated_turn(turn, max_bytes=limit)) for turn in turns]
        publisher = await self._connect_producer()
        return [TurnReceipt(turn_id=name) for name in await publisher.publish_batch(letters)]
