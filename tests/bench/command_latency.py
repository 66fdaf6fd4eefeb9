"""How long a command takes from its publication until its end is in the tables."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.producer import CommandReceipt
from mnemolog.schemas.provenance import Stage
from tests.bench.environment import Environment
from tests.bench.processes import workers
from tests.bench.sample_turns import sentence, turns
from tests.bench.statistics import Percentiles
from tests.bench.turn_throughput import ProgressReader, connected

WARM_UP_USERS: Final = 5
"""Users whose commands do not count."""
KINDS: Final = ("update", "delete", "undo")

_FACTS: Final[LiteralString] = (
    "SELECT DISTINCT ON (user_id) user_id, fact_id::text FROM mnemolog.facts ORDER BY user_id"
)
_NEW: Final[LiteralString] = "SELECT fact_id::text FROM mnemolog.facts WHERE source_id = %(source_id)s"
_LATENCIES: Final[LiteralString] = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - published_at)::float8 * 1000
FROM mnemolog.commits
WHERE source_id LIKE %(kind)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLatency:
    """Commands of one kind, one after another. Milliseconds from publication to the commit of its end's transaction."""

    kind: str
    latency: Percentiles


async def measure_command_latency(
    arena: Environment, layout: Sequence[Sequence[Stage]], *, count: int
) -> tuple[CommandLatency, ...]:
    """For each of `count` users update a fact, delete the new one, and take that back."""
    async with (
        workers(arena.settings, layout, arena.servers.folder),
        connected(arena) as connection,
        AsyncMemoryClient.from_settings(arena.settings) as client,
    ):
        users = count + WARM_UP_USERS
        await client.add_many(islice(turns(infer=False, users=users), users))
        await ProgressReader(connection, {}).until_done(users)
        known = await (await connection.execute(_FACTS)).fetchall()
        for number, (user_id, fact_id) in enumerate(known):
            prefix = "warming-" if number < WARM_UP_USERS else ""
            async for kind, issued in _issue_commands(client, connection, user_id, fact_id, prefix):
                result = await client.wait(issued.command_id, user_id=user_id)
                assert result.status == "done", f"{kind}: {result}"
        return tuple([CommandLatency(kind=kind, latency=await _latency_of(connection, kind)) for kind in KINDS])


async def _issue_commands(
    client: AsyncMemoryClient, connection: AsyncConnection[TupleRow], user_id: str, fact_id: str, prefix: str
) -> AsyncIterator[tuple[str, CommandReceipt]]:
    """One command after the other; the next one is published when the one before has its end."""
    update, delete, undo = (f"{prefix}{kind}-{user_id}" for kind in KINDS)
    text = " ".join(sentence("updated", user_id)).capitalize() + "."
    yield "update", await client.update(fact_id, text, user_id=user_id, command_id=update)
    ((new,),) = await (await connection.execute(_NEW, {"source_id": update})).fetchall()
    yield "delete", await client.delete(new, user_id=user_id, command_id=delete)
    yield "undo", await client.undo(turn_id=delete, user_id=user_id, command_id=undo)


async def _latency_of(connection: AsyncConnection[TupleRow], kind: str) -> Percentiles:
    rows = await (await connection.execute(_LATENCIES, {"kind": f"{kind}-%"})).fetchall()
    return Percentiles.of([milliseconds for (milliseconds,) in rows])
