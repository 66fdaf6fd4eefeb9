"""One Faust App per stage: a consumer group, its window and its producer. Faust is the transport and nothing more.

What Faust would do by itself and is switched off here, because each of it loses records: decoding, acknowledging,
waiting without end for its streams, creating topics, tables.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import faust
import structlog
from faust.exceptions import ConsumerNotStarted
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streams import metrics
from streams.base_window import Delivery, Partition, Window
from streams.records import Record
from streams.send import Enqueue, Headers, Position, Sender
from streams.topics import Topic, size_limits, topic_name
from streams.tuning import KafkaTuning

log = structlog.get_logger(__name__)

StartOffsets = Callable[[frozenset[Partition]], Awaitable[Mapping[Partition, int]]]

METADATA_BACKOFF_SECONDS = 0.25
COMMIT_SECONDS = 5.0
# A poll must stay below a fifth of the buffer, or a full topic starves the App's other topics.
BUFFERED_RECORDS = 4096
POLLED_RECORDS = 500
# When back-pressure stops fetching for longer, the client leaves its group and never comes back.
POLL_INTERVAL_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """A stage's name and what it reads; the name is its consumer group's and its label in metrics."""

    name: str
    inputs: tuple[Topic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageApp:
    """A stage ready to be run once: a stopped App cannot be started again."""

    name: str
    app: faust.App
    window: Window
    tuning: KafkaTuning

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions of its inputs that it has now; none while it takes no part in its group."""
        app: Any = self.app
        if app.consumer_generation_id <= 0 or app.rebalancing:
            return frozenset()
        try:
            return frozenset(tp.partition for tp in app.consumer.assignment())
        except ConsumerNotStarted:
            return frozenset()


def group_id(stage: str, prefix: str = "") -> str:
    """Name a stage's consumer group."""
    return f"{prefix}mnemolog-{stage}"


def build_app(
    spec: StageSpec,
    make_window: Callable[[Sender], Window],
    *,
    bootstrap: str,
    prefix: str = "",
    tuning: KafkaTuning | None = None,
    start_offsets: StartOffsets | None = None,
) -> StageApp:
    """Build a fresh App whose records go through the window that `make_window` makes.

    The window's processing sends through the `Sender`, which works while the App runs. With `start_offsets` the
    stage begins each assignment at these offsets instead of the group's; it must name every partition it is
    asked for.
    """
    tuning = tuning or KafkaTuning()
    app = _App(group_id(spec.name, prefix), **_settings(bootstrap, tuning))
    window = make_window(Sender(_enqueue_through(app), limits=size_limits(prefix)))
    app.adopt(spec.name, window, tuning, start_offsets)
    for topic in spec.inputs:
        _consume(app, window, topic_name(topic, prefix))
    return StageApp(name=spec.name, app=app, window=window, tuning=tuning)


class _Consumer(driver.Consumer):
    """Starts where the stage keeps its offsets, in Kafka or elsewhere, and never where its topic does not go."""

    async def seek_to_committed(self) -> Mapping[TP, int]:
        app: Any = self.app
        try:
            return await (self._seek_to_group(app) if app.start_offsets is None else self._seek_to(app.start_offsets))
        # Faust would log it and read on from somewhere.
        except Exception as error:
            await app.crash(error)
            raise

    async def _seek_to(self, start_offsets: StartOffsets) -> Mapping[TP, int]:
        assigned = frozenset((tp.topic, tp.partition) for tp in self.assignment())
        offsets = {TP(*partition): offset for partition, offset in (await start_offsets(assigned)).items()}
        await self._thread.seek_wait(offsets)
        return offsets

    async def _seek_to_group(self, app: Any) -> Mapping[TP, int]:
        committed: dict[TP, Any] = dict(await super().seek_to_committed())  # None where the group has none yet
        if not committed:
            return {}
        first, end = await self.earliest_offsets(*committed), await self.highwaters(*committed)
        known = {tp: offset for tp, offset in committed.items() if offset is not None}
        for tp, offset in known.items():
            if offset < first[tp]:
                log.error("records_expired_unread", stage=app.stage, **_place(tp), count=first[tp] - offset)
        # Faust would silently drop all that is written until the old offset is reached. Repeats are harmless.
        cut = {tp: first[tp] for tp, offset in known.items() if offset > end[tp]}
        for tp in cut:
            log.error("topic_was_cut", stage=app.stage, **_place(tp), committed=known[tp], end=end[tp])
        await self._thread.seek_wait(cut)
        return {**committed, **cut}


