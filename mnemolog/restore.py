"""Operators' way out after a power cut: `memory_events` gets back from the tables what it has lost."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mnemolog.admin import create_topics, rebuild, translated_kafka_errors
from mnemolog.all_in_one import partitions_of
from mnemolog.client.discovery import with_discovered_servers
from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.errors import NotConnectedError
from mnemolog.projections.database import open_pool
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.settings import Settings
from mnemolog.streams.kafka.readers import open_kafka_log
from mnemolog.streams.runtime.lost_commits import (
    PartitionLoss,
    append_lost_commits,
    find_losses,
    refuse_running_workers,
)

if TYPE_CHECKING:
    from mnemolog.projections.rebuild.rebuild import RebuildReport


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What the log had lost; `appended` whether it has it again.

    `rebuilt` is there where offsets differ from those before, so that the tables were made anew from the log.
    """

    losses: tuple[PartitionLoss, ...]
    appended: bool
    rebuilt: "RebuildReport | None" = None

    @property
    def missing(self) -> int:
        return sum(loss.missing for loss in self.losses)


async def restore_log(
    settings: Settings, *, verify_only: bool, on_progress: Callable[[str, int, int], None]
) -> RestoreReport:
    """Append the commits that the tables hold and the log has lost, with the same keys, partitions and bytes.

    Where something was written after the loss they come behind it, and the tables are rebuilt from the log: decisions
    on facts that come later in the log than before are kept beside them and marked stale. Servers of a data folder
    are started for the time, where none are set. Raises `StartRefused` while workers run, `LogUnreadableError`, and
    `LogGapError` where the log has lost its beginning.
    """
    async with _servers(settings) as reached:
        await create_topics(reached)  # a topic that is gone altogether is a log without records
        prefix = reached.topic_prefix
        async with translated_kafka_errors(reached):
            await refuse_running_workers(reached.kafka_address, prefix=prefix)
        async with (
            open_kafka_log(reached.kafka_address, prefix=prefix) as log,
            open_pool(reached.postgres or "", min_size=1, max_size=2, application_name="mnemolog-restore") as pool,
        ):
            tables = TableLogSource(pool)
            losses = await find_losses(log, tables)
            total = sum(loss.missing for loss in losses)
            if losses and not verify_only:
                async with translated_kafka_errors(reached):
                    await append_lost_commits(
                        reached, losses, log, tables, on_appended=lambda done: on_progress("appending", done, total)
                    )
        rebuilt = None
        if not verify_only and any(not loss.same_offsets for loss in losses):
            rebuilt = await rebuild(reached, "kafka", verify_only=False, on_progress=on_progress, full=True)
    return RestoreReport(losses=tuple(losses), appended=not verify_only, rebuilt=rebuilt)


@asynccontextmanager
async def _servers(settings: Settings) -> AsyncIterator[Settings]:
    """The settings with servers: those that are set or run already, else those of the data folder."""
    try:
        reached = with_discovered_servers(settings)
    except NotConnectedError:
        if settings.kafka or settings.postgres or not (settings.data_dir / "kafka").exists():
            raise
        async with await EmbeddedStack.start(settings.data_dir) as stack:
            servers = {"kafka": stack.bootstrap, "postgres": stack.postgres_url}
            yield settings.model_copy(update=servers | {"partitions": partitions_of(settings)})
        return
    yield reached
