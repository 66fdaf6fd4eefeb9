"""Build the Faust App of a stage: its consumer group, its window and its producer. Faust is used as transport only.

Faust's own decoding, acknowledging, waiting for streams, creation of topics and tables are switched off: each of them
can lose records.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust
from faust.exceptions import ConsumerNotStarted, NotReady, ProducerSendError
from faust.types import TP

from mnemolog.projections.logs import get_logger
from mnemolog.streams import metrics
from mnemolog.streams.errors import ProducerDead
from mnemolog.streams.kafka.faust_patches import PatchedTransport
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata, StartOffsetLookup
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import Headers, Topic, group_id, max_record_bytes, topic_name
from mnemolog.streams.kafka.window import Window
from mnemolog.streams.kafka.windows.keyed_window import KeyedWindow
from mnemolog.streams.kafka.windows.rereader import KafkaRereader
from mnemolog.streams.kafka.windows.state import Delivery

log = get_logger(__name__)

COMMIT_SECONDS = 5.0
# A record waits in Faust's queue behind those of an owner with very many: the queue is short.
BUFFERED_RECORDS = 512
POLLED_RECORDS = 100
# When back-pressure stops fetching for longer, the client leaves its group and never comes back.
POLL_INTERVAL_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTuning:
    """All times in seconds, all sizes in bytes.

    A killed worker's partitions wait for `session_timeout`, which the broker must allow
    (`group.min.session.timeout.ms`). Others notice a join or leave after `heartbeat_interval`. Repeats after a kill are
    at most what the window holds plus what was acknowledged within `commit_interval`. `drain_timeout` bounds how long a
    rebalance or stop waits for running calls; a call's own timeout should be shorter.
    """

    session_timeout: float = 10.0
    heartbeat_interval: float = 2.0
    commit_interval: float = 1.0
    drain_timeout: float = 30.0
    compression: str | None = "zstd"
    max_request_bytes: int = 2 * 1024 * 1024
    # Lost answers of the broker gave 86 to 94 repeats in 6000 sends without it, none with it.
    idempotent: bool = True

    @property
    def rebalance_timeout(self) -> float:
        """How long the group waits for a member that drains; after it, the member is removed."""
        return self.drain_timeout + 30.0

    @property
    def stop_timeout(self) -> float:
        """How long stopping an App may take: the drain, the last commit and leaving the group."""
        return self.drain_timeout + 10.0


class StageApp(faust.App):
    """The Faust App of a stage. It drains its window, for a bounded time, when it loses partitions and when it stops.

    It runs once: a stopped App cannot be started again.
    """

    stage: str
    window: Window
    rereader: KafkaRereader
    tuning: KafkaTuning
    start_offsets: StartOffsetLookup | None
    chain: Sequence[str]
    check_start: Callable[[], Awaitable[None]] | None
    """Raises `StartRefused` where the stage must not start now."""
    log_ends: dict[TP, int]
    """Behind the last record that the log of a partition is known to have."""

    # Where reading began in the present assignment; nothing is read before that is known, nor once the window drains.
    _reading_from: Mapping[TP, int | None] = {}
    _assignments = 0
    _ended_assignment = 0

    def _new_transport(self) -> Any:
        return PatchedTransport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> Any:
        return PatchedTransport(self.conf.broker_producer, self)

    def on_init_dependencies(self) -> Iterable[Any]:
        """Faust's services without its monitor, which wakes each second to compute what nobody asks for."""
        return [service for service in super().on_init_dependencies() if service is not self.monitor]

    async def stop(self) -> None:
        """Stop, and close what Faust keeps open when it was never fully started."""
        await super().stop()
        await self.rereader.close()
        consumer: Any = self._consumer
        loop = consumer._thread.thread_loop if consumer is not None else None  # noqa: SLF001 -- nothing public closes it
        # The thread closes its loop when it ends; one that never began has three open files in it.
        if loop is not None and consumer._thread._thread is None:  # noqa: SLF001 -- as above
            loop.close()

    @property
    def is_group_member(self) -> bool:
        return bool(self.consumer_generation_id > 0 and not self.rebalancing)

    @property
    def assigned_partitions(self) -> frozenset[int]:
        """The partitions of its topic that it has now; none while it takes no part in its group."""
        if not self.is_group_member:
            return frozenset()
        try:
            return frozenset(tp.partition for tp in self.consumer.assignment())
        except ConsumerNotStarted:
            return frozenset()

    @property
    def current_assignment(self) -> int | None:
        """The number of the present assignment; None from the moment that its window drains until the next one."""
        return self._assignments if self._assignments != self._ended_assignment else None

    def begin_reading(self, offsets: Mapping[TP, int | None]) -> None:
        """The transport stands at these offsets, None for the beginning of the log, and delivers from here on."""
        self._reading_from = offsets

    def reads(self, tp: TP) -> bool:
        """Whether the present assignment has begun with this partition."""
        return tp in self._reading_from

    def delivers(self, message: Any) -> bool:
        """Whether this message belongs to the present assignment."""
        return self.reads(message.tp) and message.offset >= (self._reading_from[message.tp] or 0)

    async def _on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._assignments += 1
        await super()._on_partitions_assigned(assigned, generation_id)

    async def _consumer_wait_empty(self, consumer: Any, logger: Any) -> None:  # noqa: ARG002 -- Faust's signature
        self._reading_from, self._ended_assignment = {}, self._assignments
        # A crashed App's consumer thread is gone, and with it the loop that a commit would run on: waiting is no use.
        drained = await self.window.drain(0 if self.crashed else self.tuning.drain_timeout)
        await self.rereader.close()
        metrics.DRAIN_REDONE.labels(stage=self.stage).inc(drained.started)
        counts = {"cancelled": drained.cancelled, "dropped": drained.dropped, "restarted_records": drained.started}
        log.info("window_drained", stage=self.stage, **counts)
        if drained.offsets and not self.crashed:
            offsets = {TP(*partition): offset for partition, offset in drained.offsets.items()}
            try:
                async with asyncio.timeout(COMMIT_SECONDS):
                    await consumer._commit_offsets(offsets, start_new_transaction=False)  # noqa: SLF001 -- `commit` has forgotten them
            except TimeoutError:
                log.warning("last_commit_timed_out", stage=self.stage, seconds=COMMIT_SECONDS)

    async def enqueue(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[RecordMetadata]:
        """Send as aiokafka's own producer does, with its errors."""
        try:
            return await self.producer.send(topic, key, value, None, None, list(headers))
        except (NotReady, ProducerSendError) as error:
            if error.__cause__ is not None:
                raise error.__cause__ from error
            raise ProducerDead(f"the producer of {topic} does not run: start the stage again ({error!r})") from error


def build_app(
    name: str,
    topic: Topic,
    make_window: Callable[[Sender], Window],
    *,
    bootstrap: str,
    prefix: str = "",
    tuning: KafkaTuning | None = None,
    start_offsets: StartOffsetLookup | None = None,
    chain: Sequence[str] = (),
    check_start: Callable[[], Awaitable[None]] | None = None,
) -> StageApp:
    """Build a new App that reads `topic` through the window that `make_window` makes.

    `name` is the stage's: its consumer group and its label in metrics are named after it. The window's processing
    sends through the `Sender`, which works while the App runs.
    What overflows a keyed window is read again from `topic`. With `start_offsets` the stage begins each assignment
    at these offsets instead of the group's; it must name every partition it is asked for. `chain` names the stages of
    the window and of those that it hands on to. `check_start` is awaited before the App starts.
    """
    tuning = tuning or KafkaTuning()
    app = StageApp(group_id(name, prefix), **_faust_settings(bootstrap, tuning))
    app.rereader = KafkaRereader(bootstrap)
    app.log_ends = {}
    window = make_window(Sender(app.enqueue, limits=max_record_bytes(prefix)))
    if isinstance(window, KeyedWindow):
        window.reread = app.rereader.reread
    app.stage, app.window, app.tuning, app.start_offsets = name, window, tuning, start_offsets
    app.chain, app.check_start = chain or (name,), check_start
    _attach_agent(app, topic_name(topic, prefix))
    return app


def _attach_agent(app: StageApp, topic: str) -> None:
    async def deliveries(stream: Any) -> AsyncIterator[Delivery]:
        async for event in stream.noack().events():
            if app.delivers(event.message):
                log_end = app.log_ends.get(event.message.tp, 0)
                yield Delivery(record=_to_kafka_record(event.message), epoch=app.window.epoch, log_end=log_end)

    async def agent(stream: Any) -> None:
        try:
            await app.window.run(deliveries(stream), app.crash)
        # Faust would read on in a new agent, behind the record that was taken, which would be lost.
        except Exception as error:
            await app.crash(error)
            raise

    channel = app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    app.agent(channel, name=f"{app.stage}-{topic}")(agent)


def _to_kafka_record(message: Any) -> KafkaRecord:
    headers = message.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return KafkaRecord(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple((name, content or b"") for name, content in pairs),
        timestamp=message.timestamp,
    )


def _faust_settings(bootstrap: str, tuning: KafkaTuning) -> dict[str, Any]:
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
        "broker_heartbeat_interval": tuning.heartbeat_interval,
        "broker_rebalance_timeout": tuning.rebalance_timeout,
        "broker_request_timeout": max(90.0, tuning.rebalance_timeout + 10.0),
        "consumer_max_fetch_size": 262_144,
        "consumer_auto_offset_reset": "earliest",
        "producer_acks": -1,
        # Records that come while a request is under way share the next one. With 5 ms a turn took 14 ms longer,
        # and no less CPU.
        "producer_linger": 0,
        "producer_max_batch_size": 262_144,
        "producer_max_request_size": tuning.max_request_bytes,
        "producer_request_timeout": 60.0,
        "producer_compression_type": tuning.compression,
    }
