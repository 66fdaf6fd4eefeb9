"""Projects commits at a given rate into scopes of users, until its input ends; then it prints how many a second.

A process of its own, so that it does not share the interpreter with what is measured beside it.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from mnemolog.projections.database import open_pool
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.scope import Scope
from tests.bench.sample_commits import random_vector
from tests.bench.sample_turns import sentence
from tests.bench.statistics import due_count
from tests.support.builders.commits import added, commit, day

TICK_SECONDS: Final = 0.05
FACTS_PER_COMMIT: Final = 2


@dataclass(slots=True)
class Writing:
    """What a writer has done: commits a second, once it has ended."""

    per_second: float = 0.0


@asynccontextmanager
async def commits_written(url: str, users: int, rate: float) -> AsyncIterator[Writing]:
    """Project `rate` commits a second, of the users `small0` to `small<users - 1>`, in another process."""
    done = Writing()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, url, str(users), str(rate)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        await process.stdout.readline()  # the first commit is in the tables
        yield done
    finally:
        output, _ = await process.communicate(b"")  # which ends its input
    done.per_second = json.loads(output)


def _records(users: int, start: int) -> Iterator[LogRecord]:
    chance = random.Random(start)
    offset = start
    while True:
        user = offset % users
        drafts = [
            added(" ".join(sentence("written", offset, place)).capitalize() + ".", vector=random_vector(chance))
            for place in range(FACTS_PER_COMMIT)
        ]
        one = commit(f"written-{offset}", *drafts, scope=Scope(user_id=f"small{user}"), at=day(400 + offset // 10_000))
        yield LogRecord(offset=offset, value=one.to_bytes())
        offset += 1


async def _write(url: str, users: int, rate: float) -> float:
    stopped = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    async with open_pool(url, min_size=1, max_size=1, application_name="bench-writer") as pool:
        projector = Projector(pool)
        records = _records(users, (await projector.next_offsets()).get(1, 0))
        await projector.apply({1: [next(records)]})
        sys.stdout.write("\n")
        sys.stdout.flush()
        started, done = time.perf_counter(), 0
        while not stopped.done():
            due = due_count(started, time.perf_counter(), rate, sys.maxsize)
            if batch := [next(records) for _ in range(min(due - done, 100))]:
                await projector.apply({1: batch})
                done += len(batch)
            await asyncio.wait([stopped], timeout=TICK_SECONDS)
        return done / (time.perf_counter() - started)


if __name__ == "__main__":
    database, count, speed = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(_write(database, int(count), float(speed)))))
