"""Reads partitions without being a member of a consumer group: the log, records once more, and committed offsets."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import (  # type: ignore[import-untyped] # aiokafka ships no types
    GroupLoadInProgressError,
    KafkaError,
    NoError,
    for_code,
)
from aiokafka.protocol.commit import OffsetFetchRequest  # type: ignore[import-untyped] # as above

from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay, retry_while
from mnemolog.projections.errors import LogGapError, LogUnreadableError
from mnemolog.projections.rebuild.replay import LogOpener
from mnemolog.projections.write.projector import LogRecord
from mnemolog.streams.errors import LogTruncated
from mnemolog.streams.kafka import connected_admin, connected_consumer, finish, new_consumer
from mnemolog.streams.kafka.record import KafkaRecord, Partition
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, topic_name
from mnemolog.streams.kafka_address import KafkaAddress

TIMEOUT_SECONDS: Final = 60.0
POLL_MILLISECONDS: Final = 1000
RETRY_SECONDS: Final = 0.5
REREAD_RECORDS: Final = 100
REREAD_BYTES: Final = 262_144

T = TypeVar("T")

log = get_logger(__name__)


def raise_fetch_errors(consumer: Any) -> None:
    """Let a started consumer see these errors: it then tries again where that helps.

    Otherwise a group whose coordinator is still loading looks like one that has committed nothing.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 -- nothing public sits on this path
    send = coordinator._send_req  # noqa: SLF001 -- as above

    async def send_and_check(request: Any) -> Any:
        response = await send(request)
        if isinstance(request, OffsetFetchRequest):
            error = for_code(getattr(response, "error_code", NoError.errno))  # no field before version 2
            if error is not NoError:
                coordinator.coordinator_dead()  # asks again who it is
                raise error(f"committed offsets of group {coordinator.group_id}")
        return response

    coordinator._send_req = send_and_check  # noqa: SLF001 -- as above


