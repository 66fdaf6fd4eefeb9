"""Decides each record of a history once more over the tables in memory of `mnemolog.testing`: that has to be equal."""

from random import Random
from typing import Any, Final, cast

from mnemolog.schemas.commit import Commit
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.runtime.decision_stages import DecisionStages, do_nothing
from mnemolog.streams.stages.processor import ReceivedEnvelope
from mnemolog.testing.memory import memory_stores
from mnemolog.testing.tables import Tables
from tests.properties.harness import Harness, History
from tests.properties.play import Player, reader_of
from tests.properties.told import drawn_history

NOT_IN_MEMORY: Final = frozenset({"run"})
"""Promotions."""
DIGITS: Final = 2
"""Of a similarity: Postgres adds up numbers of half the size."""


class Twin(History):
    """A history whose commits are made in memory, too."""

    def __init__(self, harness: Harness, number: int) -> None:
        super().__init__(harness, number)
        self._tables = Tables()
        stores = memory_stores(self._tables, harness.settings)
        clock = lambda: harness.now  # noqa: E731 -- as of the harness
        self._stages = DecisionStages(stores, cast("Any", harness.models), harness.settings, clock=clock)
        self._resolver = self._stages.build_resolver(publish=do_nothing)

    async def decide(self, record: KafkaRecord) -> Commit | None:
        here = await self._resolver(ReceivedEnvelope(await self._stages.matched(record)), record)
        there = await super().decide(record)
        assert comparable(here) == comparable(there)
        if there is not None:
            self._tables.append(there)
        return there

    async def close(self) -> None:
        await self._stages.close()


async def check_memory(harness: Harness, random: Random) -> None:
    history = drawn_history(random)
    if history.features & NOT_IN_MEMORY:
        return
    twin = await harness.start_history(reader_of(history), Twin)
    assert isinstance(twin, Twin)
    player = Player(harness, twin, history)
    try:
        for step in history.steps:
            await player.play(step)
    finally:
        await twin.close()


def comparable(commit: Commit | None) -> Any:
    """All that a commit decides: without its costs, and with similarities of two digits."""
    return commit and _rounded(commit.model_dump(mode="json", exclude={"provenance"}))


def _rounded(value: Any) -> Any:
    match value:
        case dict():
            return {name: _rounded(one) for name, one in value.items() if name != "data"}
        case list():
            return [_rounded(one) for one in value]
        case float():
            return round(value, DIGITS)
    return value
