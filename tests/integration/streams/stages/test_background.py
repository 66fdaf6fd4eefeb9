"""The background of a turn: from the journal, from the worker's memory, from the facts; kept for re-deliveries."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from mnemolog.projections.stores.entities import EntityStore, ShownEntities, ShownEntitiesRequest
from mnemolog.projections.stores.facts import FactStore, ShownFacts, ShownFactsRequest
from mnemolog.projections.stores.turns import Journal, JournalEntry, ReplyStore
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import Background, ShownEntity
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.background import TIE_HEADS
from mnemolog.streams.stages.background import BackgroundReader, Place
from mnemolog.streams.text.differences import USER_WORDS
from tests.support.builders.commits import ALICE, BOB, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
RULES = EffectivePolicy(known_timeout=20.0)  # of a busy machine


def said(turn_id: str, content: str, **fields: Any) -> Turn:
    messages = (Message(role="user", content=content),)
    return Turn(turn_id=turn_id, scope=ALICE, messages=messages, occurred_at=day(1), **fields)


def place(offset: int) -> Place:
    return day(1) + timedelta(seconds=offset), offset


async def journal(db: ProjectedDatabase, turn: Turn, offset: int) -> None:
    published_at, _ = place(offset)
    entry = JournalEntry(parsed=turn, topic="conversation_turns", partition=0, offset=offset, published_at=published_at)
    await Journal(db.pool).record([entry])


@asynccontextmanager
async def reader(
    db: ProjectedDatabase, facts: FactStore | None = None, entities: EntityStore | None = None
) -> AsyncIterator[BackgroundReader]:
    """A worker that has just begun."""
    facts = facts or FactStore(db.pool, user_words=USER_WORDS)
    made = BackgroundReader(
        Journal(db.pool),
        facts,
        entities or EntityStore(db.pool, ties=TIE_HEADS),
        ReplyStore(db.pool),
    )
    try:
        yield made
    finally:
        await made.close()


def texts(background: Background) -> list[str]:
    return [message.content for message in background.messages]


async def test_the_turn_just_before_is_shown_though_the_journal_does_not_have_it(db: ProjectedDatabase) -> None:
    await journal(db, said("a", "In the journal."), 0)
    await journal(db, said("b", "In both."), 1)
    async with reader(db) as worker:
        for number, turn in enumerate((said("b", "In both."), said("c", "In memory.")), start=1):
            worker.remember(turn, place(number))
        background = await worker.background_of(said("d", "Now."), place(3), RULES)
        assert texts(background) == ["In the journal.", "In both.", "In memory."]
        assert background.turn_ids == ("a", "b", "c")
        worker.forget(ALICE.owner, place(3)[0])  # a deletion is heeded before it is in the tables
        assert texts(await worker.background_of(said("e", "Now."), place(4), RULES)) == []


async def test_a_worker_that_begins_reads_what_another_one_has_extracted(db: ProjectedDatabase) -> None:
    async with reader(db) as first:
        first.remember(said("a", "Before."), place(0))
    await journal(db, said("a", "Before."), 0)
    await journal(db, said("z", "The journal is ahead."), 9)
    async with reader(db) as second:
        assert texts(await second.background_of(said("b", "Now."), place(1), RULES)) == ["Before."]


async def test_a_turn_that_comes_again_gets_what_it_was_shown_first_until_its_replies_are_forgotten(
    db: ProjectedDatabase,
) -> None:
    turn = said("b", "I like tea.")
    async with reader(db) as first:
        shown = await first.background_of(turn, place(1), RULES)
    await journal(db, said("a", "Came late."), 0)
    await db.apply(commit("t1", added("Alice likes tea.")))
    async with reader(db) as second:
        assert await second.background_of(turn, place(1), RULES) == shown == Background()
        assert await second.background_of(turn, place(2), RULES) == shown  # another record of the same id
        await ReplyStore(db.pool).forget(ALICE.owner, turn.turn_id)
        again = await second.background_of(turn, place(2), RULES)
    assert texts(again) == ["Came late."]
    assert [fact.text for fact in again.facts] == ["Alice likes tea."]


async def test_facts_with_its_words_and_the_slots_of_the_speaker_are_shown(db: ProjectedDatabase) -> None:
    home: dict[str, Any] = {"key": "home_city", "value": "Rome", "single_valued": True}
    drafts = [
        added("Alice likes tea.", subject="Alice"),
        added("Alice plays chess.", subject="Alice"),
        added("Alice lives in Rome.", subject="Alice", **home),
        added("Tom lives in Bern.", subject="Tom", key="home_city", value="Bern"),
    ]
    await db.apply(
        commit("t1", *drafts, speaker="Alice"),
        commit("t2", added("Bob drinks tea."), scope=BOB),
    )
    nothing = EffectivePolicy(conversation_messages=0, known_facts=0, known_entities=0)
    await journal(db, said("a", "One."), 0)
    async with reader(db) as worker:
        assert await worker.background_of(said("a2", "tea"), place(1), nothing) == Background()
        shown = await worker.background_of(said("b", "I had tea.", speaker="Alice"), place(1), RULES)
    assert [fact.text for fact in shown.facts] == ["Alice likes tea.", "Alice lives in Rome."]
    assert shown.names == ("Alice",)
    assert (shown.facts[1].key, shown.facts[1].value, shown.facts[1].subject) == ("home_city", "Rome", "Alice")


async def test_slots_of_policies_of_facts_and_of_all_who_speak_are_shown(db: ProjectedDatabase) -> None:
    gym: dict[str, Any] = {"key": "gym_day", "value": "Monday"}
    drafts = [
        added("Alice trains on Monday.", subject="Alice", **gym),
        added("Alice parks in the yard.", subject="Alice", key="parking", value="yard", single_valued=True),
        added("Alice speaks French.", subject="Alice", key="language", value="French"),
        added("Émile lives in Bern.", subject="Émile", key="home_city", value="Bern"),
        added("Tom lives in Ulm.", subject="Tom", key="home_city", value="Ulm"),
    ]
    await db.apply(
        commit("t1", *drafts, speaker="Alice"),
        commit("t2", added("Bob trains on Friday.", subject="Bob", **gym), scope=BOB),
    )
    messages = (Message(role="user", content="Hm."), Message(role="user", name="ÉMILE", content="Now it is Rome."))
    turn = Turn(turn_id="b", scope=ALICE, messages=messages, occurred_at=day(1), speaker="Alice")
    async with reader(db) as worker:
        ours = await worker.background_of(turn, place(1), replace(RULES, single_valued=("gym_day",)))
        other = await worker.background_of(said("c", "Hm.", speaker="Alice"), place(2), RULES)
    assert {fact.text for fact in ours.facts} == {
        "Alice trains on Monday.",
        "Alice parks in the yard.",
        "Émile lives in Bern.",
    }
    assert [fact.text for fact in other.facts] == ["Alice parks in the yard."]


async def test_entities_that_were_shown_are_kept_for_a_turn_that_comes_again(db: ProjectedDatabase) -> None:
    ana = ShownEntity(entity_id=UUID(int=7), name="Ana", type="person", names=("Annie",), ties=("wife of the user",))

    class Entities(EntityStore):
        given = ShownEntities(entities=(ana,))

        async def shown_entities(self, requests: Sequence[ShownEntitiesRequest]) -> list[ShownEntities]:
            return [self.given for _ in requests]

    turn = said("b", "Ana sings.")
    for entities in (Entities(db.pool, ties=()), EntityStore(db.pool, ties=())):
        async with reader(db, entities=entities) as worker:
            assert (await worker.background_of(turn, place(1), RULES)).entities == (ana,)


class BrokenFacts(FactStore):
    """Fails as it is told, or never answers."""

    error: Exception | None = None

    async def shown_facts(self, requests: Sequence[ShownFactsRequest]) -> list[ShownFacts]:
        del requests
        if self.error is None:
            await asyncio.Event().wait()
        raise self.error or AssertionError


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (None, "extracted without known facts and entities: reading them took more than 0.05 s"),
        (psycopg.errors.UndefinedTable("facts"), "extracted without known facts and entities: reading them failed"),
    ],
)
async def test_without_known_facts_the_extraction_goes_on_and_says_so(
    db: ProjectedDatabase, error: Exception | None, note: str
) -> None:
    facts = BrokenFacts(db.pool, user_words=())
    facts.error = error
    await journal(db, said("a", "Before."), 0)
    async with reader(db, facts) as worker:
        shown = await worker.background_of(said("b", "tea"), place(1), EffectivePolicy(known_timeout=0.05))
    assert (texts(shown), shown.facts, shown.notes) == (["Before."], (), (note,))