class _Producer(driver.Producer):
    """Writes each record once although answers get lost, and asks a leaderless broker in moderation."""

    def _settings_extra(self) -> Mapping[str, Any]:
        app: Any = self.app
        if not app.tuning.idempotent:
            return super()._settings_extra()
        return {**super()._settings_extra(), "acks": "all", "enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        update = producer.client._metadata_update  # noqa: SLF001 -- nothing public sits on this path

        # Without the pause the sender asks again at once while a partition has no leader: 90 % of a core.
        async def update_in_moderation(*args: Any) -> bool:
            updated: bool = await update(*args)
            if not updated:
                await asyncio.sleep(METADATA_BACKOFF_SECONDS)
            return updated

        producer.client._metadata_update = update_in_moderation  # noqa: SLF001 -- as above
        return producer


class _Transport(driver.Transport):
    Consumer: ClassVar[Any] = _Consumer
    Producer: ClassVar[Any] = _Producer


class _App(faust.App):
    """Drains its window, for a bounded time, when partitions are taken away and when it stops."""

    stage: str
    window: Window
    tuning: KafkaTuning
    start_offsets: StartOffsets | None

    def adopt(self, stage: str, window: Window, tuning: KafkaTuning, start_offsets: StartOffsets | None) -> None:
        self.stage = stage
        self.window = window
        self.tuning = tuning
        self.start_offsets = start_offsets

    def _new_transport(self) -> Any:
        return _Transport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> Any:
        return _Transport(self.conf.broker_producer, self)

    async def stop(self) -> None:
        """Stop, and close what Faust keeps open when it was never fully started."""
        await super().stop()
        consumer: Any = self._consumer
        loop = consumer._thread.thread_loop if consumer is not None else None  # noqa: SLF001 -- nobody else can
        # The thread closes its loop when it ends; one that never began has three open files in it.
        if loop is not None and consumer._thread._thread is None:  # noqa: SLF001 -- as above
            loop.close()

    async def _consumer_wait_empty(self, consumer: Any, logger: Any) -> None:  # noqa: ARG002 -- Faust's signature
        # A crashed App's consumer thread is gone, and with it the loop that a commit would run on: waiting is no use.
        drained = await self.window.drain(0 if self.crashed else self.tuning.grace)
        metrics.DRAIN_REDONE.labels(stage=self.stage).inc(drained.redone)
        log.info(
            "window_drained",
            stage=self.stage,
            cancelled=drained.cancelled,
            dropped=drained.dropped,
            redone=drained.redone,
        )
        if drained.offsets and not self.crashed:
            await self._commit({TP(*partition): offset for partition, offset in drained.offsets.items()}, consumer)

    async def _commit(self, offsets: Mapping[TP, int], consumer: Any) -> None:
        """Commit what the window acknowledged: by now Faust has forgotten it."""
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                await consumer._commit_offsets(offsets, start_new_transaction=False)  # noqa: SLF001 -- `commit` has forgotten them
        except TimeoutError:
            log.warning("last_commit_timed_out", stage=self.stage, seconds=COMMIT_SECONDS)


def _enqueue_through(app: faust.App) -> Enqueue:
    async def enqueue(topic: str, *, key: bytes | None, value: bytes | None, headers: Headers) -> Awaitable[Position]:
        return await app.producer.send(topic, key, value, None, None, list(headers))

    return enqueue


def _consume(app: _App, window: Window, topic: str) -> None:
    async def deliveries(stream: Any) -> AsyncIterator[Delivery]:
        async for event in stream.noack().events():
            yield Delivery(record=_record(event.message), ack=event.ack)

    async def agent(stream: Any) -> None:
        await window.run(deliveries(stream), app.crash)

    channel = app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    app.agent(channel, name=f"{app.stage}-{topic}")(agent)


def _place(tp: TP) -> dict[str, Any]:
    return {"topic": tp.topic, "partition": tp.partition}


def _record(message: Any) -> Record:
    headers = message.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple((name, content or b"") for name, content in pairs),
        timestamp=message.timestamp,
    )


def _settings(bootstrap: str, tuning: KafkaTuning) -> dict[str, Any]:
    return {
        "broker": [f"kafka://{server}" for server in bootstrap.split(",")],
        "datadir": str(Path(tempfile.gettempdir()) / "mnemolog-faust"),
        "web_enabled": False,
        "processing_guarantee": "at_least_once",
        "key_serializer": "raw",
        "value_serializer": "raw",
        "topic_disable_leader": True,
        "topic_allow_declare": False,
        "stream_wait_empty": False,
        "stream_buffer_maxsize": BUFFERED_RECORDS,
        "broker_max_poll_records": POLLED_RECORDS,
        "broker_max_poll_interval": POLL_INTERVAL_SECONDS,
        "broker_commit_interval": tuning.commit_interval,
        "broker_commit_every": 1000,
        "broker_session_timeout": tuning.session_timeout,
        "broker_heartbeat_interval": tuning.heartbeat,
        "broker_rebalance_timeout": tuning.rebalance_timeout,
        "broker_request_timeout": max(90.0, tuning.rebalance_timeout + 10.0),
        "consumer_max_fetch_size": 262_144,
        "consumer_auto_offset_reset": "earliest",
        "producer_acks": -1,
        "producer_linger": tuning.linger,
        "producer_max_batch_size": 262_144,
        "producer_max_request_size": tuning.max_request_bytes,
        "producer_request_timeout": 60.0,
        "producer_compression_type": tuning.compression,
    }
