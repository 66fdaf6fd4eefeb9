import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.schemas.envelopes import EmbeddedFacts, End, ExtractedFacts
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.dead_letters import DeadLetter, DeadLetterWriter
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata, SeenOrigins
from mnemolog.streams.kafka.sender import EnqueueRecord, Sender
from mnemolog.streams.stages.processor import (
    MAX_FAILURES_IN_A_ROW,
    FailureBudgets,
    ReceivedEnvelope,
    StageDefinition,
    StageProcessor,
    ended_envelope,
    envelope_reader,
    new_envelope,
    next_envelope,
)
from tests.support.servers.memory_broker import MemoryBroker
from tests.support.virtual_time import run_in_virtual_time

Work = Callable[[ReceivedEnvelope[ExtractedFacts], KafkaRecord], Awaitable[EmbeddedFacts | None]]


def processor(
    broker: MemoryBroker,
    work: Work,
    send: EnqueueRecord | None = None,
    *,
    limit: int = 1_000_000,
    budgets: FailureBudgets | None = None,
    seen: SeenOrigins | None = None,
    topic: str | None = "out",
    **more: Any,
) -> StageProcessor[ReceivedEnvelope[ExtractedFacts], EmbeddedFacts]:
    sender = Sender(send or broker.enqueue, limits={"out": limit})
    steps = StageDefinition(
        stage="embed",
        topic=topic,
        read=envelope_reader(ExtractedFacts),
        work=work,
        finish=ended_envelope(EmbeddedFacts),
        **more,
    )
    dead_letters = DeadLetterWriter(sender)
    seen = SeenOrigins() if seen is None else seen
    budgets = FailureBudgets() if budgets is None else budgets
    return StageProcessor(steps, sender, dead_letters, seen, budgets)


def values(broker: MemoryBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def ends(broker: MemoryBroker) -> list[End | None]:
    return [EmbeddedFacts.from_bytes(value).end for value in values(broker, "out")]


async def passes(received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> EmbeddedFacts:
    return next_envelope(EmbeddedFacts, received.require_valid())


def record(value: bytes | None, offset: int = 0) -> KafkaRecord:
    return KafkaRecord(
        topic="extracted_facts", partition=2, offset=offset, key=b"default/alice", value=value, timestamp=1.7e9
    )


TURN = Turn(
    turn_id="t1",
    scope=Scope(user_id="alice"),
    messages=(Message(role="user", content="I live in Berlin."),),
    occurred_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
)


def first_envelope(offset: int = 0) -> ExtractedFacts:
    turn = KafkaRecord(topic="conversation_turns", partition=2, offset=offset, key=None, value=b"", timestamp=1.7e9)
    return new_envelope(turn, TURN)


def envelope(offset: int = 0) -> bytes:
    return first_envelope(offset).to_bytes()


OUTPUT = next_envelope(EmbeddedFacts, first_envelope())


async def test_one_output_for_each_input_and_repeats_are_dropped() -> None:
    broker = MemoryBroker()
    stage = processor(broker, passes)
    await stage(record(envelope(0), 0))
    await stage(record(envelope(0), 1))
    await stage(record(envelope(1), 2))
    assert len(values(broker, "out")) == 2


async def test_a_record_whose_output_was_never_confirmed_is_no_repeat_when_it_comes_again() -> None:
    broker, stuck = MemoryBroker(), True

    async def send(
        topic: str, *, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]
    ) -> Awaitable[RecordMetadata]:
        if stuck:
            await asyncio.Event().wait()
        return await broker.enqueue(topic, key=key, value=value, headers=headers)

    stage = processor(broker, passes, send)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stage(record(envelope(0), 0)), 0.01)
    stuck = False
    await stage(record(envelope(0), 0))
    assert len(values(broker, "out")) == 1


