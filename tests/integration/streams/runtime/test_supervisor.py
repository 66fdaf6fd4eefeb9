"""Stages side by side: a crash of one is not the others', a missing broker is waited for, a stop ends all."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence

import pytest

from mnemolog.streams import metrics
from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.runtime import supervisor
from mnemolog.streams.runtime.supervisor import run_stages
from tests.support.polling import eventually
from tests.support.servers.kafka_client import publish, quick_settings

pytestmark = pytest.mark.kafka


@pytest.fixture(autouse=True)
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("FIRST_RESTART_SECONDS", 0.05), ("MAX_RESTART_SECONDS", 0.2), ("CHECK_SECONDS", 0.05)):
        monkeypatch.setattr(supervisor, name, seconds)


class SupervisorHarness:
    """Stages of a test, what each of them has processed and how often it was built, and which wait."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.processed: dict[str, list[bytes | None]] = {}
        self.waiting: set[str] = set()
        self.build_counts: dict[str, int] = {}
        self.stop = asyncio.Event()
        self.ready: dict[str, bool] = {}

    def stage(self, name: str, *, fails: int = 0, waits_for: asyncio.Event | None = None) -> Callable[[], StageApp]:
        async def process(record: KafkaRecord) -> None:
            if waits_for is not None:
                self.waiting.add(name)
                await waits_for.wait()
            if self.build_counts[name] <= fails:
                raise RuntimeError("a bug")
            self.processed[name].append(record.value)

        def window(_: Sender) -> Window:
            return KeyedWindow(process)

        def build() -> StageApp:
            self.build_counts[name] = self.build_counts.get(name, 0) + 1
            self.processed.setdefault(name, [])
            return build_app(name, CONVERSATION_TURNS, window, quick_settings(self.bootstrap, self.prefix))

        return build

    def run(self, *builders: Callable[[], StageApp], last: Sequence[Callable[[], StageApp]] = ()) -> asyncio.Task[None]:
        return asyncio.create_task(run_stages(builders, self.stop, last=last, ready=self.ready))

    async def end(self, task: asyncio.Task[None]) -> None:
        self.stop.set()
        async with asyncio.timeout(20):
            await task


async def test_a_crashing_stage_does_not_touch_the_others(bootstrap: str, prefix: str) -> None:
    crew = SupervisorHarness(bootstrap, prefix)
    crashes = metrics.STAGE_CRASHES.labels(stage=f"{prefix}shaky")
    await publish(bootstrap, topic_name(CONVERSATION_TURNS, prefix), [(b"k", b"1"), (b"k", b"2")])
    task = crew.run(crew.stage("steady"), crew.stage(f"{prefix}shaky", fails=2))
    both = {"steady": [b"1", b"2"], f"{prefix}shaky": [b"1", b"2"]}
    await eventually(lambda: crew.processed == both)
    await crew.end(task)
    assert crew.build_counts == {"steady": 1, f"{prefix}shaky": 3}
    assert crashes._value.get() == 2


async def test_a_missing_broker_is_waited_for_and_does_not_hinder_the_stop(
    bootstrap: str, prefix: str, unused_tcp_port: int
) -> None:
    crew = SupervisorHarness(bootstrap, prefix)
    lost = SupervisorHarness(f"127.0.0.1:{unused_tcp_port}", prefix)
    lost.build_counts, lost.ready = crew.build_counts, crew.ready
    task = crew.run(crew.stage("near"), lost.stage("far"))
    await eventually(lambda: crew.ready.get("near") and crew.build_counts.get("far", 0) > 2)
    assert not crew.ready["far"]
    await crew.end(task)


async def test_a_stop_leaves_no_thread_no_task_and_the_root_logger_as_it_was(bootstrap: str, prefix: str) -> None:
    threads, tasks, level = set(threading.enumerate()), asyncio.all_tasks(), logging.getLogger().level
    crew = SupervisorHarness(bootstrap, prefix)
    task = crew.run(crew.stage("a"), crew.stage("b"))
    await eventually(lambda: crew.ready == {"a": True, "b": True})
    await crew.end(task)
    assert crew.ready == {"a": False, "b": False}
    await eventually(lambda: set(threading.enumerate()) <= threads)
    await eventually(lambda: asyncio.all_tasks() <= tasks)
    assert logging.getLogger().level == level
    assert logging.getLogger("aiokafka").getEffectiveLevel() == logging.WARNING


async def test_what_others_wait_for_while_they_drain_runs_until_they_have_stopped(bootstrap: str, prefix: str) -> None:
    crew, done = SupervisorHarness(bootstrap, prefix), asyncio.Event()
    task = crew.run(crew.stage("decides", waits_for=done), last=[crew.stage("writes")])
    await eventually(lambda: crew.ready == {"decides": True, "writes": True})
    await publish(bootstrap, topic_name(CONVERSATION_TURNS, prefix), [(b"k", b"1")])
    await eventually(lambda: crew.waiting == {"decides"} and crew.processed["writes"] == [b"1"])
    crew.stop.set()
    await publish(bootstrap, topic_name(CONVERSATION_TURNS, prefix), [(b"k", b"2")])
    await eventually(lambda: crew.processed["writes"] == [b"1", b"2"])
    assert crew.ready["writes"]
    done.set()
    await crew.end(task)
    assert crew.processed["decides"] == [b"1"]
    assert crew.ready == {"decides": False, "writes": False}
