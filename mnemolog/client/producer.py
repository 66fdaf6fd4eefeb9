"""Publishes records. A record counts as accepted once every in-sync replica of the broker has it."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from aiokafka.errors import KafkaError, KafkaTimeoutError  # type: ignore[import-untyped] # aiokafka ships no types
from pydantic import SecretStr

from mnemolog.common.logs import get_logger, limit_noise
from mnemolog.errors import PartlyPublishedError, PublishError, ServerUnavailableError
from mnemolog.schemas.base import SourceKind
from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka import new_producer
from mnemolog.streams.kafka.access import missing_right, refuse_wrong_access
from mnemolog.streams.kafka.record import RecordMetadata
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, Headers, command_headers, topic_name
from mnemolog.streams.kafka_address import KafkaAddress

_log = get_logger(__name__)
PUBLISH_TIMEOUT_SECONDS: Final = 10.0
"""How long the acknowledgement of a record may take."""
WHY_SECONDS: Final = 2.0
"""How long the reason may take for which no broker could be connected to."""
MAX_UNACKNOWLEDGED: Final = 1000
"""Records that wait for their acknowledgement at the most; bounds the memory of publishing a long file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRecord:
    """A record for `conversation_turns`. `name` is what errors call it: the id of the turn or command, or its line."""

    name: str
    key: bytes | None
    value: bytes
    kind: SourceKind = "turn"

    @classmethod
    def of(cls, record: Turn | Command) -> Self:
        key, value = record.scope.key, record.to_bytes()
        if isinstance(record, Command):
            return cls(name=record.command_id, key=key, value=value, kind="command")
        return cls(name=record.turn_id, key=key, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """The broker's answer for one record: its `position` (topic/partition/offset), or the `error`."""

    name: str
    position: str | None = None
    error: PublishError | None = None


class RecordProducer:
    """Sends records through one idempotent producer with acks=all. Make it with `connect`; close it."""

    def __init__(
        self,
        producer: Any,
        kafka: KafkaAddress,
        *,
        prefix: str,
        timeout_seconds: float,
        command_headers: Headers = (),
    ) -> None:
        self._producer = producer
        self._kafka = kafka
        self._headers: dict[SourceKind, Headers] = {"turn": [], "command": command_headers}
        self._topic = topic_name(CONVERSATION_TURNS, prefix)
        self._timeout_seconds = timeout_seconds
        # True once the broker has refused a record: its number is missing then, and all that follows is refused too.
        self.needs_reconnect = False

    @classmethod
    async def connect(
        cls,
        kafka: KafkaAddress,
        *,
        prefix: str = "",
        compression: str = "zstd",
        timeout_seconds: float = PUBLISH_TIMEOUT_SECONDS,
        command_token: SecretStr | None = None,
    ) -> Self:
        """Connect to the brokers at `kafka`; each acknowledgement has `timeout_seconds` seconds.

        Commands are sent with the `command_token`. Raises `ServerUnavailableError`, and `SettingsError` where
        the brokers refuse the account or its certificate.
        """
        limit_noise()
        producer = new_producer(
            kafka,
            enable_idempotence=True,
            compression_type=None if compression == "none" else compression,
            linger_ms=2,
            max_request_size=CONVERSATION_TURNS.max_message_bytes,
            request_timeout_ms=round(timeout_seconds * 1000),
        )
        try:
            await asyncio.wait_for(producer.start(), timeout_seconds)
        except BaseException as error:
            await producer.stop()
            if not isinstance(error, KafkaError | TimeoutError):
                raise
            with suppress(TimeoutError):  # a broker that has said nothing so far is not waited for as long again
                await asyncio.wait_for(refuse_wrong_access(kafka, error), WHY_SECONDS)
            raise ServerUnavailableError(
                f"Kafka at {kafka} cannot be reached ({error!r}): start it, or correct MNEMOLOG_KAFKA"
            ) from error
        headers = command_headers(command_token)
        return cls(producer, kafka, prefix=prefix, timeout_seconds=timeout_seconds, command_headers=headers)

    async def close(self) -> None:
        await self._producer.stop()

    def abandon(self) -> None:
        """Never use it again, nor close it: its connections are those of the parent process, or its loop has ended."""
        self._producer._closed = True  # noqa: SLF001 - else it says at its end that nobody closed it

    async def ping(self) -> None:
        """Ask the brokers what partitions there are. Raises `ServerUnavailableError` where none answers in time."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answered = await self._producer.client.force_metadata_update()
        except (KafkaError, TimeoutError):
            answered = False
        if not answered:
            raise ServerUnavailableError(f"Kafka at {self._kafka} does not answer: start it, or correct MNEMOLOG_KAFKA")

    async def publish(self, record: OutgoingRecord) -> DeliveryReport:
        """Send one record and wait for its acknowledgement. Raises `PublishError` when none comes in time."""
        report = await (await self._enqueue(record))
        if report.error:
            raise report.error
        return report

    async def publish_stream(self, records: AsyncIterable[OutgoingRecord]) -> AsyncIterator[DeliveryReport]:
        """Send records in their order, many at a time; yields one report for each, in the same order."""
        waiting: asyncio.Queue[asyncio.Task[DeliveryReport] | None] = asyncio.Queue()
        room = asyncio.Semaphore(MAX_UNACKNOWLEDGED)

        async def feed() -> None:
            async for record in records:
                await room.acquire()
                waiting.put_nowait(await self._enqueue(record))

        feeder = asyncio.create_task(feed())
        feeder.add_done_callback(lambda _: waiting.put_nowait(None))
        try:
            while (task := await waiting.get()) is not None:
                yield await task
                room.release()
            await feeder
        finally:
            feeder.cancel()

    async def publish_batch(self, records: Iterable[OutgoingRecord]) -> list[DeliveryReport]:
        """Send records in their order; returns once all are acknowledged. Raises `PartlyPublishedError`."""
        reports = [report async for report in self.publish_stream(as_async(records))]
        failed = {report.name: str(report.error) for report in reports if report.error}
        if failed:
            raise PartlyPublishedError([report.name for report in reports if not report.error], failed)
        return reports

    async def _enqueue(self, record: OutgoingRecord) -> asyncio.Task[DeliveryReport]:
        """Hand the record to the producer, so that the order is kept; the task waits for the report."""
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            async with asyncio.timeout_at(deadline):
                headers = list(self._headers[record.kind])
                sent = await self._producer.send(self._topic, key=record.key, value=record.value, headers=headers)
        except (KafkaError, TimeoutError) as error:
            sent = asyncio.get_running_loop().create_future()
            sent.set_exception(error)
        return asyncio.create_task(self._wait_for_ack(record, sent, deadline))

    async def _wait_for_ack(
        self, record: OutgoingRecord, sent: Awaitable[RecordMetadata], deadline: float
    ) -> DeliveryReport:
        try:
            async with asyncio.timeout_at(deadline):
                place = await sent
        except (KafkaError, TimeoutError) as cause:
            late = isinstance(cause, TimeoutError | KafkaTimeoutError)
            self.needs_reconnect = self.needs_reconnect or not late
            what = f"was not acknowledged within {self._timeout_seconds:g} s" if late else f"was refused ({cause!r})"
            runs = "check that Kafka runs and the topic exists (`mnemolog topics`)"
            advice = missing_right(self._kafka, cause) or runs
            error = PublishError(
                record.name,
                f"{record.name} {what} by {self._topic}: {advice}, then publish again with the same {record.kind}_id",
            )
            error.__cause__ = cause
            return DeliveryReport(name=record.name, error=error)
        return DeliveryReport(name=record.name, position=f"{place.topic}/{place.partition}/{place.offset}")


async def as_async(records: Iterable[OutgoingRecord]) -> AsyncIterator[OutgoingRecord]:
    """Records at hand, as `publish_stream` takes them."""
    for record in records:
        yield record
