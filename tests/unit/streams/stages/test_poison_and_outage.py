"""`embed` over a window, with the real clients and a simulated server: poison ends, an outage ends nothing."""

import asyncio
import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from mnemolog.schemas.envelopes import EmbeddedFacts, End, ExtractedFacts
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Overrides, Turn
from mnemolog.streams.kafka.dead_letters import DeadLetter, DeadLetterWriter
from mnemolog.streams.kafka.record import KafkaRecord, SeenOrigins
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.window import Delivery, KeyedWindow
from mnemolog.streams.llm.cached_models import CachedEmbedder
from mnemolog.streams.llm.openai_models import Endpoint, OpenAiEmbedder
from mnemolog.streams.runtime.effective_settings import thresholds_for
from mnemolog.streams.stages.embed import EmbedStage
from mnemolog.streams.stages.processor import (
    StageDefinition,
    StageProcessor,
    ended_envelope,
    envelope_reader,
    new_envelope,
    next_envelope,
)
from tests.support.endpoint_simulation import (
    HOUR,
    POISON,
    FailingServer,
    Fault,
    NoReplies,
    clients_of,
    error_response,
    fails_for_an_hour,
    fails_for_one,
)
from tests.support.servers.memory_broker import MemoryBroker
from tests.support.virtual_time import run_in_virtual_time

TURNS = 3000


def record(number: int, *, text: str) -> KafkaRecord:
    """A turn of a user of its own with one fact; one in ten has none, and is passed on without the model."""
    turn = Turn(
        turn_id=f"t{number}",
        scope=Scope(user_id=f"u{number}"),
        messages=(Message(role="user", content=text),),
        occurred_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    )
    source = KafkaRecord(topic="turns", partition=number % 12, offset=number, key=None, value=b"", timestamp=1.7e9)
    envelope = new_envelope(source, turn)
    facts = (ExtractedFact(text=text, search_text=text, excerpt=text),)
    end = None if number % 10 else End(outcome="no_facts", reason="nothing_to_remember")
    value = next_envelope(ExtractedFacts, envelope, facts=() if end else facts, end=end).to_bytes()
    key = f"default/u{number}".encode()
    return KafkaRecord(topic="in", partition=number % 12, offset=number, key=key, value=value, timestamp=1.7e9)


def thresholds(model: str, overrides: Overrides) -> Thresholds:
    return thresholds_for(model, overrides)


def acknowledged(window: KeyedWindow, records: list[KafkaRecord]) -> int:
    """How many of the records may be committed."""
    return sum(one.offset < window.finished.get(one.topic_partition, 0) for one in records)


class EmbedHarness:
    """The stage `embed` over a window; `acknowledged` records are done."""

    def __init__(self, fault: Fault) -> None:
        self.server = FailingServer(fault)
        with clients_of(self.server):
            embedder = OpenAiEmbedder(Endpoint(api_key="k", timeout=25.0), "text-embedding-3-small")
        self.batches = CachedEmbedder(embedder, NoReplies(), max_texts=256, max_wait=0.01, max_concurrent=4)
        self.broker = MemoryBroker()
        sender = Sender(self.broker.enqueue, limits={"out": 1_000_000})
        definition = StageDefinition(
            stage="embed",
            topic="out",
            read=envelope_reader(ExtractedFacts),
            work=EmbedStage(self.batches, thresholds),
            finish=ended_envelope(EmbeddedFacts),
        )
        dead_letters = DeadLetterWriter(sender)
        self.stage = StageProcessor(definition, sender=sender, dead_letters=dead_letters, seen=SeenOrigins())
        self.acknowledged = 0

    async def run(self, records: list[KafkaRecord], *, until: float | None = None) -> None:
        """Process the records until all are acknowledged, or until a time."""
        window = KeyedWindow(self.stage, max_in_flight=256, max_pending=1024)

        async def deliveries() -> AsyncIterator[Delivery]:
            for one in records:
                yield Delivery(record=one)

        async def fail(error: BaseException) -> None:
            raise AssertionError(f"the stage crashed: {error!r}")

        running = asyncio.create_task(window.run(deliveries(), fail))
        loop = asyncio.get_running_loop()
        while acknowledged(window, records) < len(records) and loop.time() < (until or math.inf):  # noqa: ASYNC110 -- virtual
            await asyncio.sleep(1)
        self.acknowledged = acknowledged(window, records)
        running.cancel()
        await window.drain(0)
        await asyncio.gather(running, return_exceptions=True)

    def ends(self) -> list[str | None]:
        """Why records ended; None for those with vectors."""
        outputs = [EmbeddedFacts.from_bytes(sent.value) for sent in self.broker.records("out")]
        return [output.end.reason if output.end else None for output in outputs]


@pytest.mark.parametrize("status", [400, 402, 429, 500])
def test_one_text_that_the_server_always_refuses_ends_and_all_others_go_on(status: int) -> None:
    async def main() -> None:
        harness = EmbedHarness(fails_for_one(lambda: error_response(status)))
        await harness.run(
            [record(number, text=POISON if number == 1 else f"Fact {number}.") for number in range(TURNS)]
        )
        ends = harness.ends()
        assert len(ends) == harness.acknowledged == TURNS
        assert ends.count(None) == TURNS * 9 // 10 - 1
        (letter,) = map(DeadLetter.from_record, harness.broker.records("dead_letters"))
        assert (letter.reason, letter.origin) == (f"http_{status}", "in/1/1")

    run_in_virtual_time(main())


@pytest.mark.parametrize(("status", "turns"), [(400, 9), (402, 9), (429, 9), (500, 9), (400, TURNS)])
def test_a_model_that_refuses_all_texts_ends_none_and_restarts_change_nothing(status: int, turns: int) -> None:
    async def main() -> None:
        records = [record(number, text=f"Fact {number}.") for number in range(turns)]
        for restart in range(5):
            harness = EmbedHarness(fails_for_an_hour(lambda: error_response(status)))
            await harness.run(records, until=HOUR / 6 * (restart + 1))
            assert set(harness.ends()) <= {"nothing_to_remember"}
            assert "dead_letters" not in harness.broker.topics
        harness = EmbedHarness(fails_for_an_hour(lambda: error_response(status)))
        await harness.run(records[:200])
        assert harness.ends().count(None) == min(turns, 200) * 9 // 10

    run_in_virtual_time(main())


def test_calls_for_records_that_were_drained_are_cancelled() -> None:
    """Records come again after each rebalance: their earlier calls neither go on nor hold slots."""

    async def main() -> None:
        harness = EmbedHarness(fails_for_one(lambda: error_response(500)))
        poison = [record(number, text=POISON) for number in range(1, 9)]
        for _ in range(5):
            await harness.run(poison, until=asyncio.get_running_loop().time() + 3)
        sent = harness.server.requests
        await asyncio.sleep(600)
        assert harness.server.requests == sent
        begun = asyncio.get_running_loop().time()
        await harness.run([record(number, text=f"Fact {number}.") for number in range(11, 20)])
        assert asyncio.get_running_loop().time() - begun <= 3
        assert harness.ends().count(None) == 9

    run_in_virtual_time(main())
