"""Faust's consumer and producer with corrections: where reading starts, what is committed, repeats, metadata."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.coordinator.assignors.roundrobin import (  # type: ignore[import-untyped] # as above
    RoundRobinPartitionAssignor,
)
from faust.tables.recovery import RebalanceAgain
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from mnemolog.projections.logs import get_logger
from mnemolog.streams.kafka import finish
from mnemolog.streams.kafka.offset_fetch import raise_fetch_errors
from mnemolog.streams.kafka.topics import CHAIN_PROTOCOL

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
        return consumer

    async def on_start(self) -> None:
        await super().on_start()
        raise_fetch_errors(self._consumer)

    async def _fetch_records(self, consumer: Any, *args: Any, **more: Any) -> Any:
        """Remember how far the logs go on behind what was fetched."""
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
                    app.begin_reading(offsets)
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
                log.error("records_expired_unread", stage=app.stage, **_partition_labels(tp), count=first[tp] - offset)
        # Faust would silently drop all that is written until the old offset is reached. Repeats are harmless.
        cut = {tp: first[tp] for tp, offset in known.items() if offset > end[tp]}
        for tp in cut:
            log.error(
                "committed_offset_beyond_end",
                stage=app.stage,
                **_partition_labels(tp),
                committed=known[tp],
                end=end[tp],
            )
        # The client seeks only where something was committed. Elsewhere it would read on behind what it has fetched
        # since the assignment, and what was dropped of that would be lost.
        unread = {tp: first[tp] for tp, offset in committed.items() if not offset}
        return {**committed, **cut, **unread}

    async def _offset_bounds(self, partitions: Collection[TP]) -> tuple[Mapping[TP, int], Mapping[TP, int]]:
        """The first and the next offset of each partition.

        Asked on a connection of its own: on that of the stage, each answer waits behind a fetch, for up to 1.5 s.
        """
        transport: Any = self.transport
        consumer = AIOKafkaConsumer(bootstrap_servers=driver.server_list(transport.url, transport.default_port))
        try:
            await consumer.start()
            return await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        finally:
            await finish(consumer.stop())


class _PatchedProducer(driver.Producer):
    """Writes each record once although answers get lost, and pauses while a partition has no leader."""

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


class PatchedTransport(driver.Transport):
    Consumer: ClassVar[Any] = _PatchedConsumer
    Producer: ClassVar[Any] = _PatchedProducer


def _partition_labels(tp: TP) -> dict[str, Any]:
    return {"topic": tp.topic, "partition": tp.partition}
