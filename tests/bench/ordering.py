"""How long a command takes from its publication until its end stands in the tables."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client import MemoryClient
from mnemolog.ordering import Ordered
from mnemolog.schemas.provenance import Stage
from tests.bench.arena import Arena
from tests.bench.figures import Spread
from tests.bench.processes import workers
from tests.bench.storing import Watch, connected
from tests.bench.turns import sentence, turns

WARMING: Final = 5
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
class Commanded:
    """Commands of one kind, one after another. Milliseconds from publication to the commit of its end's transaction."""

    kind: str
    waited: Spread


async def commanded(arena: Arena, layout: Sequence[Sequence[Stage]], *, count: int) -> tuple[Commanded, ...]:
    """For each of `count` users update a fact, delete the new one, and take that back."""
    async with (
        workers(arena.settings, layout, arena.servers.folder),
        connected(arena) as connection,
        MemoryClient.from_settings(arena.settings) as client,
    ):
        users = count + WARMING
        await client.add_many(islice(turns(infer=False, users=users), users))
        await Watch(connection, {}).until_done(users)
        known = await (await connection.execute(_FACTS)).fetchall()
        for number, (user_id, fact_id) in enumerate(known):
            prefix = "warming-" if number < WARMING else ""
            async for kind, ordered in _orders(client, connection, user_id, fact_id, prefix):
                result = await client.wait(ordered.command_id, user_id=user_id)
                assert result.status == "done", f"{kind}: {result}"
        return tuple([Commanded(kind=kind, waited=await _waited(connection, kind)) for kind in KINDS])


async def _orders(
    client: MemoryClient, connection: AsyncConnection[TupleRow], user_id: str, fact_id: str, prefix: str
) -> AsyncIterator[tuple[str, Ordered]]:
    """One order after the other; the next one is given when the one before has come to its end."""
    update, delete, undo = (f"{prefix}{kind}-{user_id}" for kind in KINDS)
    text = " ".join(sentence("updated", user_id)).capitalize() + "."
    yield "update", await client.update(fact_id, text, user_id=user_id, command_id=update)
    ((new,),) = await (await connection.execute(_NEW, {"source_id": update})).fetchall()
    yield "delete", await client.delete(new, user_id=user_id, command_id=delete)
    yield "undo", await client.undo(turn_id=delete, user_id=user_id, command_id=undo)


async def _waited(connection: AsyncConnection[TupleRow], kind: str) -> Spread:
    rows = await (await connection.execute(_LATENCIES, {"kind": f"{kind}-%"})).fetchall()
    return Spread.of([milliseconds for (milliseconds,) in rows])
