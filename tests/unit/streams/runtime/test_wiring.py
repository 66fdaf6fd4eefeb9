"""How the stages are put together, where a wrong wire would show only in a rebalance."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from mnemolog.projections.stores.facts import SourceStatus
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.provenance import Origin, Stage
from mnemolog.schemas.scope import Scope
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Window
from mnemolog.streams.runtime import read_your_writes
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores
from mnemolog.streams.runtime.read_your_writes import Watermark
from mnemolog.streams.runtime.worker import ALL_STAGES, CHAINABLE, StageFactory
from mnemolog.streams.settings import StreamsSettings
from tests.support.polling import eventually

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCOPE = Scope(user_id="alice")


class LogEnds:
    """A log that is asked where it ends."""

    def __init__(self) -> None:
        self.calls = 0

    async def end_offset(self, partition: int) -> int:  # noqa: ARG002 -- the log's signature
        self.calls += 1
        return 0


class CommittedTables:
    """Tables in which every turn has its commit."""

    async def source_status(self, *_: object) -> SourceStatus:
        return SourceStatus(scope_version=0, attempt=1)


async def nothing() -> Mapping[int, int]:
    return {}


def matched(offset: int) -> MatchedFacts:
    origin = Origin(topic="conversation_turns", partition=3, offset=offset)
    return MatchedFacts(source_id=f"t{offset}", scope=SCOPE, origin=origin, occurred_at=NOON, published_at=NOON)


async def resolve(window: Window, *offsets: int) -> None:
    """Hand records on to the window, as the stage before it does."""
    finished: list[int] = []
    for offset in offsets:
        one = KafkaRecord(topic="t", partition=3, offset=offset, key=SCOPE.key, value=None, timestamp=1.7e9)
        window.take_over(replace(one, content=matched(offset)), partial(finished.append, offset))
    await eventually(lambda: finished == list(offsets))


@pytest.fixture
def log() -> LogEnds:
    return LogEnds()


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, log: LogEnds) -> Any:
    monkeypatch.setattr(read_your_writes, "RECHECK_SECONDS", 3600)
    models: Any = SimpleNamespace(
        build_for=lambda _: None, chat=None, resolver=None, embedder=SimpleNamespace(model="m")
    )
    unused: Any = None
    committed: Any = CommittedTables()
    stores = replace(Stores.of_pool(unused, StreamsSettings()), finder=committed)
    stages = DecisionStages(stores, models, StreamsSettings(), clock=lambda: NOON)
    projector = SimpleNamespace(next_offsets=nothing)
    return SimpleNamespace(
        stages=stages, models=models, kafka_log=log, watermark=Watermark(nothing), projector=projector
    )


async def test_resolve_asks_where_the_log_ends_after_each_rebalance_and_not_again(parts: Any, log: LogEnds) -> None:
    first = StageFactory(StreamsSettings(kafka="localhost:9092"), parts, ALL_STAGES).builder("extract")().window
    await resolve(first.chain[-1], 0)
    await resolve(first.chain[-1], 1)
    assert log.calls == 1
    await first.drain(0)
    await resolve(first.chain[-1], 2)
    assert log.calls == 2


@pytest.mark.parametrize(
    ("here", "is_set", "chain"),
    [
        (ALL_STAGES, True, CHAINABLE),
        (CHAINABLE, True, CHAINABLE),
        (("extract", "embed", "match", "project"), True, ("extract",)),
        (ALL_STAGES, False, ("extract",)),
    ],
)
async def test_a_worker_chains_where_it_is_set_and_no_stage_is_missing(
    parts: Any, here: tuple[Stage, ...], chain: tuple[Stage, ...], *, is_set: bool
) -> None:
    app = StageFactory(StreamsSettings(kafka="localhost:9092", chain=is_set), parts, here).builder("extract")()
    assert app.chain == chain
    assert len(app.window.chain) == len(chain)
