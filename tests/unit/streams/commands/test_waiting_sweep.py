"""Which waiting turns are published again, in which order, and how often."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import WaitingTurn
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.commands.waiting_sweep import AGAIN_AFTER, WaitingSweep

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def waiting(number: int, user: str = "ana", attempt: int = 1) -> WaitingTurn:
    said = (Message(role="user", content="Hello."),)
    turn = Turn(turn_id=f"t{number}", scope=Scope(user_id=user), messages=said, occurred_at=NOW)
    return WaitingTurn(turn=turn, attempt=attempt, published_at=NOW + timedelta(seconds=number))


class Tables:
    """Turns that wait; those of `full` users have no room."""

    def __init__(self, *turns: WaitingTurn, full: Sequence[str] = ()) -> None:
        self.turns = list(turns)
        self.full = full
        self.published: list[str] = []
        self.rooms_asked = 0
        self.partitions: list[list[int]] = []

    async def due_turns(
        self, partitions: Sequence[int], now: datetime, *, after: WaitingTurn | None, limit: int
    ) -> list[WaitingTurn]:
        assert now >= NOW
        self.partitions.append(list(partitions))
        behind = [one for one in self.turns if after is None or one.published_at > after.published_at]
        return behind[:limit]

    async def has_room(self, scope: Scope, _: datetime) -> bool:
        self.rooms_asked += 1
        return scope.user_id not in self.full

    async def publish(self, turn: Turn) -> None:
        self.published.append(turn.turn_id)

    def sweep(self, batch_size: int = 10) -> WaitingSweep:
        return WaitingSweep(
            self,
            has_room=self.has_room,
            publish=self.publish,
            partitions=lambda: frozenset({3, 1}),
            batch_size=batch_size,
        )


async def test_turns_with_room_are_published_in_their_order_and_others_wait_on() -> None:
    tables = Tables(waiting(1), waiting(2, "bob"), waiting(3), full=["bob"])
    assert await tables.sweep().sweep(NOW) == 2
    assert (tables.published, tables.rooms_asked, tables.partitions) == (["t1", "t3"], 2, [[1, 3]])


async def test_a_turn_that_is_under_way_is_published_again_only_after_a_while() -> None:
    tables = Tables(waiting(1))
    sweep = tables.sweep()
    assert [await sweep.sweep(NOW), await sweep.sweep(NOW + timedelta(minutes=1))] == [1, 0]
    assert await sweep.sweep(NOW + AGAIN_AFTER) == 1
    tables.turns = [waiting(1, attempt=2)]
    assert await sweep.sweep(NOW + AGAIN_AFTER + timedelta(seconds=1)) == 1


async def test_turns_without_room_do_not_stand_before_others() -> None:
    """Each sweep goes on behind the page of the last one, and begins again at the end."""
    tables = Tables(*(waiting(number, "bob") for number in range(5)), waiting(5), full=["bob"])
    sweep = tables.sweep(batch_size=2)
    assert [await sweep.sweep(NOW) for _ in range(3)] == [0, 0, 1]
    tables.full = []
    assert [await sweep.sweep(NOW) for _ in range(4)] == [0, 2, 2, 1]