async def test_an_output_without_a_topic_is_handed_on_and_the_record_counts_as_seen_at_the_end_of_its_chain() -> None:
    broker, seen = MemoryBroker(), SeenOrigins()
    first = processor(broker, passes, topic=None, seen=seen)
    last = processor(broker, passes, seen=seen)
    handed_on = await first(record(envelope(0), 4))
    assert handed_on is not None
    assert isinstance(handed_on.content, EmbeddedFacts)
    assert (handed_on.position, handed_on.key) == ("extracted_facts/2/4", b"default/alice")
    assert broker.records("out") == []
    assert await first(record(envelope(0), 4)) is not None, "redelivered before the end of the chain"
    assert await last(record(envelope(0), 4)) is None
    assert await first(record(envelope(0), 4)) is None
    assert len(values(broker, "out")) == 1


async def test_what_was_handed_on_is_not_decoded_again() -> None:
    taken = envelope_reader(EmbeddedFacts)(replace(record(b"the turn itself"), content=OUTPUT))
    assert taken.require_valid() is OUTPUT


async def test_bytes_that_are_no_record_are_dead_lettered_and_still_get_their_end() -> None:
    broker = MemoryBroker()
    await processor(broker, passes)(record(b"no json", 7))
    (letter,) = map(DeadLetter.from_record, broker.records("dead_letters"))
    assert (letter.value, letter.origin) == (b"no json", "extracted_facts/2/7")
    output = EmbeddedFacts.from_bytes(values(broker, "out")[0])
    assert output.source_id == "extracted_facts/2/7"
    assert output.end is not None
    assert (output.end.outcome, output.end.reason) == ("failed", "not_a_record")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        KeyError("odd"),
        psycopg.DataError("odd"),
        psycopg.errors.ProgramLimitExceeded("index row size exceeds the maximum"),
    ],
)
async def test_a_fault_of_one_record_ends_that_turn_alone(error: Exception) -> None:
    async def fails(received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> EmbeddedFacts:
        if received.envelope.origin.offset == 0:
            raise error
        return next_envelope(EmbeddedFacts, received.require_valid())

    broker = MemoryBroker()
    stage = processor(broker, fails)
    await stage(record(envelope(0), 0))
    await stage(record(envelope(1), 1))
    assert [end.reason if end else None for end in ends(broker)] == ["unexpected_error", None]
    assert len(values(broker, "dead_letters")) == 1


def failing(error: Exception) -> Work:
    async def work(_received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> EmbeddedFacts:
        raise error

    return work


NEWER = envelope().replace(b'"schema_version":1', b'"schema_version":2', 1)


@pytest.mark.parametrize(
    ("work", "value", "error"),
    [
        (failing(psycopg.OperationalError("away")), envelope(), psycopg.OperationalError),
        (passes, NEWER, UnsupportedVersionError),
    ],
    ids=["a database that is away", "a newer version"],
)
async def test_what_is_the_stages_trouble_escapes_and_nothing_is_written(
    work: Work, value: bytes, error: type[Exception]
) -> None:
    broker = MemoryBroker()
    with pytest.raises(error):
        await processor(broker, work)(record(value))
    assert broker.topics == {}


async def swells(received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> EmbeddedFacts:
    return next_envelope(EmbeddedFacts, received.require_valid(), metadata={"much": "x" * 5000})


@pytest.mark.parametrize(
    ("work", "reason"), [(failing(StatementTimeoutError("match")), "statement_timeout"), (swells, "output_too_large")]
)
async def test_what_never_succeeds_ends_its_record(work: Work, reason: str) -> None:
    broker = MemoryBroker()
    await processor(broker, work, limit=3000)(record(envelope()))
    (end,) = ends(broker)
    assert end is not None
    assert end.reason == reason


PROGRAM_ERROR = TypeError("a fault of the program")
INVALID_REPLY = SourceEndedError("invalid_reply", "no JSON", possibly_systemic=True)


@pytest.mark.parametrize("error", [PROGRAM_ERROR, INVALID_REPLY], ids=lambda error: type(error).__name__)
def test_after_many_failures_in_a_row_none_ends_until_one_record_succeeds(error: Exception) -> None:
    """Restarts and records that were not worked on change nothing."""

    async def main() -> None:
        broker, budgets, mended = MemoryBroker(), FailureBudgets(), asyncio.Event()

        async def works(received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> EmbeddedFacts:
            if received.envelope.origin.offset % 10 and not mended.is_set():
                raise error
            return next_envelope(EmbeddedFacts, received.require_valid())

        def is_raw(output: EmbeddedFacts) -> bool:
            return output.origin.offset % 10 == 0

        tasks = []
        for restart in range(5):
            stage = processor(broker, works, budgets=budgets, shows_health=lambda output: not is_raw(output))
            offsets = range(restart * 100, restart * 100 + 100)
            tasks += [asyncio.create_task(stage(record(envelope(offset), offset))) for offset in offsets]
            await asyncio.sleep(3600)
        assert len(values(broker, "dead_letters")) == MAX_FAILURES_IN_A_ROW
        assert len(values(broker, "out")) == MAX_FAILURES_IN_A_ROW + 50
        mended.set()
        await asyncio.gather(*tasks)
        assert len(values(broker, "dead_letters")) == MAX_FAILURES_IN_A_ROW

    run_in_virtual_time(main())


async def fails_at_odd_offsets(received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> EmbeddedFacts:
    if received.envelope.origin.offset % 2:
        raise PROGRAM_ERROR
    return next_envelope(EmbeddedFacts, received.require_valid())


REFUSED = SourceEndedError("http_400", "context too long")


@pytest.mark.parametrize(("work", "failures"), [(fails_at_odd_offsets, 100), (failing(REFUSED), 200)])
def test_failures_among_successes_and_ends_certainly_of_one_source_are_never_held(work: Work, failures: int) -> None:
    async def main() -> None:
        broker = MemoryBroker()
        stage = processor(broker, work)
        for offset in range(200):
            await stage(record(envelope(offset), offset))
        assert len(values(broker, "dead_letters")) == failures
        assert asyncio.get_running_loop().time() == 0

    run_in_virtual_time(main())


def test_before_a_held_record_is_tried_again_its_replies_are_forgotten() -> None:
    async def main() -> None:
        asked: dict[int, int] = {}

        async def works(received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> EmbeddedFacts:
            offset = received.envelope.origin.offset
            if offset in asked:
                return next_envelope(EmbeddedFacts, received.require_valid())
            raise INVALID_REPLY

        async def forget(received: ReceivedEnvelope[ExtractedFacts]) -> None:
            asked[received.envelope.origin.offset] = 1

        stage = processor(MemoryBroker(), works, before_retry=forget)
        await asyncio.gather(*(stage(record(envelope(n), n)) for n in range(MAX_FAILURES_IN_A_ROW + 1)))
        assert asked == {MAX_FAILURES_IN_A_ROW: 1}

    run_in_virtual_time(main())


async def test_a_turn_that_has_its_end_gets_no_second_output() -> None:
    async def committed(_: ReceivedEnvelope[ExtractedFacts], __: KafkaRecord) -> None:
        return None

    broker = MemoryBroker()
    await processor(broker, committed)(record(envelope()))
    assert broker.topics == {}


async def test_an_ended_turn_carries_what_was_spent_on_it() -> None:
    step = Step(stage="embed", milliseconds=5, llm_calls=3, reprompts=2)
    broker = MemoryBroker()
    await processor(broker, failing(SourceEndedError("invalid_reply", "no JSON", step=step)))(record(envelope()))
    output = EmbeddedFacts.from_bytes(values(broker, "out")[0])
    assert output.steps[-1].llm_calls == 3
    (letter,) = map(DeadLetter.from_record, broker.records("dead_letters"))
    assert letter.tries == 3
