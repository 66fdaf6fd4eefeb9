"""Publishes records, and the receipts by which `status` and `wait` find their ends.

A record counts as accepted once every in-sync replica of the broker has it.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import orjson
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError, KafkaTimeoutError  # type: ignore[import-untyped] # the same
from pydantic import SecretStr

from mnemolog.client.inputs import kind_of
from mnemolog.errors import PartlyPublishedError, PublishError, ServerUnavailableError
from mnemolog.projections.errors import QueryError, check_id_text
from mnemolog.projections.queries.results import WriteResult
from mnemolog.schemas.base import SourceKind
from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.record import RecordMetadata
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, Headers, command_headers, topic_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receipt:
    """By what `wait` and `status` find the end of a record; `position` is its topic/partition/offset."""

    tenant: str | None = field(default=None, repr=False)
    user_id: str | None = field(default=None, repr=False)
    agent_id: str | None = field(default=None, repr=False)
    position: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReceipt(_Receipt):
    """A turn that the broker has. It will reach exactly one end; `wait` and `status` take the receipt and tell which.

    `position` is its topic/partition/offset. `notes` say in words what was left out of its messages.
    """

    turn_id: str
    status: Literal["pending"] = "pending"
    notes: tuple[str, ...] = ()
    content_hash: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReceipt(_Receipt):
    """A command that the broker has. It will reach exactly one end; `wait` and `status` take the receipt.

    `position` is its topic/partition/offset.
    """

    command_id: str
    status: Literal["pending"] = "pending"


Published = str | TurnReceipt | CommandReceipt | WriteResult
"""A turn or a command: its id, its receipt or its result."""
SeveralPublished = Iterable[TurnReceipt | CommandReceipt | WriteResult] | list[str] | tuple[str, ...]
"""Several turns or commands. Not any iterable of texts: a text is an iterable of texts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedId(_Receipt):
    """An id with what tells it apart: ids are unique for a user, else for an agent."""

    id: str
    kind: SourceKind = "turn"
    receipt: TurnReceipt | None = None

    @classmethod
    def of(cls, published: object) -> "PublishedId":
        """Raises `QueryError` for what is neither an id nor what publishing returned."""
        match published:
            case str():
                check_id_text(turn_id=published)
                return cls(id=published)
            case TurnReceipt():
                return cls(id=published.turn_id, receipt=published, position=published.position, **_owner(published))
            case CommandReceipt():
                return cls(id=published.command_id, kind="command", position=published.position, **_owner(published))
            case WriteResult():
                return cls(id=published.turn_id, kind=published.source_kind, **_owner(published))
        raise QueryError(
            f"turn_id must be text, or what `add`, a command, `wait` or `status` returned, not {kind_of(published)}"
        )

    def may_follow(self, result: WriteResult) -> bool:
        """Whether a result is the end of an earlier record of this id, so that the end of this record is still to come.

        A turn that failed, or what was rejected for a limit, may be published again under its id.
        """
        can_retry = result.limit is not None or (result.source_kind == "turn" and result.status == "failed")
        partition, _, offset = (result.position or "").rpartition("/")
        own_partition, _, own_offset = (self.position or "").rpartition("/")
        is_earlier = bool(partition) and partition == own_partition and int(offset) < int(own_offset)
        return can_retry and is_earlier


def _owner(published: TurnReceipt | CommandReceipt | WriteResult) -> dict[str, Any]:
    return {name: getattr(published, name) for name in ("tenant", "user_id", "agent_id")}


def message_hash(messages: Iterable[Any]) -> str:
    """Equal for equal messages, given as records or as the journal has them."""
    plain = [message if isinstance(message, dict) else message.model_dump() for message in messages]
    fields = [[message["role"], message["content"], message.get("name")] for message in plain]
    return hashlib.sha256(orjson.dumps(fields)).hexdigest()


def turn_receipt(turn: Turn, *, position: str | None, notes: tuple[str, ...] = ()) -> TurnReceipt:
    return TurnReceipt(
        turn_id=turn.turn_id,
        tenant=turn.scope.tenant,
        user_id=turn.scope.user_id,
        agent_id=turn.scope.agent_id,
        position=position,
        notes=notes,
        content_hash=message_hash(turn.messages),
    )


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
        self, producer: AIOKafkaProducer, *, prefix: str, timeout_seconds: float, command_headers: Headers = ()
    ) -> None:
        self._producer = producer
        self._headers: dict[SourceKind, Headers] = {"turn": [], "command": command_headers}
        self._topic = topic_name(CONVERSATION_TURNS, prefix)
        self._timeout_seconds = timeout_seconds
        # True once the broker has refused a record: its number is missing then, and all that follows is refused too.
        self.needs_reconnect = False

    @classmethod
    async def connect(
        cls,
        kafka: str,
        *,
        prefix: str = "",
        compression: str = "zstd",
        timeout_seconds: float = 30.0,
        command_token: SecretStr | None = None,
    ) -> Self:
        """Connect to the brokers at `kafka`; each acknowledgement has `timeout_seconds` seconds.

        Commands are sent with the `command_token`. Raises `ServerUnavailableError`.
        """
        producer = AIOKafkaProducer(
            bootstrap_servers=kafka,
            acks="all",
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
            raise ServerUnavailableError(
                f"Kafka at {kafka} cannot be reached ({error!r}): start it, or correct MNEMOLOG_KAFKA"
            ) from error
        headers = command_headers(command_token)
        return cls(producer, prefix=prefix, timeout_seconds=timeout_seconds, command_headers=headers)

    async def close(self) -> None:
        await self._producer.stop()

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
        except (KafkaError, TimeoutError) as error:
            return DeliveryReport(name=record.name, error=self._delivery_error(record, error))
        return DeliveryReport(name=record.name, position=f"{place.topic}/{place.partition}/{place.offset}")

    def _delivery_error(self, record: OutgoingRecord, cause: BaseException) -> PublishError:
        late = isinstance(cause, TimeoutError | KafkaTimeoutError)
        self.needs_reconnect = self.needs_reconnect or not late
        what = f"was not acknowledged within {self._timeout_seconds:g} s" if late else f"was refused ({cause!r})"
        error = PublishError(
            record.name,
            f"{record.name} {what} by {self._topic}: check that Kafka runs and the topic exists "
            f"(`mnemolog topics`), then publish again with the same {record.kind}_id",
        )
        error.__cause__ = cause
        return error


async def as_async(records: Iterable[OutgoingRecord]) -> AsyncIterator[OutgoingRecord]:
    """Records at hand, as `publish_stream` takes them."""
    for record in records:
        yield record
