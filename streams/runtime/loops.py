"""What a worker does beside its stages, in loops: expire facts, export figures of quality and lag."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # aiokafka ships no types
from psycopg import OperationalError
from psycopg_pool import PoolTimeout

from mnemolog.common.cancellation import cancel_all
from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay
from mnemolog.projections import metrics as table_metrics
from mnemolog.projections.database import Pool
from mnemolog.projections.errors import LogUnreadableError
from mnemolog.projections.queries.quality import quality_counts
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.command import MAX_ITEMS, Command
from mnemolog.streams import metrics
from mnemolog.streams.commands.context import ExpiryReader
from mnemolog.streams.commands.expiry import ExpirySweep
from mnemolog.streams.errors import StaleProjection, StreamsError
from mnemolog.streams.kafka import new_producer
from mnemolog.streams.kafka.lag import BacklogReader
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, command_headers, max_record_bytes, topic_name
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.extract import partition_of
from mnemolog.streams.stages.project import projection_lag

FIRST_DELAY_SECONDS: Final = 5.0
MAX_DELAY_SECONDS: Final = 300.0
ROUND_SECONDS: Final = 600.0
FIGURES: Final = ("quality", "lag", "backlog")
"""Groups of gauges that say when they were last computed."""
QUALITY_PERIOD: Final = timedelta(days=30)
UNAVAILABLE_ERRORS: Final = (KafkaError, OperationalError, PoolTimeout, LogUnreadableError, TimeoutError)
"""Errors of a server that is away: a warning without a traceback."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class BackgroundLoop:
    """`run_round` is called every `interval` seconds, `close` once at the end. A round may take `ROUND_SECONDS`."""

    name: str
    interval: float
    run_round: Callable[[], Awaitable[object]]
    close: Callable[[], Awaitable[object]] | None = None


