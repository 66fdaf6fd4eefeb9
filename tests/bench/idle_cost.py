"""What workers cost while there is nothing to do."""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Final

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.provenance import Stage
from tests.bench.environment import Environment
from tests.bench.processes import workers
from tests.bench.sample_turns import turns
from tests.bench.statistics import rate_between
from tests.bench.turn_throughput import ProgressReader, connected

TURNS: Final = 20
"""Before the measurement, so that every connection is open."""
SETTLING_SECONDS: Final = 5


async def measure_idle(arena: Environment, layout: Sequence[Sequence[Stage]], *, seconds: float) -> float:
    """Percent of one core that all workers together use while no turn comes."""
    async with (
        workers(arena.settings, layout, arena.servers.folder) as started,
        connected(arena) as connection,
        AsyncMemoryClient.from_settings(arena.settings) as client,
    ):
        watch = ProgressReader(connection, started)
        await client.add_many(islice(turns(), TURNS))
        await watch.until_done(TURNS)
        await asyncio.sleep(SETTLING_SECONDS)
        before = await watch.sample()
        await asyncio.sleep(seconds)
        return rate_between(before, await watch.sample()).cores * 100
