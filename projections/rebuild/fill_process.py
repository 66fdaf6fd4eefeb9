"""`python -m mnemolog.projections.rebuild.fill_process`: one of the processes that fold the log in parallel.

It gets a pickled `FillOrder` on stdin, and ends when stdin does: so it never outlives the rebuild. What went wrong
goes pickled to stdout.
"""

import asyncio
import logging
import os
import pickle
import sys
import threading
from dataclasses import dataclass

from mnemolog.projections.rebuild.connections import open_connection
from mnemolog.projections.rebuild.log_source import LogOpener
from mnemolog.projections.rebuild.replay import Replayer
from mnemolog.projections.rebuild.swap import share_filling


@dataclass(frozen=True, slots=True, kw_only=True)
class FillOrder:
    """The partitions that a process folds, each from its offset in the new tables up to the one in `targets`."""

    url: str
    open_log: LogOpener
    targets: dict[int, int]


async def fill(order: FillOrder) -> None:
    async with open_connection(order.url, "rebuild-fill") as connection, order.open_log() as source:
        await share_filling(connection)
        replayer = Replayer(connection, source)
        await replayer.resume()
        await replayer.replay_in_bulk(order.targets)


def main() -> None:
    logging.lastResort = None  # what is not applied is in the table of rejections
    order: FillOrder = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the rebuild that started this process
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
