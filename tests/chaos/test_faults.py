"""Three workers with all stages under every fault that a machine has; then log and tables are checked by foreign means.

`make chaos` runs more rounds (MNEMOLOG_CHAOS_ROUNDS) with a seed of its own (MNEMOLOG_CHAOS_SEED repeats one) and
writes docs/reliability.md. With MNEMOLOG_CHAOS_CHAIN=none no worker hands records on in memory.
"""

import os
import random

import pytest

from tests.chaos.brokers import COPIES
from tests.chaos.checker import Verdict, check, read_log
from tests.chaos.cluster import LOG, PARTITIONS
from tests.chaos.machines import mnemolog
from tests.chaos.run import ChaosRun, Tally, write_page
from tests.support.databases import server_folder

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.chaos, pytest.mark.timeout(7200)]

ROUNDS = int(os.environ.get("MNEMOLOG_CHAOS_ROUNDS", "1"))
SEED = int(os.environ.get("MNEMOLOG_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))


def say(text: str) -> None:
    print(f"chaos: {text}", flush=True)  # noqa: T201 -- progress, and what makes a failure repeatable


# Three brokers take a minute to start and stop: only `make chaos` has them.
@pytest.mark.parametrize("brokers", (1, COPIES) if "MNEMOLOG_CHAOS_ROUNDS" in os.environ else (1,))
async def test_no_fault_loses_doubles_or_reorders_anything(brokers: int) -> None:
    tally, verdict = await survive(ROUNDS if brokers == 1 else max(1, ROUNDS // 4), brokers)
    if brokers == 1:
        write_page(tally, verdict)


async def survive(rounds: int, brokers: int) -> tuple[Tally, Verdict]:
    say(f"{rounds} rounds, {brokers} brokers, seed {SEED}, chain in {os.environ.get('MNEMOLOG_CHAOS_CHAIN', 'all')}")
    with server_folder() as folder:
        run = ChaosRun(SEED, folder, say, brokers=brokers)
        cluster = run.cluster
        async with cluster.running():
            for number in range(rounds):
                say(f"round {number + 1}/{rounds}")
                await run.round(number)
            await run.settle()
            tally = run.tally
            published = {f"default/{story.name}": story.order for story in run.stories}
            verdict = check(
                await read_log(cluster.bootstrap, LOG, PARTITIONS),
                cluster.database,
                published,
                {story.name: story.active for story in run.stories},
                {one: "done" if _is_command(one) else "stored" for ids in published.values() for one in ids},
            )
            say(f"{tally} {verdict}")
            assert not verdict.faults, verdict.faults
            for command in (("audit",), ("rebuild", "--verify-only"), ("rebuild", "--from", "table", "--verify-only")):
                code, said = await mnemolog(cluster.environ, *command)
                assert code == 0, said
    return tally, verdict


def _is_command(source_id: str) -> bool:
    return source_id.split("-")[1] in ("delete", "correct", "undo")
