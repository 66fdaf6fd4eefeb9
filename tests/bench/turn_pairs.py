"""How much longer a turn takes that comes right behind another one of its owner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.turn import Turn
from tests.bench.environment import Environment
from tests.bench.processes import workers
from tests.bench.sample_turns import turns
from tests.bench.statistics import Percentiles
from tests.bench.turn_throughput import MEASURED, WARMING, ProgressReader, connected

WARM_UP_PAIRS: Final = 10
_LATENCIES: Final[LiteralString] = """
SELECT user_id, extract(epoch FROM pg_xact_commit_timestamp(xmin) - published_at)::float8 * 1000, llm_calls
FROM mnemolog.commits
WHERE source_id LIKE %(sources)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPairs:
    """Two turns of one owner published together, pair after pair with no other load.

    Milliseconds from publication to the commit of the end's transaction, without the sleep of the model server. `added`
    is by how much the second of a pair took longer than the first.
    """

    infer: bool
    first: Percentiles
    second: Percentiles
    added: Percentiles


async def measure_pairs(
    arena: Environment, layout: Sequence[Sequence[Stage]], *, count: int, infer: bool, model_seconds: float
) -> TurnPairs:
    """For each of `count` users publish two turns, and wait until both have their end."""
    async with (
        workers(arena.settings, layout, arena.servers.folder),
        connected(arena) as connection,
        AsyncMemoryClient.from_settings(arena.settings) as client,
    ):
        watch = ProgressReader(connection, {})
        pairs = [*_pairs(WARMING, WARM_UP_PAIRS, infer=infer), *_pairs(MEASURED, count, infer=infer)]
        for number, pair in enumerate(pairs, 1):
            await client.add_many(pair)
            await watch.until_done(2 * number)
        firsts, seconds = [await _latencies(connection, turn, model_seconds) for turn in range(2)]
    added = [seconds[user] - firsts[user] for user in firsts]
    first, second = Percentiles.of([*firsts.values()]), Percentiles.of([*seconds.values()])
    return TurnPairs(infer=infer, first=first, second=second, added=Percentiles.of(added))


def _pairs(prefix: str, users: int, *, infer: bool) -> Iterator[tuple[Turn, Turn]]:
    made = [*islice(turns(infer=infer, prefix=prefix, users=users, seed=len(prefix)), 2 * users)]
    return zip(made[:users], made[users:], strict=True)


async def _latencies(connection: AsyncConnection[TupleRow], turn: int, model_seconds: float) -> dict[str, float]:
    rows = await (await connection.execute(_LATENCIES, {"sources": f"{MEASURED}{turn}-%"})).fetchall()
    return {user: waited - calls * model_seconds * 1000 for user, waited, calls in rows}
