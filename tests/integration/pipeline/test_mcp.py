"""A user's memory through the tools, over the pipeline: the SDK's client in memory, in both ages of the protocol."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from mcp import Client

from mnemolog import AsyncMemoryClient, mcp
from tests.support.harnesses.worker_harness import TenantHarness, client_settings

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


@asynccontextmanager
async def assistant_of(tenant: TenantHarness, user: str, **more: Any) -> AsyncIterator[Client]:
    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:

        async def client_for(*_: object) -> AsyncMemoryClient:
            return memory.scope(user_id=user)

        async with Client(mcp.build_server(client_for), **more) as client:
            yield client


async def call(client: Client, tool: str, /, **arguments: Any) -> Mapping[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return " ".join(content.text for content in result.content if content.type == "text")


def texts(found: Mapping[str, Any]) -> list[str]:
    return [one["memory"] for one in found["memories"]]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_conversation_with_tools(tenant: TenantHarness, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with assistant_of(tenant, "mira", mode=mode) as client:
        added = await call(client, "add_memory", text="I live in Berlin.")
        (home,) = added["added"]
        assert (added["status"], "Berlin" in home["memory"]) == ("done", True)
        assert await call(client, "get_event_status", event_id=added["event_id"]) == added
        await call(client, "add_memory", text="I'm allergic to peanuts.")
        before = datetime.now(UTC).isoformat()
        moved = await call(client, "add_memory", text="I moved from Berlin to Munich.")
        unknown = await refusal(client, "search_memories", query="home", user_id="jonas")
        assert unknown == "search_memories has no argument user_id: its arguments are query, limit"
        page = await call(client, "get_memories", limit=1)
        rest = await call(client, "get_memories", after=page["next"])
        assert ["peanuts" in text for text in (*texts(page), *texts(rest))] == [True, False]
        found = await call(client, "search_memories", query="Where does Mira live?")
        assert "Munich" in texts(found)[0]
        for moment in ({"known_at": before}, {"true_at": before}):
            then = await call(client, "memories_at", **moment)
            assert [home["memory"] in texts(then), "note" in then] == [True, False]
        monkeypatch.setattr(mcp, "MAX_LISTED", 1)
        assert (await call(client, "memories_at", known_at=before))["note"] == "the first 1 of 2"
        assert "peanuts" in (await call(client, "get_context", topic="What shall I cook?"))["context"]
        explained = await call(client, "explain_memory", memory_id=home["id"])
        assert (explained["said"], explained["memory"]["status"]) == ("I live in Berlin.", "superseded")
        assert any("Munich" in sentence for sentence in explained["explanation"])
        assert moved["event_id"] != added["event_id"]
        munich = found["memories"][0]["id"]
        changed = await call(client, "update_memory", memory_id=munich, text="Mira lives in Passau.", was_wrong=True)
        assert changed["status"] == "done"
        gone = await call(
            client,
            "delete_memory",
            memory_id=(await call(client, "search_memories", query="peanuts"))["memories"][0]["id"],
        )
        assert "peanuts" in gone["deleted"][0]["memory"]
        assert texts(await call(client, "get_memories")) == ["Mira lives in Passau."]


async def test_a_change_that_is_held_waits_for_the_user_s_word(tenant: TenantHarness) -> None:
    async with assistant_of(tenant, "mira") as client:
        await call(client, "add_memory", text="I'm allergic to peanuts.")
        change = await call(client, "add_memory", text="Actually, I'm not allergic to peanuts.")
        (held,) = change["held"]
        assert "confirm_pending" in change["note"]
        (waiting,) = (await call(client, "get_memories", only_pending=True))["memories"]
        assert (waiting["id"], waiting["status"]) == (held["id"], "pending_confirmation")
        assert "allergic" in waiting["would_replace"][0]
        assert (await call(client, "confirm_pending", memory_id=held["id"], accept=False))["status"] == "done"
        assert "is archived" in await refusal(client, "confirm_pending", memory_id=held["id"])
        assert len(texts(await call(client, "get_memories"))) == 1


async def test_memory_of_somebody_else_is_unknown(tenant: TenantHarness) -> None:
    async with assistant_of(tenant, "mira") as mira, assistant_of(tenant, "jonas") as jonas:
        added = await call(mira, "add_memory", text="I live in Berlin.")
        (home,) = added["added"]
        for tool in ("explain_memory", "delete_memory", "confirm_pending"):
            assert "no memory of this user" in await refusal(jonas, tool, memory_id=home["id"])
        assert "no memory of this user" in await refusal(jonas, "update_memory", memory_id=home["id"], text="A.")
        assert "no change of this user" in await refusal(jonas, "get_event_status", event_id=added["event_id"])
        assert await call(jonas, "get_memories") == {"memories": []}
        assert texts(await call(mira, "get_memories")) == [home["memory"]]


async def test_an_end_that_is_late_is_asked_for_by_its_id(
    tenant: TenantHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "WAIT_SECONDS", 0.001)
    async with assistant_of(tenant, "mira") as client:
        late = await call(client, "add_memory", text="I live in Berlin.")
        assert (late["status"], "get_event_status" in late["note"]) == ("pending", True)
        ended = await call(client, "get_event_status", event_id=late["event_id"], wait_seconds=20)
        assert (ended["status"], len(ended["added"])) == ("done", 1)
