"""`python -m tests.bench.hot_owner`: what 20 000 waiting turns of one owner cost the others of its worker.

One stage over a real Kafka, whose work is a wait of a second, as for a model; once alone, and once with three more that
it hands its records on to, as a worker with all stages does. Prints rows of docs/performance.md.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final
from unittest.mock import patch

import psutil
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.schemas.scope import Scope
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.app import KafkaTuning, StageApp, build_app
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.runtime.supervisor import run_stages
from mnemolog.streams.runtime.worker import CHAINABLE
from mnemolog.streams.stages.extract import partition_of
from tests.support.databases import temporary_folder

STAGE: Final = CHAINABLE[0]
PARTITIONS: Final = 12
HOT: Final = Scope(user_id="hot")
ORDINARY: Final = 100
WORK_SECONDS: Final = 1.0
LATER_SECONDS: Final = 0.01
"""The work of each later stage of the chain."""
PERIOD_SECONDS: Final = 10.0
TURN_BYTES: Final = 400


@dataclass(frozen=True)
class Found:
    """The delays of ordinary turns in seconds, and what the worker held."""

    same_partition: list[float]
    other_partitions: list[float]
    most_pending: int
    before: float
    after: float
    """Resident memory, in MB, before the worker starts and after the last ordinary turn."""


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def resident_megabytes() -> float:
    return psutil.Process().memory_info().rss / 2**20


@contextmanager
def without_overflow(*, chosen: bool) -> Iterator[None]:
    """The window of before: every delivered record stays in memory, and a full window takes no more."""
    if not chosen:
        yield
        return
    with patch.object(Window, "_overflows", lambda *_: False):
        yield


def ordinary_scopes() -> list[Scope]:
    """In turn one of the hot owner's partition and one of another."""
    everybody = [Scope(user_id=f"ordinary-{number}") for number in range(ORDINARY * PARTITIONS)]
    same = [one for one in everybody if partition_of(one, PARTITIONS) == partition_of(HOT, PARTITIONS)]
    others = [one for one in everybody if one not in same]
    return [one for pair in zip(same, others, strict=False) for one in pair][:ORDINARY]


class Run:
    """One worker over topics of its own."""

    def __init__(self, bootstrap: str, prefix: str, *, chained: bool) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.chain = CHAINABLE if chained else CHAINABLE[:1]
        self.delays: dict[bytes, float] = {}
        self.window: KeyedWindow | None = None
        self.most_pending = 0

    def build(self) -> StageApp:
        def window(_: Sender) -> Window:
            following: KeyedWindow | None = None
            for stage in reversed(self.chain):
                following = KeyedWindow(partial(self.process, stage), next_window=following)
            self.window = following
            assert following is not None
            return following

        return build_app(
            STAGE,
            CONVERSATION_TURNS,
            window,
            bootstrap=self.bootstrap,
            prefix=self.prefix,
            tuning=KafkaTuning(),
            chain=self.chain,
        )

    async def process(self, stage: str, record: KafkaRecord) -> KafkaRecord | None:
        assert self.window is not None
        self.most_pending = max(self.most_pending, self.window.progress.pending)
        await asyncio.sleep(WORK_SECONDS if stage == STAGE else LATER_SECONDS)
        if stage != self.chain[-1]:
            return record
        if record.key != HOT.key:
            self.delays[record.key or b""] = time.time() - float((record.value or b"").split()[0])
        return None

    async def measure(self, waiting: int, *, settle: float) -> Found:
        """Have so many turns of the hot owner wait, start, and publish ordinary ones `settle` seconds later."""
        await ensure_topics(self.bootstrap, partitions=PARTITIONS, prefix=self.prefix)
        topic = topic_name(CONVERSATION_TURNS, self.prefix)
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=5)
        await producer.start()
        sent = [await producer.send(topic, key=HOT.key, value=b"x" * TURN_BYTES) for _ in range(waiting)]
        await asyncio.gather(*sent)
        stop, ready = asyncio.Event(), dict[str, bool]()
        before = resident_megabytes()
        running = asyncio.create_task(run_stages([self.build], stop, ready=ready))
        while not ready.get(STAGE):  # noqa: ASYNC110 -- the supervisor keeps a mapping
            await asyncio.sleep(0.05)
        await asyncio.sleep(settle)
        scopes = ordinary_scopes()
        for scope in scopes:
            value = f"{time.time()} ".encode().ljust(TURN_BYTES, b"x")
            await producer.send(topic, key=scope.key, value=value)
            await asyncio.sleep(PERIOD_SECONDS / ORDINARY)
        deadline = time.monotonic() + 120
        while len(self.delays) < ORDINARY and time.monotonic() < deadline:  # noqa: ASYNC110 -- as above
            await asyncio.sleep(0.1)
        after = resident_megabytes()
        stop.set()
        await running
        await producer.stop()
        home = partition_of(HOT, PARTITIONS)
        same = [self.delays.get(one.key, 120.0) for one in scopes if partition_of(one, PARTITIONS) == home]
        others = [self.delays.get(one.key, 120.0) for one in scopes if partition_of(one, PARTITIONS) != home]
        return Found(same, others, self.most_pending, before, after)


async def main(chosen: argparse.Namespace) -> None:
    cases = [
        ("no hot owner", 0, 0.0, False),
        ("from the first moment", chosen.waiting, 0.0, False),
        ("once the backlog has been read", chosen.waiting, 15.0, False),
        *([("without the overflow", chosen.waiting, 0.0, True)] if chosen.without else []),
    ]
    with temporary_folder() as folder:
        async with await EmbeddedStack.start(folder / "data", postgres=False, test=True) as stack:
            for number, (chained, (name, waiting, settle, old)) in enumerate(product((False, True), cases)):
                with without_overflow(chosen=old):
                    run = Run(stack.bootstrap, f"run{number}-", chained=chained)
                    found = await run.measure(waiting, settle=settle)
                cells = [f"{percentile(part, 0.95):.2f}" for part in (found.other_partitions, found.same_partition)]
                row = ["chain" if chained else "one stage", name, *cells, found.most_pending]
                sys.stdout.write(f"| {' | '.join(map(str, row))} | {found.before:.0f}, {found.after:.0f} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=20_000, help="turns of the hot owner")
    parser.add_argument("--without", action="store_true", help="also as it was before the overflow: minutes")
    asyncio.run(main(parser.parse_args()))
