"""How the stages are put together, where a wrong wire would show only in a rebalance."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mnemolog.projections.stores.candidates import SourceStatus
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Window
from mnemolog.streams.kafka.windows.state import Delivery
from mnemolog.streams.runtime import read_your_writes
from mnemolog.streams.runtime.decision_stages import DecisionStages, Models
from mnemolog.streams.runtime.read_your_writes import Watermark
from mnemolog.streams.runtime.wiring import StageFactory
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


async def resolve(window: Window, offset: int) -> None:
    """Let one record go through the stage's window."""
    origin = Origin(topic="conversation_turns", partition=3, offset=offset)
    matched = MatchedFacts(source_id=f"t{offset}", scope=SCOPE, origin=origin, occurred_at=NOON, published_at=NOON)
    record = KafkaRecord(
        topic="matched_facts", partition=3, offset=offset, key=SCOPE.key, value=matched.to_bytes(), timestamp=1.7e9
    )

    async def deliveries() -> AsyncIterator[Delivery]:
        yield Delivery(record=record, epoch=window.epoch)

    async def fail(error: BaseException) -> None:
        raise error

    await window.run(deliveries(), fail)
    await eventually(lambda: window.finished)


async def test_after_a_rebalance_resolve_asks_again_where_the_log_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_your_writes, "RECHECK_SECONDS", 3600)
    log = LogEnds()
    models = SimpleNamespace(build_for=lambda _: None, chat=None, embedder=SimpleNamespace(model="m"))
    unused: Any = None
    tables: Any = CommittedTables()
    settings = StreamsSettings()
    stages = DecisionStages(unused, cast("Models", models), settings, clock=lambda: NOON, finder=tables)
    projector = SimpleNamespace(next_offsets=nothing)
    parts: Any = SimpleNamespace(
        stages=stages, models=models, kafka_log=log, watermark=Watermark(nothing), projector=projector
    )
    window = StageFactory(settings, "localhost:9092", parts).builder("resolve")().window
    await resolve(window, 0)
    await resolve(window, 1)
    assert log.calls == 1
    await window.drain(0)
    await resolve(window, 2)
    assert log.calls == 2
