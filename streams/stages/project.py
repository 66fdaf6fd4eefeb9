"""`project`: the log into the tables, batch by batch, rows and position in one transaction."""

from collections.abc import Mapping, Sequence

from projections.projector import LogRecord, Projector
from streams.app import StartOffsets
from streams.records import Record


class Projecting:
    """Works on consecutive commits of one partition."""

    def __init__(self, projector: Projector) -> None:
        self._projector = projector

    async def __call__(self, records: Sequence[Record]) -> None:
        batch = [LogRecord(offset=record.offset, value=record.value or b"") for record in records]
        await self._projector.apply(records[0].partition, batch)


def start_offsets(projector: Projector) -> StartOffsets:
    """Where to read on: the tables know, so that an empty database is filled and a restored one catches up."""

    async def offsets(assigned: frozenset[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
        projected = await projector.next_offsets()
        return {partition: projected.get(partition[1], 0) for partition in assigned}

    return offsets
