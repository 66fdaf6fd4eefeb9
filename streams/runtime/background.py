"""What a worker does beside its stages: expire facts, export figures of quality and lag, delete old replies."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above
from aiokafka.partitioner import murmur2  # type: ignore[import-untyped] # as above
from psycopg import OperationalError
from psycopg_pool import PoolTimeout

from mnemolog.projections import metrics as table_metrics
from mnemolog.projections.db.pools import Pool
from mnemolog.projections.logs import get_logger
from mnemolog.projections.queries.quality import OverwriteCounts, quality_counts
from mnemolog.projections.rebuild.errors import LogUnreadableError
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.command import Command
from mnemolog.schemas.scope import Scope
from mnemolog.streams import metrics
from mnemolog.streams.commands.expiry import ExpirySweep
from mnemolog.streams.commands.ports import ExpiryReader
from mnemolog.streams.errors import StreamsError
from mnemolog.streams.kafka.backlog import BacklogReader, PartitionBacklog
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, command_headers, max_record_bytes, topic_name
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.project import projection_lag

RETRY_SECONDS: Final = 5.0
PURGE_SECONDS: Final = 3600.0
LAG_SECONDS: Final = 5.0
BACKLOG_SECONDS: Final = 15.0
QUALITY_SECONDS: Final = 30.0
QUALITY_PERIOD: Final = timedelta(days=30)

log = get_logger(__name__)


async def run_expiry_timer(
    settings: StreamsSettings,
    facts: ExpiryReader,
    *,
    partitions: Callable[[], frozenset[int]],
    clock: Callable[[], datetime],
) -> None:
    """Publish expire commands for facts that have ended, for the owners whose `partitions` are this worker's.

    Waits while Kafka is unavailable. Its producer is its own: it outlives the restarts of stages.
    """
    topic, headers = topic_name(CONVERSATION_TURNS, settings.topic_prefix), command_headers(settings.command_token)
    while True:
        # Not idempotent: a repeated command has the same id, and a plain producer outlives every refusal.
        producer = AIOKafkaProducer(bootstrap_servers=settings.kafka, acks="all")
        sender = Sender(producer.send, limits=max_record_bytes(settings.topic_prefix))

        async def publish(command: Command, sender: Sender = sender) -> None:
            await sender.send(topic, key=command.scope.key, value=command.to_bytes(), headers=headers)

        sweep = ExpirySweep(
            facts, publish=publish, owns_scope=lambda scope: partition_of(scope, settings.partitions) in partitions()
        )
        try:
            await producer.start()
            while True:
                await run_sweep(sweep, clock())
                await asyncio.sleep(settings.expiry_interval)
        except KafkaError as error:
            log.warning("timer_waits_for_kafka", error=repr(error))
        finally:
            await producer.stop()
        await asyncio.sleep(RETRY_SECONDS)


async def run_sweep(sweep: ExpirySweep, now: datetime) -> None:
    """Sweep all that is due; a command that was not sent is sent by a later sweep."""
    count, is_first = 0, True
    try:
        while is_first or sweep.has_more:
            is_first = False
            count += await sweep.sweep(now)
    except StreamsError as error:
        log.warning("expire_command_not_sent", error=str(error))
    if count:
        log.info("expire_commands_sent", facts=count)


def partition_of(scope: Scope, partitions: int) -> int:
    """The partition of an owner's records, as Kafka's own partitioner chooses it."""
    return int(murmur2(scope.key) & 0x7FFFFFFF) % partitions


async def export_quality_metrics(pool: Pool, now: Callable[[], datetime]) -> None:
    """Update the metrics every `QUALITY_SECONDS`; an unavailable Postgres is reported by the stages."""
    succeeded = metrics.FIGURES_SUCCEEDED.labels(figures="quality")
    while True:
        try:
            await update_quality_metrics(pool, now())
            succeeded.set_to_current_time()
        except (OperationalError, PoolTimeout) as error:
            log.warning("quality_metrics_unavailable", error=str(error))
        await asyncio.sleep(QUALITY_SECONDS)


async def update_quality_metrics(pool: Pool, at: datetime) -> None:
    """Show the figures of the 30 days before `at`, over all tenants, counted from the tables."""
    async with pool.connection() as connection:
        quality = await quality_counts(connection, at - QUALITY_PERIOD, at)
    table_metrics.RECENT_OVERWRITES.clear()  # a model whose last overwrite is 30 days old is shown no more
    for (model, prompt_version, result), number in _overwrites_of_models(quality.overwrites).items():
        labels = {"model": model, "prompt_version": prompt_version}
        table_metrics.RECENT_OVERWRITES.labels(result=result, **labels).set(number)
    held = quality.held
    settled = {"confirmed": held.confirmed, "rejected": held.rejected, "overtaken": held.overtaken}
    for settlement, number in {**settled, "open": held.held - sum(settled.values())}.items():
        table_metrics.HELD_OVERWRITES.labels(settlement=settlement).set(number)
    table_metrics.PENDING.set(held.open)
    table_metrics.PENDING_OLDEST.set(held.oldest_seconds)
    table_metrics.PENDING_MEDIAN.set(held.median_seconds)
    table_metrics.UNRESOLVED.set(quality.unresolved)


def _overwrites_of_models(rows: Iterable[OverwriteCounts]) -> Counter[tuple[str, str, str]]:
    """How many overwrites of each model and prompt have each result."""
    numbers: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        if row.by == "model":
            for result, number in row.results.items():
                numbers[row.model or "", row.prompt_version or "", result] += number
    return numbers


async def export_lag(projector: Projector, log_reader: KafkaLogReader) -> None:
    """Export how far the tables are behind the log."""
    succeeded = metrics.FIGURES_SUCCEEDED.labels(figures="lag")
    while True:
        try:
            for partition, behind in (await projection_lag(projector, log_reader)).items():
                metrics.PROJECTION_LAG.labels(partition=partition).set(behind)
            succeeded.set_to_current_time()
        except LogUnreadableError as error:
            log.warning("lag_unavailable", error=str(error))
        await asyncio.sleep(LAG_SECONDS)


async def export_backlog(reader: BacklogReader, now: Callable[[], datetime]) -> None:
    """Export what waits for each stage, also for those of other processes and of none."""
    succeeded = metrics.FIGURES_SUCCEEDED.labels(figures="backlog")
    while True:
        try:
            show_backlog(await reader.read(), now())
            succeeded.set_to_current_time()
        except (KafkaError, TimeoutError) as error:
            log.warning("backlog_unavailable", error=repr(error))
        await asyncio.sleep(BACKLOG_SECONDS)


def show_backlog(backlog: Iterable[PartitionBacklog], at: datetime) -> None:
    for one in backlog:
        place = {"stage": one.stage, "partition": str(one.partition)}
        waited = (at - one.oldest_at).total_seconds() if one.oldest_at else 0.0
        metrics.BACKLOG_RECORDS.labels(**place).set(one.records)
        metrics.BACKLOG_OLDEST.labels(**place).set(max(0.0, waited))


async def purge_replies(replies: ReplyStore, retention: timedelta, now: Callable[[], datetime]) -> None:
    """Delete replies that are older than any turn that can still be delivered again."""
    while True:
        purged = await replies.purge(now() - retention)
        if purged:
            log.info("replies_purged", count=purged)
        await asyncio.sleep(PURGE_SECONDS)
