"""The window of stages that work on one record at a time."""

import time
from collections.abc import Awaitable, Callable

from mnemolog.streams.kafka.record import KafkaRecord, Reread
from mnemolog.streams.kafka.window import Window


class KeyedWindow(Window):
    """One record per key at a time, many keys at once; records of a partition without a key count as of one key."""

    def __init__(
        self,
        process: Callable[[KafkaRecord], Awaitable[KafkaRecord | None]],
        *,
        max_in_flight: int = 256,
        max_pending: int = 1024,
        reread: Reread | None = None,
        next_window: Window | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            lambda records: process(records[0]),
            key_of=lambda record: record.topic_partition if record.key is None else record.key,
            max_records=1,
            max_in_flight=max_in_flight,
            max_pending=max_pending,
            reread=reread,
            next_window=next_window,
            clock=clock,
        )
