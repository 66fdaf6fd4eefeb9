"""A memory without servers: the methods that a test of an application uses, and a clear refusal of the others.

That its decisions are those over Postgres is a property of its own (`tests/properties/twin.py`).
"""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemolog import MnemologError, Result, UnknownFactError, UnknownTurnError
from mnemolog.testing import AsyncInMemoryClient, InMemoryClient, NotInMemoryError

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ALICE: Any = {"user_id": "alice"}
TOLD: Any = {**ALICE, "speaker": "Alice"}


def texts(memory: InMemoryClient) -> list[str]:
    return [fact.text for fact in memory.facts(**ALICE)]


def test_a_conversation_is_decided_searched_and_explained(mnemolog_memory: InMemoryClient) -> None:
    memory = mnemolog_memory
    memory.add("I live in Zurich.", **TOLD, turn_id="t1")
    memory.add("I have a cat called Tom.", **TOLD)
    moved = memory.add("I moved from Zurich to Vienna.", **TOLD, wait=True)
    assert [(change.event, change.text) for change in moved.changes] == [("fact_replaced", "Alice lives in Vienna.")]
    assert texts(memory) == ["Alice has a cat called Tom.", "Alice lives in Vienna."]
    assert memory.search("Where does Alice live?", **ALICE)[0].fact.value == "Vienna"
    (old,) = memory.status("t1").added
    assert memory.get(old.fact_id).text == "Alice lives in Vienna."
    assert [one.status for one in memory.history(old.fact_id).versions] == ["superseded", "active"]
    explained = memory.explain(moved.added[0].fact_id if moved.added else moved.changes[0].fact_id or "")
    assert [one["content"] for one in explained.source.messages or ()] == ["I moved from Zurich to Vienna."]
    profile = memory.profile(**ALICE)
    assert [one["value"] for one in profile.identity] == ["Vienna"]
    assert [one["event"] for one in profile.recent_changes] == ["fact_replaced"]
    assert "Alice lives in Vienna." in memory.context("Where is Alice's home?", **ALICE).text
    for said in ("I'm vegetarian.", "I'm not vegetarian anymore."):
        memory.add(said, **TOLD)
    assert "vegetarian" not in memory.context("What shall I cook?", **ALICE).text


def test_commands_change_facts_and_are_undone(mnemolog_memory: InMemoryClient) -> None:
    memory = mnemolog_memory
    (fact,) = memory.add("I live in Bern.", **TOLD, metadata={"n": 1}, wait=True).added
    for text in ("Alice lives in Zug.", "Alice lives in Basel."):
        memory.update(fact.fact_id, text)  # by its first id
    assert [(one.text, one.metadata) for one in memory.facts(**ALICE)] == [("Alice lives in Basel.", {"n": 1})]
    corrected = memory.correct(memory.facts(**ALICE)[0].fact_id, "Alice lives in Bonn.", wait=True)
    refused = memory.update(memory.facts(**ALICE)[0].fact_id, "Alice lives in Ulm.", wait=True)
    assert (refused.status, (refused.error or "").split(":")[0]) == ("rejected", "human_word")
    memory.undo(turn_id=corrected.turn_id)
    assert texts(memory) == ["Alice lives in Basel."]
    memory.delete_all(**ALICE)
    assert (texts(memory), memory.count(**ALICE)) == ([], 0)
    assert texts(memory) == [] != memory.facts(**ALICE, all_versions=True)


def test_a_message_is_read_as_the_test_says_and_checked_as_a_reply_is(mnemolog_memory: InMemoryClient) -> None:
    memory = mnemolog_memory
    memory.script("Tea, never coffee!", {"text": "Alice drinks tea.", "key": "drink", "value": "tea"})
    memory.script("I live in Bern.")
    memory.script("I live in Rome.", {"text": "Alice earns 90000 dollars.", "key": "salary", "value": "90000"})
    for said in ("Tea, never coffee!", "I live in Bern.", "I live in Rome."):
        memory.add(said, **TOLD)
    assert [(fact.text, fact.value) for fact in memory.facts(**ALICE)] == [("Alice drinks tea.", "tea")]


