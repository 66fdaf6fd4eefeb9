"""The Faust App of a stage.

Its consumer group, its window and its producer, with corrections of Faust's consumer and producer.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import faust
from aiokafka.coordinator.assignors.roundrobin import (  # type: ignore[import-untyped] # aiokafka ships no types
    RoundRobinPartitionAssignor,
)
from faust.exceptions import ConsumerNotStarted, NotReady, ProducerSendError
from faust.tables.recovery import RebalanceAgain
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from mnemolog.common.logs import get_logger
from mnemolog.streams import metrics
from mnemolog.streams.errors import ProducerDead
from mnemolog.streams.kafka import connected_consumer, connection_options
from mnemolog.streams.kafka.readers import KafkaRereader, raise_fetch_errors
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata, StartOffsetLookup
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CHAIN_PROTOCOL, Headers, Topic, group_id, max_record_bytes, topic_name
from mnemolog.streams.kafka.window import Delivery, KeyedWindow, Window
from mnemolog.streams.kafka_address import KafkaAddress
from mnemolog.streams.settings import StreamsSettings

log = get_logger(__name__)

METADATA_BACKOFF_SECONDS: Final = 0.25
UNREAD_SECONDS: Final = 0.1
"""So long a partition may wait to be fetched from when it is the first that the App reads."""


class _ChainAssignor(RoundRobinPartitionAssignor):  # type: ignore[misc] # aiokafka ships no types
    name = CHAIN_PROTOCOL


class _PatchedConsumerThread(driver.AIOKafkaConsumerThread):
    @driver.Consumer.task
    async def _thread_keepalive(self) -> None:
        """Ends at once, as the next one."""

    async def _keepalive2(self) -> None:
        """Ends at once. Faust wakes both threads each second, for calls of other drivers that wake neither."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        app: Any = self.consumer.app
        if len(app.chain) > 1:
            consumer._partition_assignment_strategy = [_ChainAssignor]  # noqa: SLF001 -- Faust offers no setting
        consumer._client_rack = app.settings.kafka_rack  # noqa: SLF001 -- as above
        return consumer

    async def on_start(self) -> None:
        await super().on_start()
        raise_fetch_errors(self._consumer)

    def fetched_at(self) -> dict[int, float]:
        """By assigned partition the Unix time at which Kafka last answered a fetch of it; 0 for never."""
        # The client's own questions raise in its thread's next rebalance, which can begin between two of them.
        client: Any = self._consumer
        assignment = client._subscription.subscription.assignment  # noqa: SLF001 -- nothing public tells it
        states = {tp.partition: assignment.state_value(tp) for tp in assignment.tps} if assignment else {}
        return {partition: (state.timestamp or 0) / 1000 for partition, state in states.items()}

    async def _fetch_records(self, consumer: Any, *args: Any, **more: Any) -> Any:
        """Remember how far the logs go on after what was fetched."""
        records = await super()._fetch_records(consumer, *args, **more)
        app: Any = self.consumer.app
        app.log_ends.update({tp: consumer.highwater(tp) or 0 for tp in records})
        return records


