"""`project`: the log into the tables, batch by batch, rows and position in one transaction."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from mnemolog.projections.errors import PartitionError
from mnemolog.projections.rebuild.replay import LogSource
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.streams import metrics
from mnemolog.streams.errors import LogMismatch
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka.record import KafkaRecord, StartOffsetLookup

_STOPPING: Final = (PartitionError, UnsupportedVersionError)


@dataclass(frozen=True, slots=True)
class ProjectStage:
    """Works on a batch of commits, of each partition consecutive ones; `on_written` is called after each.

    What stops one partition is raised when the others of its batch are written.
    """

    projector: Projector
    on_written: Callable[[], None] = lambda: None

    async def __call__(self, records: Sequence[KafkaRecord]) -> None:
        batch: dict[int, list[LogRecord]] = {}
        for record in records:
            batch.setdefault(record.partition, []).append(LogRecord(offset=record.offset, value=record.value or b""))
        started = perf_counter()
        try:
            await self.projector.apply(batch)
        except _STOPPING as error:
            if len(batch) > 1:
                for partition, found in batch.items():
                    if partition != getattr(error, "partition", None):
                        with suppress(*_STOPPING):
                            await self.projector.apply({partition: found})
            raise
        finally:
            self.on_written()
        metrics.STAGE_SECONDS.labels(stage="project").observe(perf_counter() - started)


def start_offsets(projector: Projector, log: LogSource, applied_log: LogSource) -> StartOffsetLookup:
    """Where to read on: the tables know, so that an empty database is filled and a restored one catches up.

    Raises `LogMismatch` where the newest record that is `applied_log` does not stand in the log: commits of a log that
    was made anew have offsets that the tables have seen, and would be skipped as repeats.
    """

    async def offsets(assigned: frozenset[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
        projected = await projector.next_offsets()
        starts = {place: projected.get(place[1], 0) for place in assigned}
        await asyncio.gather(*(check(partition, start) for (_, partition), start in starts.items() if start))
        return starts

    async def check(partition: int, start: int) -> None:
        if await _value(log, partition, start - 1) != await _value(applied_log, partition, start - 1):
            raise LogMismatch(partition, start - 1)

    return offsets


def checked_end(projector: Projector, log: LogSource) -> Callable[[int], Coroutine[Any, Any, int]]:
    """The end of a partition of the log; asked before anything is appended after a start or a rebalance.

    Raises `LogMismatch` where the tables are ahead of it: new commits would take the offsets of lost ones.
    """

    async def end_offset(partition: int) -> int:
        projected = (await projector.next_offsets()).get(partition, 0)  # first: meanwhile the log only grows
        end = await log.end_offset(partition)
        if end < projected:
            raise LogMismatch(partition, end)
        return end

    return end_offset


async def _value(log: LogSource, partition: int, offset: int) -> bytes | None:
    if await log.end_offset(partition) <= offset:
        return None
    return next(iter([record.value async for record in log.read(partition, offset, offset + 1)]), None)


async def projection_lag(projector: Projector, log: KafkaLogReader) -> Mapping[int, int]:
    """Per partition the commits that are in the log and not yet in the tables."""
    projected = await projector.next_offsets()
    ends = await log.end_offsets(await log.partitions())
    return {partition: max(0, end - projected.get(partition, 0)) for partition, end in ends.items()}
