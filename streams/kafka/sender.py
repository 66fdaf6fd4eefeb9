"""Durable sends: a send returns when the broker has the record."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from aiokafka.errors import (  # type: ignore[import-untyped] # aiokafka ships no types
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordTooLargeError,
)
from faust.exceptions import NotReady, ProducerSendError

from mnemolog.streams import metrics
from mnemolog.streams.errors import ProducerDead, RecordTooLarge
from mnemolog.streams.kafka.topics import Headers

log = structlog.get_logger(__name__)

# What Kafka adds to key, value and headers: batch header 61 bytes, record header at most 40, and per header a few.
OVERHEAD_BYTES: Final = 512
INITIAL_DELAY_SECONDS: Final = 0.2
MAX_DELAY_SECONDS: Final = 5.0


class RecordMetadata(Protocol):
    """Where the broker put a record."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


class EnqueueRecord(Protocol):
    """Hand a record to a producer; the result's result is the broker's answer (`AIOKafkaProducer.send`)."""

    async def __call__(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[RecordMetadata]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRecord:
    """Where a record lies, now that it is durable."""

    topic: str
    partition: int
    offset: int


class Sender:
    """Sends records through one producer and waits out whatever passes.

    `limits` names the largest record per topic in bytes; a topic without a limit is left to the broker.
    """

    def __init__(
        self,
        enqueue: EnqueueRecord,
        *,
        limits: Mapping[str, int],
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._enqueue = enqueue
        self._limits = limits
        self._jitter = jitter
        self._sleep = sleep

    async def send(self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers = ()) -> SentRecord:
        """Send one record and return its position once the broker has confirmed it.

        Blocks for as long as the broker is away. Raises `RecordTooLarge` (dead-letter the origin) and
        `ProducerDead` (crash the stage). A retry can write the record twice; consumers drop repeats.
        """
        self._check_size(topic, key, value, headers)
        tries = 0
        while True:
            try:
                position = await (await self._enqueue(topic, key=key, value=value, headers=list(headers)))
            except (KafkaError, ProducerSendError, NotReady) as error:
                cause = error.__cause__ if isinstance(error, ProducerSendError) else error
                _raise_unless_retriable(topic, cause or error)
                log.warning("send_retried", topic=topic, tries=tries, error=repr(cause))
            else:
                metrics.RECORDS_SENT.labels(topic=topic).inc()
                return SentRecord(topic=position.topic, partition=position.partition, offset=position.offset)
            metrics.SEND_RETRIES.labels(topic=topic).inc()
            await self._sleep(self._retry_delay(tries))
            tries += 1

    def _check_size(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        in_headers = sum(len(name) + len(content) for name, content in headers)
        size = len(key or b"") + len(value or b"") + in_headers + OVERHEAD_BYTES
        limit = self._limits.get(topic, size)
        if size > limit:
            raise RecordTooLarge(
                f"a record of {size} bytes does not fit into {topic}, which takes {limit}: dead-letter its origin"
            )

    def _retry_delay(self, tries: int) -> float:
        longest = min(MAX_DELAY_SECONDS, INITIAL_DELAY_SECONDS * 2.0 ** min(tries, 10))
        return longest * (0.5 + self._jitter() / 2)


def _raise_unless_retriable(topic: str, error: BaseException) -> None:
    if isinstance(error, MessageSizeTooLargeError | RecordTooLargeError):
        raise RecordTooLarge(f"{topic} refused a record as too large: {error}") from error
    if not (getattr(error, "retriable", False) or isinstance(error, KafkaTimeoutError)):
        raise ProducerDead(f"sending to {topic} failed for good: start the stage anew ({error!r})") from error