class _PatchedConsumer(driver.Consumer):
    """Starts at the offsets that the stage keeps, in Kafka or elsewhere, if the topic still has them.

    It commits what the stage's window has finished. Faust's own account of acknowledged messages is not used: it takes
    a gap for progress where nothing was committed yet, and counts what it drops in a rebalance as acknowledged.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._fetching = asyncio.Lock()

    def _new_consumer_thread(self) -> driver.AIOKafkaConsumerThread:
        return _PatchedConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109 -- Faust's signature
        """Fetch only what the App reads. What else comes was asked for in an earlier assignment: it is sought again."""
        app: Any = self.app
        wanted = {tp for tp in active_partitions or () if app.reads(tp)}
        if not wanted:  # the client would fetch from all
            await self.sleep(UNREAD_SECONDS)
            return {}
        async with self._fetching:
            records = await super()._getmany(wanted, timeout)
        return {tp: found for tp, found in (records or {}).items() if app.reads(tp)}

    @asynccontextmanager
    async def paused_fetching(self, offsets: Mapping[TP, int]) -> AsyncIterator[None]:
        """Seek these offsets while nothing is fetched, so that no fetch of an earlier assignment moves them."""
        async with self._fetching:
            await self._thread.seek_wait(offsets)
            yield

    def ack(self, message: Any) -> bool:  # noqa: ARG002 -- Faust's signature
        return False

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        app: Any = self.app
        places = (TP(*partition) for partition in app.window.finished)
        return (tp for tp in places if topics is None or tp in topics or tp.topic in topics)

    def _new_offset(self, tp: TP) -> int | None:
        app: Any = self.app
        offset: int | None = app.window.finished.get((tp.topic, tp.partition))
        return offset

    @driver.Consumer.task
    async def _commit_livelock_detector(self) -> None:
        """Ends at once: Faust takes idle minutes and waits for a server for a stuck commit, and blames its settings.

        The window's own clock sees what is stuck (`mnemolog_window_stalled_seconds`, `MNEMOLOG_WATCHDOG`).
        """

    async def seek_to_committed(self) -> Mapping[TP, int]:
        app: Any = self.app
        assignment = app.current_assignment
        if assignment is None:
            return {}
        try:
            offsets = await self._start_offsets(app)
            async with self.paused_fetching({tp: offset or 0 for tp, offset in offsets.items()}):
                if assignment == app.current_assignment:
                    app.reading_from = offsets
        # Faust would log it and read on from somewhere.
        except Exception as error:
            if assignment != app.current_assignment:
                raise RebalanceAgain from error  # its partitions are gone: the next assignment seeks for itself
            await app.crash(error)
            raise
        if assignment != app.current_assignment:
            raise RebalanceAgain
        return offsets

    async def _start_offsets(self, app: Any) -> Mapping[TP, int]:
        if app.start_offsets is None:
            return await self._group_offsets(app)
        assigned = frozenset((tp.topic, tp.partition) for tp in self.assignment())
        offsets = {TP(*partition): offset for partition, offset in (await app.start_offsets(assigned)).items()}
        # Without new records nothing would be committed, and what is done already would count as unread for ever.
        await self._thread.commit(offsets)
        return offsets

    async def _group_offsets(self, app: Any) -> Mapping[TP, int]:
        committed: dict[TP, Any] = dict(await super().seek_to_committed())  # None where the group has none yet
        if not committed:
            return {}
        first, end = await self._offset_bounds(committed)
        known = {tp: offset for tp, offset in committed.items() if offset is not None}
        for tp, offset in known.items():
            if offset < first[tp]:
                labels = {"stage": app.stage, "topic": tp.topic, "partition": tp.partition}
                log.error("records_expired_unread", **labels, count=first[tp] - offset)
        # Faust would silently drop all that is written until the old offset is reached. Repeats are harmless.
        cut = {tp: first[tp] for tp, offset in known.items() if offset > end[tp]}
        for tp in cut:
            labels = {"stage": app.stage, "topic": tp.topic, "partition": tp.partition}
            log.error("committed_offset_beyond_end", **labels, committed=known[tp], end=end[tp])
        # The client seeks only where something was committed. Elsewhere it would read on after what it has fetched
        # since the assignment, and what was dropped of that would be lost.
        unread = {tp: first[tp] for tp, offset in committed.items() if not offset}
        return {**committed, **cut, **unread}

    async def _offset_bounds(self, partitions: Collection[TP]) -> tuple[Mapping[TP, int], Mapping[TP, int]]:
        """The first and the next offset of each partition.

        Asked on a connection of its own: on that of the stage, each answer waits behind a fetch, for up to 1.5 s.
        """
        app: Any = self.app
        async with connected_consumer(app.settings.kafka_address) as consumer:
            return await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)


class _PatchedProducer(driver.Producer):
    """Writes each record once although answers get lost, and pauses while a partition has no leader."""

    def _settings_extra(self) -> Mapping[str, Any]:
        # Lost answers of the broker gave 86 to 94 repeats in 6000 sends without idempotence, none with it.
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


class PatchedTransport(driver.Transport):
    Consumer: ClassVar[Any] = _PatchedConsumer
    Producer: ClassVar[Any] = _PatchedProducer


COMMIT_SECONDS = 5.0
# A record waits in Faust's queue behind those of an owner with very many: the queue is short.
BUFFERED_RECORDS = 512
POLLED_RECORDS = 100
MAX_REQUEST_BYTES = 2 * 1024 * 1024
# When back-pressure stops fetching for longer, the client leaves its group and never comes back.
POLL_INTERVAL_SECONDS = 86_400.0


# Repeats after a kill are at most what the window holds plus what was acknowledged within this time.
COMMIT_INTERVAL_SECONDS = 1.0
REBALANCE_SECONDS: Final = 30.0
"""So long after its drain may have ended, a group removes a member that has not joined it again."""
STOP_SECONDS: Final = 10.0
"""What stopping an App may take besides the drain: the last commit, and leaving the group."""


class StageApp(faust.App):
    """The Faust App of a stage. It drains its window, for a bounded time, when it loses partitions and when it stops.

    It runs once: a stopped App cannot be started again.
    """

    stage: str
    window: Window
    rereader: KafkaRereader
    settings: StreamsSettings
    start_offsets: StartOffsetLookup | None
    chain: Sequence[str]
    check_start: Callable[[], Awaitable[None]] | None
    """Raises `StartRefused` where the stage must not start now."""
    log_ends: dict[TP, int]
    """The offset after the last record that the log of a partition is known to have."""

    reading_from: Mapping[TP, int | None] = {}
    """Where reading began in the present assignment, None for the beginning of the log.

    Nothing is read before that is known, nor once the window drains.
    """
    _assignments = 0
    _ended_assignment = 0
    _has_room_since = 0.0

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

    def unfetched_seconds(self) -> dict[int, float]:
        """By partition that it has now: the time since Kafka answered a fetch of it, while the window had room.

        To be called each second: it looks whether the window has room. An idle partition is fetched every 1.5 s.
        """
        now = time.time()  # as the client's
        if self.window.is_full:
            self._has_room_since = now
        if not self.is_group_member:
            return {}
        client: Any = self.consumer
        fetched = client._thread.fetched_at()  # noqa: SLF001 -- as above
        since = {partition: max(at, self._has_room_since) for partition, at in fetched.items()}
        return {partition: max(0.0, now - at) for partition, at in since.items()}

    @property
    def current_assignment(self) -> int | None:
        """The number of the present assignment; None from the moment that its window drains until the next one."""
        return self._assignments if self._assignments != self._ended_assignment else None

    def reads(self, tp: TP) -> bool:
        """Whether the present assignment has begun with this partition."""
        return tp in self.reading_from

    def delivers(self, message: Any) -> bool:
        return self.reads(message.tp) and message.offset >= (self.reading_from[message.tp] or 0)

    async def _on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._assignments += 1
        self._has_room_since = time.time()
        await super()._on_partitions_assigned(assigned, generation_id)

    async def _consumer_wait_empty(self, consumer: Any, logger: Any) -> None:  # noqa: ARG002 -- Faust's signature
        self.reading_from, self._ended_assignment = {}, self._assignments
        # A crashed App's consumer thread is gone, and with it the loop that a commit would run on: waiting is no use.
        drained = await self.window.drain(0 if self.crashed else self.settings.drain_grace)
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
    settings: StreamsSettings,
    *,
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
    prefix = settings.topic_prefix
    app = StageApp(group_id(name, prefix), **_faust_settings(settings))
    app.rereader = KafkaRereader(settings.kafka_address)
    app.log_ends = {}
    window = make_window(Sender(app.enqueue, limits=max_record_bytes(prefix)))
    if isinstance(window, KeyedWindow):
        window.reread = app.rereader.reread
    app.stage, app.window, app.settings, app.start_offsets = name, window, settings, start_offsets
    app.chain, app.check_start = chain or (name,), check_start

    async def deliveries(stream: Any) -> AsyncIterator[Delivery]:
        async for event in stream.noack().events():
            message = event.message
            if app.delivers(message):
                record = KafkaRecord.of_message(message, timestamp=message.timestamp)
                yield Delivery(record=record, epoch=app.window.epoch, log_end=app.log_ends.get(message.tp, 0))

    async def agent(stream: Any) -> None:
        try:
            await app.window.run(deliveries(stream), app.crash)
        # Faust would read on in a new agent, after the record that was taken, which would be lost.
        except Exception as error:
            await app.crash(error)
            raise

    source = topic_name(topic, prefix)
    channel = app.topic(source, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    app.agent(channel, name=f"{name}-{source}")(agent)
    return app


def _credentials(address: KafkaAddress) -> dict[str, Any]:
    """What an App needs to sign in, as `client_options` for other clients."""
    options = connection_options(address)
    context = options.get("ssl_context")
    match options:
        case {"sasl_oauth_token_provider": provider}:
            return {"broker_credentials": faust.OAuthCredentials(oauth_cb=provider, ssl_context=context)}
        case {"sasl_mechanism": mechanism, "sasl_plain_username": username, "sasl_plain_password": password}:
            account = {"username": username, "password": password, "mechanism": mechanism}
            return {"broker_credentials": faust.SASLCredentials(**account, ssl_context=context)}
        case {"ssl_context": _}:
            return {"broker_credentials": faust.SSLCredentials(context=context)}
    return {}


def _faust_settings(settings: StreamsSettings) -> dict[str, Any]:
    rebalance_timeout = settings.drain_grace + REBALANCE_SECONDS
    return {
        "broker": [f"kafka://{server}" for server in settings.kafka_address.servers.split(",")],
        **_credentials(settings.kafka_address),
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
        "broker_commit_interval": COMMIT_INTERVAL_SECONDS,
        "broker_commit_every": 1000,
        "broker_session_timeout": settings.session_timeout,
        "broker_heartbeat_interval": settings.session_timeout / 5,
        "broker_rebalance_timeout": rebalance_timeout,
        "broker_request_timeout": max(90.0, rebalance_timeout + 10.0),
        "consumer_max_fetch_size": 262_144,
        "consumer_auto_offset_reset": "earliest",
        "producer_acks": -1,
        # Records that come while a request is under way share the next one. With 5 ms a turn took 14 ms longer,
        # and no less CPU.
        "producer_linger": 0,
        "producer_max_batch_size": 262_144,
        "producer_max_request_size": MAX_REQUEST_BYTES,
        "producer_request_timeout": 60.0,
        "producer_compression_type": None if settings.compression == "none" else settings.compression,
    }