async def run_loop(
    loop: BackgroundLoop,
    failing: MutableMapping[str, str],
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Run rounds until cancelled. After a failed round the pause grows up to five minutes, or to the interval.

    `failing` has the error of a loop whose last round failed; the metric `background_failures` counts all.
    """
    delay, failures = growing_delay(FIRST_DELAY_SECONDS, max(MAX_DELAY_SECONDS, loop.interval)), 0
    task = asyncio.current_task()
    try:
        while True:
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    await loop.run_round()
                failures = 0
                failing.pop(loop.name, None)
            except (Exception, asyncio.CancelledError) as error:
                if task is not None and task.cancelling():
                    raise  # a cancellation that nobody asked this task for is a failure of the round
                failures += 1
                failing[loop.name] = words = repr(error)
                metrics.BACKGROUND_FAILURES.labels(operation=loop.name).inc()
                unexpected = None if isinstance(error, UNAVAILABLE_ERRORS) else error
                log.warning(
                    "background_round_failed", loop=loop.name, failures=failures, error=words, exc_info=unexpected
                )
            await sleep(delay(failures) if failures else loop.interval)
    finally:
        if loop.close is not None:
            await loop.close()


@asynccontextmanager
async def running_loops(loops: Iterable[BackgroundLoop], failing: MutableMapping[str, str]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(run_loop(loop, failing)) for loop in loops]
    try:
        yield
    finally:
        await cancel_all(tasks)


async def publish_command(settings: StreamsSettings, sender: Sender, command: Command) -> None:
    """Return when the broker has the command."""
    headers = command_headers(settings.command_token)
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    await sender.send(topic, key=command.scope.key, value=command.to_bytes(), headers=headers)


class Timer:
    """Publishes expire commands for facts that have ended, of the owners whose `partitions` are this worker's.

    Its producer is its own: it outlives the restarts of stages, and is made anew after an error.
    """

    def __init__(
        self, settings: StreamsSettings, facts: ExpiryReader, *, partitions: Callable[[], frozenset[int]]
    ) -> None:
        self._settings = settings
        self._producer: Any = None
        self._sweep = ExpirySweep(
            facts,
            publish=lambda command: publish_command(
                settings, Sender(self._producer.send, limits=max_record_bytes(settings.topic_prefix)), command
            ),
            owns_scope=lambda scope: partition_of(scope, settings.partitions) in partitions(),
        )

    async def run_sweep(self) -> None:
        """Publish what is due. Raises aiokafka's errors while Kafka is unavailable."""
        try:
            if self._producer is None:
                # Not idempotent: a repeated command has the same id, and a plain producer outlives every refusal.
                self._producer = new_producer(self._settings.kafka_address)
                await self._producer.start()
            await run_sweep(self._sweep, datetime.now(UTC))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()


async def run_sweep(sweep: ExpirySweep, now: datetime) -> None:
    """Sweep all that is due; a command that was not sent is sent by a later sweep."""
    count = 0
    try:
        count += await sweep.sweep(now)
        while sweep.has_more:
            count += await sweep.sweep(now)
    except StreamsError as error:
        log.warning("expire_command_not_sent", error=str(error))
    if count:
        log.info("expire_commands_sent", facts=count)


async def update_quality_metrics(pool: Pool, at: datetime) -> None:
    """Show the figures of the 30 days before `at`, over all tenants, counted from the tables."""
    async with pool.connection() as connection, connection.transaction():
        # These read large parts of tables.
        await connection.execute("SET LOCAL enable_seqscan = on; SET LOCAL plan_cache_mode = auto")
        quality = await quality_counts(connection, at - QUALITY_PERIOD, at)
    table_metrics.RECENT_OVERWRITES.clear()  # a model whose last overwrite is 30 days old is shown no more
    overwrites: Counter[tuple[str, str, str]] = Counter()
    for row in quality.overwrites:
        if row.by in ("model", "rule"):
            for result, number in row.results.items():
                overwrites[row.model or "", row.prompt_version or "", result] += number
    for (model, prompt_version, result), number in overwrites.items():
        table_metrics.RECENT_OVERWRITES.labels(model=model, prompt_version=prompt_version, result=result).set(number)
    held = quality.held
    settled = {"confirmed": held.confirmed, "rejected": held.rejected, "overtaken": held.overtaken}
    for settlement, number in {**settled, "open": held.held - sum(settled.values())}.items():
        table_metrics.HELD_OVERWRITES.labels(settlement=settlement).set(number)
    table_metrics.PENDING.set(held.open)
    table_metrics.PENDING_OLDEST.set(held.oldest_seconds)
    table_metrics.PENDING_MEDIAN.set(held.median_seconds)
    table_metrics.UNRESOLVED.set(quality.unresolved)
    groups = {"1": 1, "2-5": 5, "6-10": 10, "11-20": 20, "21+": MAX_ITEMS}
    used = Counter({"missed": quality.feedback.missed, **dict.fromkeys(groups, 0)})
    for rank, number in quality.feedback.used_at_rank.items():
        used[next(name for name, last in groups.items() if rank <= last)] += number
    for name, number in used.items():
        table_metrics.FEEDBACK.labels(rank=name).set(number)
    metrics.FIGURES_SUCCEEDED.labels(figures="quality").set_to_current_time()


async def update_lag(projector: Projector, log_reader: KafkaLogReader) -> None:
    for partition, behind in (await projection_lag(projector, log_reader)).items():
        metrics.PROJECTION_LAG.labels(partition=partition).set(behind)
    metrics.FIGURES_SUCCEEDED.labels(figures="lag").set_to_current_time()


async def update_backlog(reader: BacklogReader, at: Callable[[], datetime]) -> None:
    """Show what waits for each stage, also for those of other processes and of none."""
    for one in await reader.read():
        place = {"stage": one.stage, "partition": str(one.partition)}
        waited = (at() - one.oldest_at).total_seconds() if one.oldest_at else 0.0
        metrics.BACKLOG_RECORDS.labels(**place).set(one.records)
        metrics.BACKLOG_OLDEST.labels(**place).set(max(0.0, waited))
    metrics.FIGURES_SUCCEEDED.labels(figures="backlog").set_to_current_time()


async def check_projected_offsets(
    projector: Projector,
    written: Callable[[], Mapping[int, int]],
    crash: Callable[[StaleProjection], Awaitable[None]],
) -> None:
    """Crash the stage `project` when the tables have moved back behind what it has `written`, per partition.

    It would go on behind the gap, or wait for a new commit to notice; started again, it begins where the tables are.
    """
    before = written()
    found = await projector.next_offsets() if before else {}
    for partition, offset in before.items():
        # What this process has by now must be the same run of the stage, not one that began further back since.
        if found.get(partition, 0) < offset <= written().get(partition, 0):
            reached = found.get(partition, 0)
            words = (
                f"partition {partition} of memory_events was projected up to offset {offset} and the tables are at "
                f"{reached}: a failover or a restored backup lost what is between; it is projected again"
            )
            await crash(StaleProjection(words))
            return
