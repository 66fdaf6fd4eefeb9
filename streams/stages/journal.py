"""`journal`: writes a row for every turn of `conversation_turns`, accepted or not; commands have none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

from mnemolog.projections.stores.turns import Journal, JournalEntry
from mnemolog.schemas.admission import parse_turn, source_kind
from mnemolog.streams import metrics
from mnemolog.streams.kafka.record import KafkaRecord


@dataclass(frozen=True)
class JournalStage:
    """Works on a batch of records; returns when their rows are committed."""

    journal: Journal
    max_bytes: int

    async def __call__(self, records: Sequence[KafkaRecord]) -> None:
        started = perf_counter()
        entries = []
        for record in records:
            if source_kind(record.value) != "turn":
                continue
            at = datetime.fromtimestamp(record.timestamp, UTC)
            parsed = parse_turn(record.value, position=record.position, max_bytes=self.max_bytes, published_at=at)
            entries.append(
                JournalEntry(
                    parsed=parsed,
                    topic=record.topic,
                    partition=record.partition,
                    offset=record.offset,
                    published_at=at,
                    value=record.value,
                )
            )
        await self.journal.record(entries)
        metrics.STAGE_SECONDS.labels(stage="journal").observe(perf_counter() - started)
