"""Folds the log into the new tables, in this process or spread over several.

`python -m mnemolog.projections.rebuild.fill` is one of them.
"""

import asyncio
import gc
import logging
import os
import pickle
import sys
import threading
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from mnemolog.projections.errors import RebuildError
from mnemolog.projections.rebuild.connections import open_connection, run_together, worker_count
from mnemolog.projections.rebuild.log_copy import open_live_copy
from mnemolog.projections.rebuild.replay import LogOpener, LogSource, Replayer
from mnemolog.projections.rebuild.swap import share_filling

# Looking for cycles among the records of a batch, of which there are none, takes a third of the time of decoding them.
GC_THRESHOLD: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FillOrder:
    """The partitions that a process folds, each from its offset in the new tables up to the one in `targets`.

    `keeps` is as in `mnemolog.projections.rebuild.replay.Replayer`.
    """

    url: str
    open_log: LogOpener
    targets: dict[int, int]
    keeps: bool


async def fill(order: FillOrder) -> None:
    async with (
        open_connection(order.url, "rebuild-fill") as connection,
        open_live_copy(order.url) as live_copy,
        order.open_log() as source,
    ):
        await share_filling(connection)
        replayer = Replayer(connection, live_copy, source, keeps=order.keeps)
        await replayer.resume()
        await replayer.replay_in_bulk(order.targets)


RECORDS_PER_PROCESS: Final = 2000
"""Fewer records are folded in the time that a process takes to start."""
PROGRESS_SECONDS: Final = 0.5
_MODULE: Final = "mnemolog.projections.rebuild.fill"


async def fill_tables(url: str, source: LogSource, replayer: Replayer, targets: Mapping[int, int]) -> None:
    """Fold up to `targets`, the next offset of each partition; the profiles are left to the caller.

    `replayer` is then where the tables are. Each process holds one batch of records at a time.
    """
    missing = {partition: replayer.missing_records({partition: target}) for partition, target in targets.items()}
    shares = divide(missing, min(worker_count(), sum(missing.values()) // RECORDS_PER_PROCESS))
    if len(shares) <= 1:
        await replayer.replay_in_bulk(targets)
        return
    orders = [
        FillOrder(
            url=url,
            open_log=source.opener,
            targets={partition: targets[partition] for partition in share},
            keeps=replayer.keeps,
        )
        for share in shares
    ]
    filling = asyncio.create_task(run_together(map(_run_process, orders)))
    try:
        while not (await asyncio.wait({filling}, timeout=PROGRESS_SECONDS))[0]:
            await replayer.resume()
        await filling
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)
    await replayer.resume()


def divide(records: Mapping[int, int], shares: int) -> list[list[int]]:
    """Divide partitions into about equal shares, given how many records each lacks."""
    divided: list[list[int]] = [[] for _ in range(shares)]
    for partition in sorted(records, key=lambda one: records[one], reverse=True):
        if records[partition] and divided:
            min(divided, key=lambda share: sum(records[one] for one in share)).append(partition)
    return [share for share in divided if share]


async def _run_process(order: FillOrder) -> None:
    """Run a process to its end; what it raises is raised here. Ends it where this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _MODULE), stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    stdin, stdout = cast("StreamWriter", process.stdin), cast("StreamReader", process.stdout)
    try:
        stdin.write(pickle.dumps(order))
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died: its code is raised below
            await stdin.drain()
        error = await stdout.read()
    finally:
        stdin.close()
        code = await process.wait()
    if error:
        raise pickle.loads(error)  # noqa: S301 - from the process that was started above
    if code:
        raise RebuildError(f"a process that folds the log ended with code {code}: start the rebuild again")


def main() -> None:
    logging.lastResort = None  # what is not applied is in the table of rejections
    order: FillOrder = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the rebuild that started this process
    gc.set_threshold(GC_THRESHOLD)

    def end_with_stdin() -> None:
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=end_with_stdin, daemon=True).start()
    try:
        asyncio.run(fill(order))
    except Exception as error:  # noqa: BLE001 - the rebuild raises it
        sys.stdout.buffer.write(pickle.dumps(error))
        sys.stdout.buffer.flush()
    os._exit(0)  # the other thread is still reading


if __name__ == "__main__":
    main()