async def committed_offsets(admin: Any, group: str, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
    """The next offset of `group` for each of `places`, 0 where it has committed none.

    Raises aiokafka's errors. A coordinator that is still loading answers without the places that it was asked for,
    which must not look like a group that has read nothing.
    """
    wanted = list(places)
    found = await admin.list_consumer_group_offsets(group, partitions=wanted) if wanted else {}
    missing = [place for place in wanted if place not in found]
    if missing:
        raise GroupLoadInProgressError(f"the coordinator of group {group} does not know its offsets yet")
    return {place: max(0, found[place].offset) for place in wanted}


class KafkaLogReader:
    """`mnemolog.projections.rebuild.replay.LogSource` over Kafka.

    Every call waits up to `timeout` seconds without progress and then raises `LogUnreadableError`.
    """

    def __init__(self, address: KafkaAddress, *, prefix: str = "", timeout: float = TIMEOUT_SECONDS) -> None:
        self._address = address
        self._prefix = prefix
        self._topic = topic_name(MEMORY_EVENTS, prefix)
        self._timeout = timeout
        self._connecting: asyncio.Future[Any] | None = None
        self._partitions: list[int] = []

    @property
    def opener(self) -> LogOpener:
        return partial(open_kafka_log, self._address, prefix=self._prefix)

    async def partitions(self) -> list[int]:
        """The partitions of the log; they are asked for once, because their number never changes."""

        async def describe() -> list[int]:
            async with connected_admin(self._address) as admin:
                (topic,) = await admin.describe_topics([self._topic])
            return sorted(one["partition"] for one in topic["partitions"])

        if not self._partitions:
            self._partitions = await self._retry_until_timeout(describe)
        if not self._partitions:
            raise LogUnreadableError(f"topic {self._topic} does not exist at {self._address}: check both names")
        return self._partitions

    async def end_offset(self, partition: int) -> int:
        return (await self.end_offsets([partition]))[partition]

    async def end_offsets(self, partitions: Sequence[int]) -> dict[int, int]:
        """The next offset of each of these partitions, by one request to each broker."""
        places = [TopicPartition(self._topic, partition) for partition in partitions]
        consumer = await self._connected_consumer()
        ends: dict[Any, int] = await self._retry_until_timeout(lambda: consumer.end_offsets(places))
        return {place.partition: end for place, end in ends.items()}

    async def read(self, partition: int, start: int, stop: int) -> AsyncIterator[LogRecord]:
        """Also raises `mnemolog.projections.errors.LogGapError` where the topic no longer holds `start`."""
        if start >= stop:
            return
        place = TopicPartition(self._topic, partition)
        consumer = new_consumer(self._address, auto_offset_reset="none")
        try:
            await self._retry_until_timeout(consumer.start)
            first: int = (await self._retry_until_timeout(lambda: consumer.beginning_offsets([place])))[place]
            if first > start:
                raise LogGapError(partition, start, first)
            consumer.assign([place])
            consumer.seek(place, start)
            deadline = time.monotonic() + self._timeout
            while await consumer.position(place) < stop:
                for message in (await consumer.getmany(timeout_ms=POLL_MILLISECONDS)).get(place, ()):
                    if message.offset < stop:
                        yield LogRecord(offset=message.offset, value=message.value or b"")
                    deadline = time.monotonic() + self._timeout
                if time.monotonic() > deadline:
                    raise self._unreadable_error(f"no record of partition {partition} came")
        finally:
            await finish(consumer.stop())

    async def close(self) -> None:
        """Disconnect; a later call connects again."""
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
            consumer: Any = (await asyncio.gather(connecting, return_exceptions=True))[0]
            if not isinstance(consumer, BaseException):
                await finish(consumer.stop())

    async def _connected_consumer(self) -> Any:
        """The consumer of all callers. They share one attempt to connect, so that its timeout is nobody's twice."""
        attempt = self._connecting
        if attempt is None or (attempt.done() and (attempt.cancelled() or attempt.exception() is not None)):

            async def connect() -> Any:
                consumer = new_consumer(self._address)
                try:
                    await self._retry_until_timeout(consumer.start)
                except BaseException:
                    await finish(consumer.stop())
                    raise
                return consumer

            attempt = self._connecting = asyncio.ensure_future(connect())
        return await asyncio.shield(attempt)

    async def _retry_until_timeout(self, call: Callable[[], Awaitable[T]]) -> T:
        """Try again while Kafka is unavailable, until the timeout."""
        errors = ["it did not answer"]
        try:
            async with asyncio.timeout(self._timeout):
                return await retry_while(
                    lambda error: isinstance(error, KafkaError),
                    call,
                    delay=lambda _: RETRY_SECONDS,
                    on_retry=lambda _, error: errors.append(str(error)),
                )
        except TimeoutError as error:
            raise self._unreadable_error(errors[-1]) from error

    def _unreadable_error(self, what: str) -> LogUnreadableError:
        return LogUnreadableError(
            f"{self._topic} at {self._address} cannot be read within {self._timeout:.0f} s ({what}): "
            "check that Kafka runs and that the address is right, then start again"
        )


@asynccontextmanager
async def open_kafka_log(address: KafkaAddress, *, prefix: str = "") -> AsyncIterator[KafkaLogReader]:
    reader = KafkaLogReader(address, prefix=prefix)
    try:
        yield reader
    finally:
        await reader.close()


class KafkaRereader:
    """Reads records by partition and offset. Connects when it is first asked; waits while Kafka is unavailable."""

    def __init__(self, address: KafkaAddress) -> None:
        self._address = address
        self._delay = growing_delay(0.2, 5.0)
        self._connections = AsyncExitStack()
        self._consumers: dict[Partition, Any] = {}
        self._locks: dict[Partition, asyncio.Lock] = {}

    async def reread(self, partition: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        """Some records of `partition` from `start` on and before `stop`, and the offset to go on at.

        Records that retention has deleted are left out. Raises `LogTruncated` where the log now ends before `stop`.
        """

        async def read() -> tuple[Sequence[KafkaRecord], int]:
            place = TopicPartition(*partition)
            if partition not in self._consumers:
                options = {"auto_offset_reset": "earliest", "max_partition_fetch_bytes": REREAD_BYTES}
                consumer = await self._connections.enter_async_context(connected_consumer(self._address, **options))
                consumer.assign([place])
                consumer.seek(place, 0)
                self._consumers[partition] = consumer
            consumer = self._consumers[partition]
            if await consumer.position(place) != start:
                consumer.seek(place, start)
            while True:
                found = await consumer.getmany(place, timeout_ms=POLL_MILLISECONDS, max_records=REREAD_RECORDS)
                records = [
                    KafkaRecord.of_message(message, timestamp=message.timestamp / 1000)
                    for message in found.get(place, ())
                    if message.offset < stop
                ]
                next_offset = await consumer.position(place)
                if records or next_offset >= stop:
                    return records, min(next_offset, stop)
                end = (await consumer.end_offsets([place]))[place]
                if end < stop:
                    raise LogTruncated(
                        f"partition {place.partition} of {place.topic} ends at offset {end}, and records up to {stop} "
                        "were delivered: the broker has lost them; the stage starts again where its group stands"
                    )

        def on_retry(failures: int, error: BaseException) -> None:
            log.warning("reread_retried", topic=partition[0], failures=failures, error=repr(error))

        async with self._locks.setdefault(partition, asyncio.Lock()):
            return await retry_while(
                lambda error: isinstance(error, KafkaError), read, delay=self._delay, on_retry=on_retry
            )

    async def close(self) -> None:
        """Disconnect; a later call connects again."""
        connections, self._connections, self._consumers = self._connections, AsyncExitStack(), {}
        await connections.aclose()
