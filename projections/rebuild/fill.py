"""Folds the log into the new tables: a short one in this process, a long one in a process for each core."""

import asyncio
import pickle
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, cast

from mnemolog.projections.rebuild.connections import run_together, worker_count
from mnemolog.projections.rebuild.errors import RebuildError
from mnemolog.projections.rebuild.fill_process import FillOrder
from mnemolog.projections.rebuild.log_source import LogSource
from mnemolog.projections.rebuild.replay import Replayer

RECORDS_PER_PROCESS: Final = 2000
"""Fewer records are folded in the time that a process takes to start."""
PROGRESS_SECONDS: Final = 0.5
_MODULE: Final = "mnemolog.projections.rebuild.fill_process"


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
        FillOrder(url=url, open_log=source.opener, targets={partition: targets[partition] for partition in share})
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
