"""Publishing turns: a turn counts as accepted once every in-sync replica of the broker has it."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol, Self

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError, KafkaTimeoutError  # type: ignore[import-untyped] # the same

from mnemolog.errors import PublishError, ServerUnavailableError
from schemas.turn import Turn
from streams.topics import CONVERSATION_TURNS, topic_name


class Position(Protocol):
    """Where the broker put a record."""

    topic: str
    partition: int
    offset: int


OUTSTANDING: Final = 1000
"""Records that wait for their acknowledgement at the most; bounds the memory of publishing a long file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One record for `conversation_turns`. `name` is what errors call it: the turn's id, or its line."""

    name: str
    key: bytes | None
    value: bytes

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(name=turn.turn_id, key=turn.scope.key, value=turn.to_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The broker's word for one record: its `position` (topic/partition/offset), or the `error`."""

    name: str
    position: str | None = None
    error: PublishError | None = None


class Publisher:
    """Sends turns through one idempotent producer with acks=all. Make it with `connect`; close it."""

    def __init__(self, producer: AIOKafkaProducer, *, topic: str, within: float) -> None:
        self._producer = producer
        self._topic = topic
        self._within = within
        self._refused = False

    @property
    def worn_out(self) -> bool:
        """Whether the broker has refused a record: its number is missing then, and all that follows is refused too."""
        return self._refused

    @classmethod
    async def connect(cls, kafka: str, *, prefix: str = "", compression: str = "zstd", within: float = 30.0) -> Self:
        """Connect to the brokers at `kafka`; each acknowledgement has `within` seconds.

        Raises `ServerUnavailableError`.
        """
        producer = AIOKafkaProducer(
            bootstrap_servers=kafka,
            acks="all",
            enable_idempotence=True,
            compression_type=None if compression == "none" else compression,
            linger_ms=2,
            max_request_size=CONVERSATION_TURNS.max_message_bytes,
            request_timeout_ms=round(within * 1000),
        )
        try:
            await asyncio.wait_for(producer.start(), within)
        except (KafkaError, TimeoutError) as error:
            await producer.stop()
            raise ServerUnavailableError(
                f"Kafka at {kafka} cannot be reached ({error!r}): start it, or correct MNEMOLOG_KAFKA"
            ) from error
        except BaseException:
            await producer.stop()
            raise
        return cls(producer, topic=topic_name(CONVERSATION_TURNS, prefix), within=within)

    async def close(self) -> None:
        await self._producer.stop()

    async def publish(self, letter: Letter) -> Receipt:
        """Send one record and wait for its acknowledgement. Raises `PublishError` when none comes in time."""
        receipt = await (await self._enqueue(letter))
        if receipt.error:
            raise receipt.error
        return receipt

    async def publish_all(self, letters: AsyncIterable[Letter]) -> AsyncIterator[Receipt]:
        """Send records in their order, many at a time; yields one receipt for each, in the same order."""
        waiting: asyncio.Queue[asyncio.Task[Receipt] | None] = asyncio.Queue()
        room = asyncio.Semaphore(OUTSTANDING)

        async def feed() -> None:
            async for letter in letters:
                await room.acquire()
                waiting.put_nowait(await self._enqueue(letter))

        feeder = asyncio.create_task(feed())
        feeder.add_done_callback(lambda _: waiting.put_nowait(None))
        try:
            while (task := await waiting.get()) is not None:
                yield await task
                room.release()
            await feeder
        finally:
            feeder.cancel()

    async def _enqueue(self, letter: Letter) -> asyncio.Task[Receipt]:
        """Hand the record to the producer, so that the order is kept; the task waits for the receipt."""
        deadline = asyncio.get_running_loop().time() + self._within
        try:
            async with asyncio.timeout_at(deadline):
                sent = await self._producer.send(self._topic, key=letter.key, value=letter.value)
        except (KafkaError, TimeoutError) as error:
            return asyncio.create_task(_known(Receipt(name=letter.name, error=self._error(letter, error))))
        return asyncio.create_task(self._acknowledged(letter, sent, deadline))

    async def _acknowledged(self, letter: Letter, sent: Awaitable[Position], deadline: float) -> Receipt:
        try:
            async with asyncio.timeout_at(deadline):
                place = await sent
        except (KafkaError, TimeoutError) as error:
            return Receipt(name=letter.name, error=self._error(letter, error))
        return Receipt(name=letter.name, position=f"{place.topic}/{place.partition}/{place.offset}")

    def _error(self, letter: Letter, cause: BaseException) -> PublishError:
        late = isinstance(cause, TimeoutError | KafkaTimeoutError)
        self._refused = self._refused or not late
        what = f"was not acknowledged within {self._within:g} s" if late else f"was refused ({cause!r})"
        error = PublishError(
            letter.name,
            f"{letter.name} {what} by {self._topic}: check that Kafka runs and the topic exists (`mnemolog topics`), "
            "then publish again with the same turn_id",
        )
        error.__cause__ = cause
        return error


async def _known(receipt: Receipt) -> Receipt:
    return receipt


async def each(letters: Iterable[Letter]) -> AsyncIterator[Letter]:
    """Letters at hand, as `publish_all` takes them."""
    for letter in letters:
        yield letter
