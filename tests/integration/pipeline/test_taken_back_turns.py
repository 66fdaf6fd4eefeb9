"""What a person has taken back does not come back through the turns that told it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import TenantHarness, client_settings

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]
QUESTION: Final = "Berlin Munich dog weather"
Steps = Callable[[AsyncMemoryClient], Awaitable[None]]


async def fact_named(memory: AsyncMemoryClient, word: str) -> str:
    return next(str(one.fact_id) for one in await memory.facts(user_id="mira", all_versions=True) if word in one.text)


async def shown(memory: AsyncMemoryClient) -> set[str]:
    return {
        one.turn_id.rpartition("-")[2] for one in (await memory.search(QUESTION, user_id="mira", include="turns")).turns
    }


async def correct_dog(memory: AsyncMemoryClient) -> None:
    await memory.correct(await fact_named(memory, "dog"), text="Mira owns a cat.", user_id="mira", wait=True)


async def undo_dog(memory: AsyncMemoryClient) -> None:
    (turn_id,) = {one.source_id for one in await memory.facts(user_id="mira") if "dog" in one.text}
    await memory.undo(turn_id=turn_id, user_id="mira", wait=True)


async def delete_dog_and_undo_that(memory: AsyncMemoryClient) -> None:
    deleted = await memory.delete(await fact_named(memory, "dog"), user_id="mira", wait=True)
    assert "dog" not in await shown(memory)
    await memory.undo(turn_id=deleted.turn_id, user_id="mira", wait=True)


async def delete_one_category(memory: AsyncMemoryClient) -> None:
    """Nobody knows of what category the statements are that were not extracted."""
    await memory.delete_all(user_id="mira", filters={"memory": {"contains": "dog"}}, wait=True)


async def delete_what_nothing_matches(memory: AsyncMemoryClient) -> None:
    for chosen in ({"filters": {"memory": {"contains": "cat"}}}, {"key": "no_such_key"}, {"category": "no_such"}):
        deleted = await memory.delete_all(user_id="mira", wait=True, **chosen)
        assert deleted.status == "done"
        assert "nothing was deleted" in deleted.notes[0]


async def delete_all_after_nothing_matched(memory: AsyncMemoryClient) -> None:
    """There is still something to delete, though a later deletion was there already."""
    await memory.delete_all(user_id="mira", wait=True)
    await memory.add("Is the dog in Berlin?", user_id="mira", turn_id="x-late", wait=True)
    await memory.delete_all(user_id="mira", key="no_such_key", wait=True)
    await memory.delete_all(user_id="*", run_id="**", wait=True)


async def delete_all_and_undo_that(memory: AsyncMemoryClient) -> None:
    deleted = await memory.delete_all(user_id="mira", wait=True)
    assert await shown(memory) == set()
    await memory.undo(turn_id=deleted.turn_id, user_id="mira", wait=True)


async def delete_twice_and_undo_one(memory: AsyncMemoryClient) -> None:
    """The second one deleted no fact, and cannot be undone."""
    await delete_all_and_undo_that(memory)
    await memory.delete_all(user_id="mira", wait=True)
    empty = await memory.delete_all(user_id="mira", wait=True)
    assert empty.facts_deleted == 0


async def delete_in_another_scope(memory: AsyncMemoryClient) -> None:
    await memory.add("I live in Berlin.", user_id="mira", run_id="r1", speaker="Mira", wait=True)
    await memory.delete_all(user_id="mira", run_id="r1", wait=True)


ALL: Final = {"berlin", "again", "moved", "dog", "question"}


CASES: Final[dict[Steps, set[str]]] = {
    correct_dog: ALL - {"dog"},
    undo_dog: ALL - {"dog"},
    delete_dog_and_undo_that: ALL,
    delete_one_category: set(),
    delete_what_nothing_matches: ALL,
    delete_all_after_nothing_matched: set(),
    delete_all_and_undo_that: ALL,
    delete_twice_and_undo_one: set(),
    delete_in_another_scope: ALL,
}


async def test_a_turn_is_shown_while_nothing_of_it_is_taken_back(
    shared_worker: StreamsSettings, topic_suffix: str
) -> None:
    """All cases at once, each in a tenant of its own."""

    async def shown_after(steps: Steps, number: int) -> set[str]:
        tenant = TenantHarness(shared_worker, f"{topic_suffix}-{number}")
        async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:
            await tell(memory, tenant)
            await steps(memory)
            return await shown(memory)

    found = await asyncio.gather(*(shown_after(steps, number) for number, steps in enumerate(CASES)))
    assert dict(zip(CASES, found, strict=True)) == CASES


async def tell(memory: AsyncMemoryClient, tenant: TenantHarness) -> None:
    """A value, the same again, another one, another matter, and what nothing is extracted from."""
    said = {
        "berlin": "I live in Berlin.",
        "again": "I live in Berlin.",
        "moved": "I moved from Berlin to Munich.",
        "dog": "I own a dog.",
        "question": "How is the weather in Berlin?",
    }
    for name, text in said.items():
        turn_id = f"{tenant.scope().tenant}-{name}"
        await memory.add(text, user_id="mira", speaker="Mira", turn_id=turn_id, wait=True)


async def test_every_turn_that_repeated_a_deleted_fact_is_hidden(tenant: TenantHarness) -> None:
    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:
        for name in ("berlin", "again"):
            turn_id = f"{tenant.scope().tenant}-{name}"
            await memory.add("I live in Berlin.", user_id="mira", speaker="Mira", turn_id=turn_id, wait=True)
        assert await shown(memory) == {"berlin", "again"}
        await memory.delete(await fact_named(memory, "Berlin"), user_id="mira", wait=True)
        assert await shown(memory) == set()
        await memory.add("I live in Berlin, really.", user_id="mira", speaker="Mira", turn_id="x-new", wait=True)
        assert await shown(memory) == {"new"}


async def test_a_repetition_that_is_undone_is_hidden(tenant: TenantHarness) -> None:
    """The fact that it repeated stays."""
    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:
        for name in ("berlin", "again"):
            await memory.add("I live in Berlin.", user_id="mira", speaker="Mira", turn_id=f"x-{name}", wait=True)
        undone = await memory.undo(turn_id="x-again", user_id="mira", wait=True)
        assert undone.status == "done"
        assert await shown(memory) == {"berlin"}


async def test_a_deletion_for_many_scopes_takes_back_the_turns_of_scopes_without_facts(tenant: TenantHarness) -> None:
    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:
        await memory.add("How is the weather?", user_id="mira", turn_id="x-question", wait=True)
        assert await shown(memory) == {"question"}
        deleted = await memory.delete_all(user_id="*", run_id="**", wait=True)
        assert deleted.facts_deleted == 0
        assert await shown(memory) == set()
        nothing = await memory.delete_all(user_id="*", run_id="**", wait=True)
        assert (nothing.success, nothing.parts, nothing.notes) == (True, (), ("no scope matches: no command was sent",))
        await memory.add("How is the weather?", user_id="mira", turn_id="x-later", wait=True)
        assert await shown(memory) == {"later"}
        await memory.delete_all(user_id="*", run_id="**", wait=True)
        assert await shown(memory) == set()