@pytest.mark.parametrize(
    ("denied", "said"),
    [
        ("ok I'm not vegan", "I'm vegan!"),
        ("I'm not allergic to milk after all.", "I'm allergic to milk."),
        ("well, I don't work at Acme any more", "I work at Acme."),
        ("I'm not vegetarian, really.", "I'm vegetarian."),
    ],
)
def test_a_denial_and_what_it_denies_do_not_both_hold(mnemolog_memory: InMemoryClient, denied: str, said: str) -> None:
    for words in (denied, said):
        mnemolog_memory.add(words, **TOLD)
    assert len(texts(mnemolog_memory)) == 1


def test_the_clock_is_the_tests_and_what_has_ended_expires() -> None:
    now = NOON
    with InMemoryClient(now=lambda: now) as memory:
        memory.add("I'm in Rome until Friday.", **TOLD)
        assert len(texts(memory)) == 1
        now += timedelta(days=10)
        assert texts(memory) == []
        memory.add("I like tea.", **TOLD)
        assert sorted(one.status for one in memory.facts(**ALICE, all_versions=True)) == ["active", "expired"]


async def test_the_client_for_asyncio_has_the_same_methods_and_scopes() -> None:
    async with AsyncInMemoryClient() as memory:
        alice, bob = memory.scope(user_id="alice"), memory.scope(user_id="bob")
        await asyncio.gather(alice.add("I live in Bern."), bob.add("I live in Rome."))
        assert [fact.value for fact in await alice.facts()] == ["Bern"]
        with pytest.raises(UnknownFactError, match="user_id 'bob'"):
            await bob.get((await alice.facts())[0].fact_id, user_id="bob")
    with pytest.raises(MnemologError, match="is closed"):
        await memory.facts(user_id="alice")


def test_ends_are_told_without_asking() -> None:
    told: list[Result] = []
    known: list[int] = []
    came = threading.Semaphore(0)

    def on_end(end: Result) -> None:
        told.append(end)
        known.append(memory.count(**ALICE))  # it may ask the client
        came.release()
        raise ValueError("the application's own fault is logged, and the next one is told")

    with InMemoryClient(on_end=on_end) as memory:
        turn = memory.add("I live in Bern.", **TOLD)
        deleted = memory.delete_all(**ALICE)
        assert all(came.acquire(timeout=10) for _ in range(2))
    assert [(one.turn_id, one.status) for one in told] == [(turn.turn_id, "stored"), (deleted.turn_id, "done")]


@pytest.mark.parametrize(
    "asked",
    [
        lambda memory: memory.search("home", **ALICE, believed_at="2026-01-01"),
        lambda memory: memory.entities.list(**ALICE),
        lambda memory: memory.dry_run("I live in Bern.", **ALICE),
        lambda memory: memory.diff("2026-01-01", **ALICE),
        lambda memory: memory.delete_all(user_id="*"),
    ],
    ids=["time", "entities", "dry run", "diff", "wildcard"],
)
def test_what_needs_the_servers_is_refused(
    mnemolog_memory: InMemoryClient, asked: Callable[[InMemoryClient], object]
) -> None:
    with pytest.raises(NotInMemoryError, match=r"is not done in memory: use mnemolog.start\(\)"):
        asked(mnemolog_memory)


def test_errors_are_those_of_the_client(mnemolog_memory: InMemoryClient) -> None:
    with pytest.raises(UnknownTurnError):
        mnemolog_memory.status("nothing")
    with pytest.raises(MnemologError, match="colour"):
        mnemolog_memory.add("I live in Bern.", colour="blue", **ALICE)  # type: ignore[call-arg] # on purpose
    first = mnemolog_memory.add("I live in Bern.", **TOLD, turn_id="t1")
    again = mnemolog_memory.add("I live in Rome.", **TOLD, turn_id="t1", wait=True)
    assert (again.reused, first.turn_id, len(mnemolog_memory.facts(**ALICE))) == (True, "t1", 1)
