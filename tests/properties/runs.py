"""Runs a property over generated histories, one event loop and one database for all of them."""

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import FlakyFailure
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.strategies import SearchStrategy

from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.projections.migrations.upgrade import migrate
from tests.properties.entity_histories import check_entities, seeds
from tests.properties.harness import Harness
from tests.properties.honest_readers import check_honest_readers
from tests.properties.nothing_vanishes import check_nothing_vanishes
from tests.properties.play import check_facts
from tests.properties.play_people import check_people
from tests.properties.shared import check_shared
from tests.properties.stories import stories
from tests.properties.subject_facts import check_subjects
from tests.support.databases import fresh_database, server_folder

Check = Callable[[Harness, Any], Coroutine[Any, Any, None]]
_HEALTH_CHECKS: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


class IndependentDraws(HypothesisProvider):
    """The draws of Hypothesis, each history by itself.

    Its own engine tries variants of each history beside it, most of which differ in nothing that counts here.
    """


BACKEND: Final = "independent"
AVAILABLE_PROVIDERS[BACKEND] = f"{__name__}.{IndependentDraws.__name__}"


@dataclass(frozen=True)
class Property:
    """A property: what a history is drawn from, and what has to hold of it.

    One of which each history is long has only a `share` of the histories that are asked for.
    """

    name: str
    histories: SearchStrategy[Any]
    check: Check
    share: float = 1

    def number_of(self, histories: int) -> int:
        return math.ceil(self.share * histories)


PROPERTIES: Final = (
    Property("facts", seeds(), check_facts),
    Property("people", seeds(), check_people),
    Property("shared", seeds(), check_shared),
    Property("vanish", stories(), check_nothing_vanishes),
    Property("readers", stories(), check_honest_readers),
    Property("entities", seeds(), check_entities, share=0.05),
    Property("subjects", seeds(), check_subjects, share=0.025),
)


@dataclass
class Found:
    """What a run has found: the histories that were tried up to the first fault, and the smallest faulty one."""

    tried: int
    error: Exception | None = None
    first_after: int | None = None


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
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        harness = runner.run(stack.enter_async_context(Harness.open(database, entity_summary="on_demand")))
        try:
            yield runner, harness
        finally:
            runner.run(stack.aclose())


def run_property(
    runner: asyncio.Runner,
    harness: Harness,
    tested: Property,
    *,
    histories: int,
    start: int = 0,
    shrink: bool = True,
    progress: Callable[[int], None] = lambda _: None,
) -> Found:
    """Try a number of histories, those of the seed `start`; the error is that of the smallest one found."""
    found = Found(0)
    histories = tested.number_of(histories)

    @seed(start)
    @settings(
        max_examples=histories,
        backend=BACKEND,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=_HEALTH_CHECKS,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
    )
    @given(tested.histories)
    def test(history: Any) -> None:
        found.tried += found.first_after is None
        progress(found.tried)
        try:
            runner.run(tested.check(harness, history))
        except Exception as error:
            found.first_after = found.first_after or found.tried
            found.error = found.error or error
            raise

    try:
        test()
    except FlakyFailure:
        pass  # it depends on the ids of its facts, which are other ones when it is told again: the first telling counts
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was found
        found.error = error
    return found
