"""Promotion by a command on a real Kafka and a real Postgres."""

from datetime import UTC, datetime

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.database import open_pool
from mnemolog.projections.queries.audit import audit
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from tests.support.harnesses.worker_harness import TenantHarness, client_settings

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

BERLIN, ROME = "Mira lives in Berlin.", "Mira lives in Rome."


async def tell_move(memory: AsyncMemoryClient) -> None:
    await memory.add("I live in Berlin.", user_id="mira", speaker="Mira", occurred_at="2026-03-01", wait=True)
    await memory.add(
        "I moved to Rome.",
        user_id="mira",
        run_id="r2",
        speaker="Mira",
        turn_id="t2",
        occurred_at="2026-03-05",
        wait=True,
    )


async def homes(memory: AsyncMemoryClient) -> list[str]:
    return [fact.text for fact in await memory.facts(user_id="mira") if fact.key == "home_city"]


async def test_a_move_told_in_a_run_is_promoted_by_a_command_and_undone(tenant: TenantHarness) -> None:
    async with AsyncMemoryClient.from_settings(client_settings(tenant)) as memory:
        await tell_move(memory)
        assert await homes(memory) == [BERLIN]
        (in_run,) = await memory.facts(user_id="mira", run_id="r2")
        done = await memory.promote(str(in_run.fact_id)[:13], wait=True)
        assert (done.status, [one.event for one in done.memories]) == ("done", ["fact_replaced"])
        assert await homes(memory) == [ROME]
        (then,) = await memory.facts_as_of(datetime.now(UTC), "2026-03-03", user_id="mira")
        assert then.text == BERLIN
        again = await memory.promote(user_id="mira", run_id="r2", wait=True)
        assert (again.status, again.notes) == ("done", ("nothing is promoted: 1 was promoted before",))
        assert (await memory.undo(turn_id=done.turn_id, user_id="mira", wait=True)).status == "done"
        assert await homes(memory) == [BERLIN]
        assert [fact.text for fact in await memory.facts(user_id="mira", run_id="r2")] == [ROME]


async def test_promotions_are_audited_and_rebuilt(tenant: TenantHarness) -> None:
    async with AsyncMemoryClient.from_settings(client_settings(tenant)) as memory:
        await tell_move(memory)
        await memory.promote(user_id="mira", run_id="r2", wait=True)
        assert await homes(memory) == [ROME]
        async with open_pool(tenant.settings.postgres or "", min_size=1, max_size=2, application_name="test") as pool:
            report = await rebuild(tenant.settings.postgres or "", TableLogSource(pool), verify_only=True)
            assert report.equal
            async with pool.connection() as connection:
                audited = await audit(connection, now=datetime.now(UTC))
        assert audited.ok
