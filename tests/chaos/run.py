"""One chaos run: conversations go in while machines fail, in an order that a seed decides; and the page about it."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Final

import psycopg
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above

from tests.chaos.brokers import Brokers
from tests.chaos.checker import Verdict, find_records
from tests.chaos.cluster import PARTITIONS, PREFIX, TURNS, Cluster
from tests.chaos.conversations import Published, UserStory
from tests.chaos.faults import Faults
from tests.chaos.machines import Server
from tests.chaos.power_cuts import ALL, KAFKA_ALONE, PowerCuts
from tests.support.paths import ROOT
from tests.support.polling import until_grown

USERS: Final = 24
COMMANDS_PER_ROUND: Final = 6
FAULTS_PER_ROUND: Final = 5
POWER_CUT_EVERY: Final = 4
STAGE_TOPICS: Final = (
    "conversation_turns", "extracted_facts", "embedded_facts", "matched_facts", "memory_events", "dead_letters"
)  # fmt: skip


@dataclass(slots=True)
class Tally:
    """What a run did."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    lost_commits: int = 0
    restored_commits: int = 0
    other_offsets: int = 0
    spoilt_model_calls: int = 0
    turns: int = 0
    commands: int = 0
    seconds: float = 0.0


class ChaosRun:
    """The stories that are told to a cluster while faults happen to it."""

    def __init__(self, seed: int, folder: Path, say: Callable[[str], None], *, brokers: int = 1) -> None:
        self.chance = random.Random(seed)
        kafka = Server("kafka", folder / "k") if brokers == 1 else Brokers(folder / "k", self.chance)
        self.stories = [UserStory(number, seed) for number in range(USERS)]
        self.cluster = Cluster(folder, kafka)
        self._faults = Faults(self.cluster, self.chance, say)
        self._power_cuts = PowerCuts(self.cluster, self.chance, self._publish_more)
        self._tally = Tally(seed, self._faults.done)
        self._began = time.monotonic()

    @property
    def tally(self) -> Tally:
        tally, cuts = self._tally, self._power_cuts
        tally.lost_commits, tally.restored_commits = cuts.lost_commits, cuts.restored_commits
        tally.other_offsets, tally.seconds = cuts.other_offsets, time.monotonic() - self._began
        tally.spoilt_model_calls = self._faults.spoilt_model_calls
        return tally

    async def round(self, number: int) -> None:
        """Publish the next turns and commands while faults happen."""
        await self._look_up_facts()
        said = [record for story in self.stories for record in story.say_more()]
        tellers = self.chance.sample(self.stories, COMMANDS_PER_ROUND)
        said += [one for story in tellers if (one := story.command(self.chance)) is not None]
        publishing = asyncio.create_task(self._publish(said))
        for _ in range(FAULTS_PER_ROUND):
            await asyncio.sleep(self.chance.uniform(0, 1.5))
            await self._faults.happen(self._faults.draw())
        await publishing
        if self.cluster.kafka.copies == 1 and number % POWER_CUT_EVERY == POWER_CUT_EVERY - 1:
            await self._faults.end()
            await self.wait_until_ended()
            kind = (ALL, KAFKA_ALONE)[number // POWER_CUT_EVERY % 2]
            self._faults.count(kind)
            await self._power_cuts.happen(kind)

    async def settle(self) -> None:
        """Wait until every published source has its end, and stop the workers as an operator does."""
        await self._faults.end()
        await self.wait_until_ended()
        codes = await asyncio.gather(*(worker.terminate() for worker in self.cluster.workers))
        assert set(codes) <= {0, -signal.SIGTERM}, codes

    async def wait_until_ended(self) -> None:
        try:
            await until_grown(self._ended, sum(len(story.order) for story in self.stories))
        except AssertionError as stalled:
            raise AssertionError(f"{stalled}, missing {await self._missing()}") from stalled

    async def _missing(self) -> dict[str, list[str]]:
        """The sources without an end, and the positions of all records that name them."""
        with psycopg.connect(self.cluster.database) as connection:
            ended = {row[0] for row in connection.execute("SELECT source_id FROM mnemolog.commits").fetchall()}
        missing = {one for story in self.stories for one in story.order} - ended
        topics = [f"{PREFIX}{name}" for name in STAGE_TOPICS]
        return await find_records(self.cluster.bootstrap, topics, PARTITIONS, missing)

    def _ended(self) -> int:
        for worker in self.cluster.workers:
            worker.assert_running()
        with psycopg.connect(self.cluster.database) as connection:
            row = connection.execute("SELECT count(*) FROM mnemolog.commits").fetchone()
        assert row is not None
        return int(row[0])

    async def _publish_more(self) -> None:
        await self._publish([record for story in self.stories for record in story.say_more()])

    async def _publish(self, records: Sequence[Published]) -> None:
        """One user's records after another; each is sent again until the broker has confirmed it."""
        by_user: dict[str, list[Published]] = {}
        for record in records:
            by_user.setdefault(record.user, []).append(record)
            self._tally.commands += record.is_command
            self._tally.turns += not record.is_command
        producer = AIOKafkaProducer(bootstrap_servers=self.cluster.bootstrap, acks="all", enable_idempotence=True)
        await _until_kafka_answers(producer.start)

        async def tell(told: Sequence[Published]) -> None:
            for record in told:
                await _until_kafka_answers(lambda: producer.send_and_wait(TURNS, record.value, key=record.key))  # noqa: B023 -- called at once

        try:
            await asyncio.gather(*map(tell, by_user.values()))
        finally:
            await producer.stop()

    async def _look_up_facts(self) -> None:
        """The ids of the notes' facts, as far as the tables have them."""
        with psycopg.connect(self.cluster.database) as connection:
            rows = connection.execute("SELECT source_id, fact_id::text FROM mnemolog.facts").fetchall()
        known: dict[str, str] = dict(rows)
        for story in self.stories:
            for note in story.open_notes:
                note.fact_id = known.get(note.source_id)


async def _until_kafka_answers(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await call()
        except KafkaError:
            await asyncio.sleep(0.3)
        else:
            return


PAGE = ROOT / "docs/reliability.md"
TEMPLATE = Path(__file__).with_name("reliability.md.in")
FEWEST_FAULTS = 100


def write_page(tally: Tally, verdict: Verdict) -> bool:
    """Write the page after a run that is long enough; whether it was."""
    if not os.environ.get("MNEMOLOG_CHAOS_PAGE") or tally.faults.total() < FEWEST_FAULTS:
        return False
    rows = [f"| {kind} | {count} |" for kind, count in sorted(tally.faults.items(), key=lambda one: -one[1])]
    page = Template(TEMPLATE.read_text()).substitute(
        faults="\n".join([*rows, f"| **all** | **{tally.faults.total()}** |"]),
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        seed=tally.seed,
        minutes=round(tally.seconds / 60),
        turns=tally.turns,
        commands=tally.commands,
        sources=verdict.sources,
        commits=verdict.commits,
        repeats=verdict.repeats,
        lost=len(verdict.lost),
        doubled=len(verdict.doubled) + len(verdict.unknown),
        misordered=len(verdict.misordered),
        wrong=len(verdict.wrong_states) + len(verdict.wrong_ends),
        spoilt=tally.spoilt_model_calls,
        cut=tally.lost_commits,
        restored=tally.restored_commits,
        behind=tally.other_offsets,
    )
    PAGE.write_text(page)
    return True
