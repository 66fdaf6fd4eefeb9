"""The reset of a tenant, in one command for each scope or several."""

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from tests.support.harnesses.worker_harness import (
    TenantHarness,
    client_settings,
)

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


async def test_a_reset_deletes_all_of_the_tenant_and_nothing_else(
    tenant: TenantHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scope of more facts than one command is for gets several."""
    monkeypatch.setattr("mnemolog.client.text_edits.RESET_SHARE", 2)
    async with AsyncMemoryClient.from_settings(client_settings(tenant)) as memory:
        name = tenant.scope().tenant
        elsewhere = f"{name}-else"
        for text in ("I live in Berlin.", "I own a dog.", "I like tea."):
            await memory.add(text, user_id="mira", speaker="Mira", wait=True)
        await memory.add("I live in Rome.", user_id="jonas", run_id="r1", speaker="Jonas", wait=True)
        await memory.add("I live in Rome.", user_id="mira", tenant=elsewhere, speaker="Mira", wait=True)
        assert [(one.id, one.facts) for one in await memory.users()] == [("jonas", 1), ("mira", 3)]
        deleted = await memory.reset(confirm=name, wait=True)
        assert sorted(one.facts_deleted for one in deleted) == [1, 1, 2]
        assert len({one.turn_id for one in deleted}) == 3
        assert await memory.users() == []
        assert await memory.count(user_id="**", agent_id="**", run_id="**") == 0
        assert await memory.count(user_id="mira", tenant=elsewhere) == 1
        assert await memory.reset(confirm=name, wait=True) == []
        await memory.undo(turn_id=deleted[0].turn_id, wait=True)
        assert await memory.count(user_id="**", run_id="**") == deleted[0].facts_deleted


async def test_a_reset_in_several_commands_opens_nothing_that_had_ended(
    tenant: TenantHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a fact of the last command had ended was stored long before it."""
    monkeypatch.setattr("mnemolog.client.text_edits.RESET_SHARE", 1)
    async with AsyncMemoryClient.from_settings(client_settings(tenant)) as memory:
        for text in ("I live in Rome.", "I own a dog.", "I moved to Oslo."):
            await memory.add(text, user_id="mira", speaker="Mira", wait=True)
        assert len(await memory.facts(user_id="mira", all_versions=True)) == 3
        assert len(await memory.facts(user_id="mira")) == 2
        deleted = await memory.reset(confirm=tenant.scope().tenant, wait=True)
        assert sum(one.facts_deleted for one in deleted) == 2
        assert await memory.facts(user_id="mira") == []
