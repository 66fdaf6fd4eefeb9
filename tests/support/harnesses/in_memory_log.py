"""A log that lies elsewhere, as Kafka's does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from mnemolog.projections.rebuild.replay import LogOpener
from mnemolog.projections.write.projector import LogRecord


class InMemoryLog:
    """A `LogSource` over lists of values by partition; an empty value is a record that is missing."""

    def __init__(self, records: dict[int, list[bytes]]) -> None:
        self.records = records

    @property
    def opener(self) -> LogOpener:
        return partial(open_in_memory, self.records)

    async def partitions(self) -> list[int]:
        return list(self.records)

    async def end_offset(self, partition: int) -> int:
        return len(self.records.get(partition, []))

    async def read(self, partition: int, start: int, stop: int) -> AsyncIterator[LogRecord]:
        for offset in range(start, min(stop, len(self.records.get(partition, [])))):
            if value := self.records[partition][offset]:
                yield LogRecord(offset=offset, value=value)


@asynccontextmanager
async def open_in_memory(records: dict[int, list[bytes]]) -> AsyncIterator[InMemoryLog]:
    yield InMemoryLog(records)
