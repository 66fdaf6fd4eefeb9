"""Stories told to a memory without servers: what it answers is what Postgres answers over the same log."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from mnemolog.projections import context
from mnemolog.projections.queries import explain, facts, ids, pending, write_result
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search import search
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.turn import Turn
from mnemolog.testing import InMemoryClient
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
START: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
ALICE: Final[Any] = {"user_id": "alice"}
WITHIN: Final = ScopeFilter(user_id="alice")
MORE: Final[Any] = {"text": "Alice drinks tea.", "key": "drink", "value": "tea", "category": ["soft_preference"]}
FILTERS: Final[list[dict[str, Any]]] = [
    {"NOT": [{"key": {"exists": True}}]},
    {"state": {"ne": "active"}},
]


class Story:
    """Tells a memory in memory, a day after the other."""

    def __init__(self, memory: InMemoryClient) -> None:
        self.memory = memory
        self.at = START

    def says(self, *said: str, **arguments: Any) -> None:
        for one in said:
            self.at += timedelta(days=1)
            self.memory.add(one, **ALICE, speaker="Alice", **arguments)

    def first(self, text: str) -> Any:
        self.at += timedelta(hours=1)
        return next(one.fact_id for one in self.memory.facts(**ALICE, all_versions=True) if text in one.text)


def moves(story: Story) -> None:
    story.says("I live in Zurich.", "I have a cat called Tom.", "I moved from Zurich to Vienna.", "I live in Vienna.")
    story.says("I lived in Bern until 2019.", "I'm starting at Siemens on 1 April.", "I'm in Rome until Friday.")


def denies(story: Story) -> None:
    story.says("I'm allergic to nuts.", "I'm vegetarian.", "I'm not vegetarian any more.")
    story.says("I'm not allergic to nuts.", "I'm allergic to nuts.", "I hate mushrooms.", "I love mushrooms.")


def is_edited(story: Story) -> None:
    story.says("I live in Bern.", "I work at Acme.", "I like tea.", metadata={"place": {"city": "Bern"}, "number": 3})
    memory = story.memory
    memory.update(story.first("Bern"), "Alice lives in Basel.")
    memory.correct(story.first("Basel"), "Alice lives in Bonn.")
    memory.delete(story.first("tea"))
    undone = memory.delete_all(**ALICE, filters={"key": "employer"})
    memory.undo(turn_id=undone.turn_id)
    story.says("I live in Ulm.", "I work at Bosch now.")


def waits(story: Story) -> None:
    story.says("I'm allergic to nuts.", "I'm allergic to milk.", "I'm not allergic to nuts.", "I no longer avoid milk.")
    held = story.memory.pending(**ALICE)
    for number, one in enumerate(held):
        (story.memory.reject if number % 2 else story.memory.confirm)(one.fact.fact_id)  # type: ignore[union-attr] # no merges here
    story.says("I'm not allergic to milk.", "I might be allergic to eggs.", "I'm not allergic to eggs.")


def knows_people(story: Story) -> None:
    story.says("My wife is Ana.", "Ana lives in Bern.", "My brother Tom works at Siemens.", "Tom likes tea.")
    story.says("Ana moved to Rome.", "My wife likes opera.", "My colleague Tom lives in Graz.")


def is_scripted(story: Story) -> None:
    story.memory.script("Tea, never coffee!", MORE)
    story.memory.script("Coffee after all!", MORE | {"text": "Alice drinks coffee.", "value": "coffee"})
    story.says("Tea, never coffee!", "Tea, never coffee!", "Coffee after all!", "What do I drink?")


STORIES: Final = (moves, denies, is_edited, waits, knows_people, is_scripted)


def questions(
    memory: InMemoryClient, at: datetime
) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Each query that is answered in memory, with arguments."""
    tables: Any = memory._connections.tables  # type: ignore[attr-defined] # of a client in memory
    asked: list[dict[str, Any]] = [{}, {"all_versions": True}, {"limit": 2}]
    asked += [{"after": one, "all_versions": True} for one in tables.facts]
    for given in asked:
        yield facts.facts, (WITHIN,), {"at": at, **given}
    for given in FILTERS:
        yield facts.facts, (WITHIN, parse_filter(given)), {"at": at}
        yield facts.count_facts, (WITHIN, parse_filter(given)), {"at": at}
    for days in range(0, 15, 2):
        for back in (0, 3):
            then = START + timedelta(days=days)
            yield facts.facts_as_of, (WITHIN,), {"believed_at": then, "true_at": then - timedelta(days=back)}
    for one in tables.facts:
        yield facts.fact, ("default", one), {}
        yield explain.history, ("default", one), {}
        yield explain.explain, ("default", one), {}
        yield ids.find_facts, (WITHIN, [str(one)]), {}
    for turn_id in {row.commit.source_id for row in tables.rows.commits}:
        yield write_result.turn_status, ("default", turn_id), {"verbose": True}
        yield write_result.why_not, ("default", turn_id), {}
        yield ids.find_turn, (WITHIN, turn_id), {}
    yield facts.published_profile, (WITHIN, at), {}
    yield context.lasting_facts, ([WITHIN], at), {}
    yield pending.pending_changes, (WITHIN, at), {}
    yield pending.unresolved, (WITHIN, at), {}
    yield search.count_facts, (ScopeFilter(user_id="alice"),), {"at": at}


def differences(one: Any, other: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    if is_dataclass(one) and type(one) is type(other):
        for name in (field.name for field in fields(one) if field.name != "begins_later"):  # as of the real time
            yield from differences(getattr(one, name), getattr(other, name), f"{place}.{name}")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for number, parts in enumerate(zip(one, other, strict=True)):
            yield from differences(*parts, f"{place}[{number}]")
    elif one != other and (one, other) != ("expired", "active"):  # the same
        yield place, one, other


@pytest.mark.parametrize("tell", STORIES, ids=lambda tell: tell.__name__)
async def test_postgres_answers_as_the_memory_does(db: ProjectedDatabase, tell: Callable[[Story], None]) -> None:
    story: Any = None
    with InMemoryClient(now=lambda: story.at if story else START) as memory:
        story = Story(memory)
        tell(story)
        tables: Any = memory._connections.tables  # type: ignore[attr-defined] # of a client in memory
        answers: Any = memory._connections._answers  # type: ignore[attr-defined] # the same
        await db.apply(*(row.commit for row in tables.rows.commits))
        for place, source in enumerate(tables.received.values()):
            if isinstance(source, Turn):
                await db.journal(source, first_offset=place)
        different = []
        for query, args, given in questions(memory, story.at):
            there, here = await query(db.conn, *args, **given), answers.answer(query, *args, **given)
            different += [(query.__name__, args[1:], given, *one) for one in differences(there, here)]
        assert different == []
        assert len(tables.facts) > 1
