"""Tables that move back under the running stage `project`."""

from typing import Any

from mnemolog.streams.errors import StaleProjection
from mnemolog.streams.runtime.background import check_projected_offsets


class Projection:
    """What the stage has written, and where the tables are."""

    def __init__(self) -> None:
        self.written: dict[int, int] = {}
        self.tables: dict[int, int] = {}
        self.restarts = False
        self.crashes: list[str] = []

    async def next_offsets(self) -> dict[int, int]:
        if self.restarts:
            self.written = {}
        return self.tables

    async def crash(self, error: StaleProjection) -> None:
        self.crashes.append(str(error))

    async def check(self) -> None:
        projector: Any = self
        await check_projected_offsets(projector, lambda: self.written, self.crash)


async def test_tables_that_are_where_the_stage_wrote_them_or_further_are_right() -> None:
    projection = Projection()
    await projection.check()
    projection.written, projection.tables = {0: 5, 1: 7}, {0: 5, 1: 9}
    await projection.check()
    assert projection.crashes == []


async def test_a_stage_whose_tables_moved_back_starts_over() -> None:
    projection = Projection()
    projection.written, projection.tables = {0: 100}, {0: 40}
    await projection.check()
    (crash,) = projection.crashes
    assert "up to offset 100 and the tables are at 40" in crash


async def test_a_stage_that_started_over_meanwhile_is_left_alone() -> None:
    projection = Projection()
    projection.written, projection.tables, projection.restarts = {0: 100}, {0: 40}, True
    await projection.check()
    assert projection.crashes == []
