"""What a stage tells Faust."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from mnemolog.streams.kafka.app import KafkaTuning, build_app
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.kafka.window import Window


def window(_: Sender) -> Window:
    async def nothing(_: Sequence[KafkaRecord]) -> None:
        return

    return Window(nothing)


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_lost_answer_of_the_broker_repeats_no_record_unless_idempotence_is_off(*, idempotent: bool) -> None:
    tuning = KafkaTuning(idempotent=idempotent)
    stage = build_app("copy", CONVERSATION_TURNS, window, bootstrap="localhost:9092", tuning=tuning)
    producer: Any = stage.producer
    settings = producer._settings_extra()
    assert settings == ({"acks": "all", "enable_idempotence": True} if idempotent else {})


async def test_minutes_without_records_are_no_stuck_commit(caplog: pytest.LogCaptureFixture) -> None:
    """A record that comes after ten idle minutes waits for its fetch; nothing has been committed since the start."""
    stage = build_app("copy", CONVERSATION_TURNS, window, bootstrap="localhost:9092")
    turns = TP("conversation_turns", 0)
    consumer: Any = stage.consumer
    thread = consumer._thread
    unread = SimpleNamespace(highwater=1, position=0, timestamp=600_000)
    assignment = SimpleNamespace(active=True, state_value=lambda _: unread)
    subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))
    thread._consumer = SimpleNamespace(_fetcher=SimpleNamespace(_subscriptions=subscription))
    topics: Any = stage.topics
    topics._acking_topics.add(turns.topic)
    thread.time_started = 0.0
    stage.monitor.stream_inbound_time[turns] = 599.0
    with caplog.at_level("ERROR"):
        consumer.verify_event_path(600.0, turns)
    thread.thread_loop.close()
    assert caplog.messages == []
