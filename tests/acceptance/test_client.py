"""What an application does with the client on a running installation, and what it is told."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

import pytest

from mnemolog import AsyncMemoryClient, Fact, MemoryClient, Message, Result, Scope, Settings, Turn, errors
from tests.support.harnesses.command_line import CommandLine
from tests.support.imports import packages_loaded_by

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)


@pytest.fixture
def settings(shell: CommandLine) -> Settings:
    """The settings of the running installation, as an application would have them."""
    return Settings.model_validate({name.lower(): value for name, value in shell.settings.items()})


def turn(turn_id: str, content: str, user: str) -> Turn:
    message = Message(role="user", content=content, name=user.capitalize())
    return Turn(turn_id=turn_id, scope=Scope(user_id=user), messages=(message,), occurred_at=NOW)


async def raw(client: AsyncMemoryClient, text: str, **whose: Any) -> Fact:
    """A fact of these words."""
    result: Result = await client.add(text, infer=False, wait=True, **whose)
    assert result.changes[0].fact_id is not None
    return await client.get(result.changes[0].fact_id)


async def test_a_turn_becomes_a_fact_that_is_found(settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as client:
        accepted = await client.add("I live in Bern.", user_id="ada", speaker="Ada", occurred_at=NOW)
        assert (accepted.status, accepted.notes, UUID(accepted.turn_id).version) == ("pending", (), 7)
        result = await client.wait(accepted.turn_id)
        assert [(memory.event, memory.text) for memory in result.changes] == [("fact_added", "Ada lives in Bern.")]
        assert (await client.status(accepted.turn_id)).status == "stored"

        found = await client.search("Where is Ada's home?", user_id="ada")
        assert (found.mode, found.notice) == ("hybrid", None)
        assert found.hits[0].fact.text == "Ada lives in Bern."
        assert [fact.text for fact in await client.facts(user_id="ada")] == ["Ada lives in Bern."]
        assert (await client.profile(user_id="ada")).identity[0]["value"] == "Bern"
        history = await client.history(found.hits[0].fact.fact_id)
        assert [event.event for event in history.events] == ["fact_added"]
        changes = await client.diff(datetime.now(UTC) - timedelta(hours=1), user_id="ada")
        assert [change.text for change in changes.added] == ["Ada lives in Bern."]


async def test_what_the_broker_does_not_confirm_is_an_error_in_time(settings: Settings) -> None:
    lost = settings.model_copy(update={"topic_prefix": "no-such-topic."})
    async with AsyncMemoryClient(settings=lost, publish_timeout=0.4) as client:
        with pytest.raises(errors.PublishError, match=r"t-1 was not acknowledged within 0.4 s .* the same turn_id"):
            await client.add("I live in Bern.", user_id="ada", turn_id="t-1")
        with pytest.raises(errors.PartlyPublishedError) as raised:
            await client.add_many([turn("t-2", "x", "ada"), turn("t-3", "x", "ada")])
    assert (raised.value.accepted, set(raised.value.failed)) == ((), {"t-2", "t-3"})


async def test_adding_and_commands_wait_for_the_end_on_request(settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as memory:
        assert_type(await memory.add("I live in Bern.", user_id="wait1", speaker="Ada"), Result)
        result = await memory.add("I like tea.", user_id="wait1", speaker="Ada", wait=True)
        assert_type(result, Result)
        assert (result.status, result.success, result.user_id) == ("stored", True, "wait1")
        fact_id = result.changes[0].fact_id
        assert fact_id is not None
        issued = await memory.delete(fact_id)
        assert_type(issued, Result)
        assert (await memory.wait(issued)).status == "done"
        undone = await memory.undo(turn_id=issued.turn_id, wait=20)
        assert_type(undone, Result)
        assert undone.success
        deleted = await memory.delete_all(user_id="wait1", wait=True)
        assert deleted.facts_deleted == 2


async def test_an_end_without_success_raises_nothing_and_says_why(settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as memory:
        await memory.admin.set_policy({"limits": {"bytes_per_turn": 2000}}, user_id="wait2", wait=True)
        with pytest.raises(errors.LimitExceededError):
            await memory.add("x" * 3000, user_id="wait2", wait=True)
        (rejected,) = await memory.add_many([turn("wait2-1", "y" * 3000, "wait2")], wait=True)
        assert (rejected.status, rejected.success, bool(rejected.error)) == ("rejected", False, True)
        fact = await raw(memory, "Prefers e-mail.", user_id="wait2")
        twice = [await memory.delete(fact.fact_id, wait=True) for _ in range(2)]
        assert [one.status for one in twice] == ["done", "rejected"]
        assert "closed_fact" in (twice[1].error or "")


async def test_a_client_that_connects_first_is_warm_and_says_who_is_away(settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as memory:
        assert await memory.connect() is None  # type: ignore[func-returns-value] # that is the assertion
        assert memory._connections.search_models._embedder._made is not None
        assert await memory.ping() is True
    for name, nowhere in {
        "Kafka": {"kafka": "127.0.0.1:9"},
        "Postgres": {"postgres": "postgresql://127.0.0.1:9/x"},
    }.items():
        async with AsyncMemoryClient(settings=settings.model_copy(update=nowhere)) as memory:
            with pytest.raises(errors.ServerUnavailableError, match=name):
                await memory.ping()


async def test_a_wait_in_vain_names_the_turn_and_says_that_it_goes_on(settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as memory:
        with pytest.raises(errors.WaitTimeoutError, match="not in the tables yet: check the tenant"):
            await memory.wait("never-published", timeout=0.3)
        goes_on = r"turn slow-1 did not finish within 0.001 s.* It goes on"
        with pytest.raises(errors.WaitTimeoutError, match=goes_on) as caught:
            await memory.add("I live in Bern.", user_id="wait3", turn_id="slow-1", wait=0.001)
        assert caught.value.turn_ids == ("slow-1",)
        assert (await memory.wait("slow-1")).status == "stored"
        turns = [turn(f"slow-{number}", "I like tea.", "wait3") for number in (2, 3)]
        with pytest.raises(errors.WaitTimeoutError, match="and 1 after it"):
            await memory.add_many(turns, wait=0.001)
        sent = await memory.add_many(turns)
        issued = await memory.delete_all(user_id="wait3", key="nothing")
        with pytest.raises(errors.WaitTimeoutError, match=f"command {issued.turn_id} did not finish"):
            await memory.wait(issued, timeout=0.0)
        ends = [await memory.wait(one) for one in sent]
        assert_type(ends, list[Result])
        assert [one.turn_id for one in ends] == ["slow-2", "slow-3"]
        assert await memory.status(ends[0]) == ends[0]


async def test_a_run_is_deleted_without_saying_whose_it_is(settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as memory:
        scopes: list[Any] = [{"user_id": "r1"}, {"user_id": "r2", "app_id": "a"}, {"agent_id": "r3"}]
        for scope in scopes:
            await raw(memory, "Asks about an invoice.", **scope, run_id="ticket-9")
            await raw(memory, "Pays by card.", **scope)
        deleted = await memory.delete_all(run_id="ticket-9", wait=True)
        assert [one.facts_deleted for one in deleted.parts] == [1, 1, 1]
        assert (deleted.status, deleted.facts_deleted) == ("done", 3)
        for scope in scopes:
            assert [one.text for one in await memory.facts(**scope)] == ["Pays by card."]
            assert await memory.facts(**scope, run_id="ticket-9") == []
        of_app = await memory.delete_all(app_id="a", wait=True)
        assert of_app.facts_deleted == 1
        with pytest.raises(errors.InvalidCommandError):
            await memory.delete_all()


async def test_without_postgres_a_command_with_its_user_is_published_as_it_stands(settings: Settings) -> None:
    async with AsyncMemoryClient(settings=settings) as memory:
        fact = await raw(memory, "Prefers e-mail.", user_id="own4")
        away = settings.model_copy(update={"postgres": "postgresql://mnemolog@127.0.0.1:9/x"})
        async with AsyncMemoryClient(settings=away) as blind:
            issued = await blind.delete(fact.fact_id, user_id="own4")
            with pytest.raises(errors.InvalidCommandError, match="beginning of an id, and Postgres cannot be asked"):
                await blind.delete(str(fact.fact_id)[:8], user_id="own4")
        assert (await memory.wait(issued)).status == "done"


def test_a_bound_blocking_client_has_every_method(settings: Settings) -> None:
    with MemoryClient(settings=settings) as memory:
        ida = memory.scope(user_id="bound1")
        result = ida.add("I live in Graz.", speaker="Ida", wait=True)
        assert_type(result, Result)
        assert_type(ida.add("I like tea.", speaker="Ida"), Result)
        assert_type(ida.wait(result), Result)
        fact_id = result.changes[0].fact_id
        assert isinstance(fact_id, UUID)
        assert ida.search("Where does Ida live?")[0].fact.text == "Ida lives in Graz."
        assert "Ida lives in Graz." in str(ida.profile())
        assert ida.get(fact_id).text == "Ida lives in Graz."
        assert ida.diff(datetime.now(UTC).date()).added
        assert_type(ida.delete(fact_id, wait=True), Result)
        with pytest.raises(errors.QueryError):
            memory.facts()


def test_an_application_that_uses_the_client_prints_nothing(shell: CommandLine) -> None:
    program = """
from mnemolog import MemoryClient
with MemoryClient() as memory:
    ada = memory.scope(user_id="quiet")
    ada.add("I live in Bern.", speaker="Ada", wait=True)
    ada.search("home"), ada.facts(), ada.profile(), ada.dry_run("I moved to Ulm.", speaker="Ada")
with MemoryClient(postgres="postgresql://me@127.0.0.1:9/x") as memory:
    memory.add("I like tea.", user_id="quiet")
"""
    environment = os.environ | {f"MNEMOLOG_{name}": value for name, value in shell.settings.items()}
    call = [sys.executable, "-c", program]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_client_loads_no_stage() -> None:
    servers = ("mnemolog.streams.stages", "mnemolog.streams.runtime", "faust", "onnxruntime", "openai")
    assert packages_loaded_by("mnemolog.client.async_client", *servers) == []
