"""What a stage tells Faust."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

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


async def test_an_idle_app_has_no_timers_that_serve_nobody() -> None:
    """Faust's monitor, its search for stuck commits (which takes idle minutes for one), and its waking of threads."""
    stage = build_app("copy", CONVERSATION_TURNS, window, bootstrap="localhost:9092")
    services = list(stage.on_init_dependencies())
    assert stage.monitor not in services
    consumer: Any = stage.consumer
    async with asyncio.timeout(1):  # each slept for at least as long
        await consumer._commit_livelock_detector.fun(consumer)
        await consumer._thread._keepalive2()
        await consumer._thread._thread_keepalive.fun(consumer._thread)
    consumer._thread.thread_loop.close()
