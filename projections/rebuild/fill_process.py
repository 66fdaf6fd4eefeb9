"""`python -m mnemolog.projections.rebuild.fill_process`: one of the processes that fold the log in parallel.

It gets a pickled `FillOrder` on stdin, and ends when stdin does: so it never outlives the rebuild. What went wrong
goes pickled to stdout.
"""

import asyncio
import gc
import logging
import os
import pickle
import sys
import threading
from dataclasses import dataclass
from typing import Final

from mnemolog.projections.rebuild.connections import open_connection
from mnemolog.projections.rebuild.log_copy import open_live_copy
from mnemolog.projections.rebuild.log_source import LogOpener
from mnemolog.projections.rebuild.replay import Replayer
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


def main() -> None:
    logging.lastResort = None  # what is not applied is in the table of rejections
    order: FillOrder = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the rebuild that started this process
    gc.set_threshold(GC_THRESHOLD)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        asyncio.run(fill(order))
    except Exception as error:  # noqa: BLE001 - the rebuild raises it
        sys.stdout.buffer.write(pickle.dumps(error))
        sys.stdout.buffer.flush()
    os._exit(0)  # the other thread is still reading


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
