"""Publishes turns again that wait for a budget of the day, once there is room for them, in sweeps over the tables."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import WaitingTurn
from mnemolog.schemas.turn import Turn
from mnemolog.streams.commands.ports import WaitingReader

WAITING_BATCH: Final = 500
"""The most turns of one sweep: what is published goes over the budget by as much at the most."""
AGAIN_AFTER: Final = timedelta(minutes=15)
"""How long a turn may be under way before it is published once more."""

_Attempt = tuple[str, str, int]


class WaitingSweep:
    """Publishes the turns of the partitions that `partitions` gives; other workers do so for theirs.

    `has_room` tells whether a turn of a scope would not wait; `publish` returns when the broker has the turn. A turn
    that is published twice is decided once, and its model replies are the stored ones.
    """

    def __init__(
        self,
        waiting: WaitingReader,
        *,
        has_room: Callable[[Scope, datetime], Awaitable[bool]],
        publish: Callable[[Turn], Awaitable[object]],
        partitions: Callable[[], frozenset[int]],
        batch_size: int = WAITING_BATCH,
    ) -> None:
        self._waiting = waiting
        self._has_room = has_room
        self._publish = publish
        self._partitions = partitions
        self._batch_size = batch_size
        self._after: WaitingTurn | None = None
        self._published: dict[_Attempt, datetime] = {}

    async def sweep(self, now: datetime) -> int:
        """Look at the next turns that may have room, the oldest first, and publish those that have; their number."""
        self._published = {one: sent for one, sent in self._published.items() if sent > now - AGAIN_AFTER}
        page = await self._waiting.due_turns(sorted(self._partitions()), now, after=self._after, limit=self._batch_size)
        self._after = page[-1] if len(page) == self._batch_size else None
        return await self._publish_all([one for one in page if _attempt_of(one) not in self._published], now)

    async def _publish_all(self, turns: Sequence[WaitingTurn], now: datetime) -> int:
        rooms: dict[Scope, bool] = {}
        count = 0
        for one in turns:  # one after the other: those of an owner keep their order
            scope = one.turn.scope
            if scope not in rooms:
                rooms[scope] = await self._has_room(scope, now)
            if rooms[scope]:
                await self._publish(one.turn)
                self._published[_attempt_of(one)] = now
                count += 1
        return count


def _attempt_of(one: WaitingTurn) -> _Attempt:
    return one.turn.scope.owner, one.turn.turn_id, one.attempt
