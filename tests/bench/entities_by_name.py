"""`python -m tests.bench.entities_by_name`: what an entity asked for by its name costs, by the size of its scope."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import psycopg

from mnemolog import AsyncMemoryClient
from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from mnemolog.settings import Settings
from tests.bench.figures import Percentiles
from tests.bench.markdown import table
from tests.support.filled_scopes import fill_entities, fill_scopes, name_of_entity

SIZES: Final = (500, 2000, 8000, 20_000)
REPEATS: Final = 20


async def milliseconds(read: Callable[[], Awaitable[object]]) -> str:
    waits = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        await read()
        waits.append((time.perf_counter() - started) * 1000)
    return " / ".join(Percentiles.of(waits).cells(0))


async def rows(client: AsyncMemoryClient, size: int) -> tuple[str, ...]:
    user = f"user{size}"
    return (
        str(size),
        await milliseconds(lambda: client.entities.get(name_of_entity(7), user_id=user)),
        await milliseconds(lambda: client.entities.neighbours(name_of_entity(10), user_id=user)),
        await milliseconds(lambda: client.entities.who("my wife", user_id=user)),
        await milliseconds(lambda: client.entities.list(user_id=user, limit=10)),
    )


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with await EmbeddedStack.start(Path(folder), kafka=False, test=True) as stack:
            await migrate(stack.postgres_url)
            fill_scopes(stack.postgres_url, {f"user{size}": size for size in SIZES}, dimensions=8)
            fill_entities(stack.postgres_url)
            with psycopg.connect(stack.postgres_url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
            settings = Settings(kafka="127.0.0.1:1", postgres=stack.postgres_url, provider="offline")
            async with AsyncMemoryClient(settings=settings) as client:
                measured = [await rows(client, size) for size in SIZES]
    sys.stdout.write(table(("entities", "`get`", "`neighbours`", '`who("my wife")`', "`list(limit=10)`"), measured))


if __name__ == "__main__":
    asyncio.run(main())
