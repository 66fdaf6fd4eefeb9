"""Runs a property over generated histories, one event loop and one database for all of them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import uvloop

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from tests.properties.harness import Harness
from tests.properties.play import check_facts
from tests.properties.play_dialogues import check_dialogues
from tests.properties.play_people import check_people
from tests.properties.shared import check_shared
from tests.properties.twin import check_memory
from tests.support.databases import fresh_database, server_folder


@dataclass(frozen=True)
class Property:
    """What has to hold of each history that is drawn from a seed; `check` raises for the smallest one that fails."""

    name: str
    check: Callable[[Harness, Random], Coroutine[Any, Any, None]]


PROPERTIES: Final = (
    *(Property("facts", check_facts), Property("people", check_people), Property("shared", check_shared)),
    *(Property("memory", check_memory), Property("dialogues", check_dialogues)),
)


@dataclass(frozen=True)
class Found:
    """The first history in which something is wrong, or the number of those that were tried, and what is wrong."""

    history: int
    error: AssertionError | None = None


@contextmanager
def fresh_postgres() -> Iterator[str]:
    """The URL of a migrated database on a Postgres of its own."""
    with asyncio.Runner() as runner, server_folder() as folder:
        stack = runner.run(EmbeddedStack.start(folder / "data", kafka=False, test=True))
        try:
            with fresh_database(stack.postgres_url) as url:
                runner.run(migrate(url))
                yield url
        finally:
            runner.run(stack.__aexit__(None, None, None))


@contextmanager
def running_harness(database: str) -> Iterator[tuple[asyncio.Runner, Harness]]:
    """A harness over `database` with the loop that runs it."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        harness = runner.run(stack.enter_async_context(Harness.open(database, entity_summary="on_demand")))
        try:
            yield runner, harness
        finally:
            runner.run(stack.aclose())


def run_property(
    runner: asyncio.Runner, harness: Harness, tested: Property, *, histories: range, seed: int = 0
) -> Found:
    """Try the histories of these numbers of a seed, until one is wrong."""
    for number in histories:
        try:
            runner.run(tested.check(harness, Random(f"{seed}/{number}")))
        except AssertionError as error:
            return Found(number, error)
    return Found(histories.stop)
