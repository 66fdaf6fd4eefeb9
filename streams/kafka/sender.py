"""Send a record and return once the broker has acknowledged it; retried while the broker is unavailable."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from aiokafka.errors import (  # type: ignore[import-untyped] # aiokafka ships no types
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordTooLargeError,
)

from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay, retry_while
from mnemolog.streams import metrics
from mnemolog.streams.errors import ProducerDead, RecordTooLarge
from mnemolog.streams.kafka.record import RecordMetadata
from mnemolog.streams.kafka.topics import Headers

log = get_logger(__name__)

# What Kafka adds to key, value and headers: batch header 61 bytes, record header at most 40, and per header a few.
OVERHEAD_BYTES: Final = 512
INITIAL_DELAY_SECONDS: Final = 0.2
MAX_DELAY_SECONDS: Final = 5.0


class EnqueueRecord(Protocol):
    """Hand a record to a producer; the result's result is the broker's answer (`AIOKafkaProducer.send`)."""

    async def __call__(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[RecordMetadata]: ...


class Sender:
    """Sends records through one producer and repeats what failed for a temporary reason.

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
        self._delay = growing_delay(INITIAL_DELAY_SECONDS, MAX_DELAY_SECONDS, jitter=jitter)
        self._sleep = sleep

    async def send(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> RecordMetadata:
        """Send one record and return its position once the broker has confirmed it.

        Blocks while the broker is unavailable. Raises `RecordTooLarge` (dead-letter the origin) and
        `ProducerDead` (crash the stage). A retry can write the record twice; consumers drop repeats.
        """
        in_headers = sum(len(name) + len(content) for name, content in headers)
        size = len(key or b"") + len(value or b"") + in_headers + OVERHEAD_BYTES
        if size > (limit := self._limits.get(topic, size)):
            raise RecordTooLarge(
                f"a record of {size} bytes does not fit into {topic}, which takes {limit}: dead-letter its origin"
            )

        async def send_once() -> RecordMetadata:
            return await (await self._enqueue(topic, key=key, value=value, headers=list(headers)))

        def on_retry(failures: int, error: BaseException) -> None:
            log.warning("send_retried", topic=topic, failures=failures, error=repr(error))
            metrics.SEND_RETRIES.labels(topic=topic).inc()

        def is_temporary(error: BaseException) -> bool:
            return isinstance(error, KafkaError) and (error.retriable or isinstance(error, KafkaTimeoutError))

        try:
            sent = await retry_while(is_temporary, send_once, delay=self._delay, on_retry=on_retry, sleep=self._sleep)
        except (MessageSizeTooLargeError, RecordTooLargeError) as error:
            raise RecordTooLarge(f"{topic} refused a record as too large: {error}") from error
        except KafkaError as error:
            raise ProducerDead(f"sending to {topic} failed permanently: start the stage again ({error!r})") from error
        metrics.RECORDS_SENT.labels(topic=topic).inc()
        return sent
