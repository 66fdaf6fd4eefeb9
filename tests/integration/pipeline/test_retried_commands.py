"""An import that was rejected for a limit is done by a second one of the same lines, and the result says so."""

import io

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from tests.support.harnesses.worker_harness import TenantHarness, client_settings

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


async def test_the_end_of_an_import_is_that_of_its_last_publication(tenant: TenantHarness) -> None:
    """The first import of the line has its end already while the second one is on its way."""
    async with AsyncMemoryClient.from_settings(client_settings(tenant)) as memory:
        await memory.set_policy({"limits": {"active_facts": 0}}, user_id="mira", wait=True)
        line = b'{"memory": "Mira has a cat.", "user_id": "mira"}\n'
        refused = await memory.import_facts(io.BytesIO(line), wait=True)
        assert (refused.added, refused.rejected_count) == (0, 1)
        await memory.set_policy({"limits": {}}, user_id="mira", wait=True)
        done = await memory.import_facts(io.BytesIO(line), wait=True)
        assert (done.added, done.rejected) == (1, {})
        again = await memory.import_facts(io.BytesIO(line), wait=True)
        assert (again.added, again.rejected) == (1, {})
