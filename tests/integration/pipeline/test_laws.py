"""Laws of the whole way, on real servers: calls a turn, scopes, a model that is away, a slow owner."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from mnemolog.streams.settings import StreamsSettings
from tests.support.databases import database_name, fresh_database
from tests.support.harnesses.worker_harness import (
    TenantHarness,
    running_worker,
    with_chat_server,
    worker_settings,
)
from tests.support.polling import eventually
from tests.support.servers.openai_server import OpenAiServer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


@dataclass(frozen=True, slots=True)
class ChatTenant(TenantHarness):
    """A tenant on a worker that asks a language model behind HTTP."""

    server: OpenAiServer


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def chat_worker(
    bootstrap: str, postgres_admin_url: str, template_database: str
) -> AsyncIterator[tuple[StreamsSettings, OpenAiServer]]:
    with fresh_database(postgres_admin_url, template=template_database) as database, OpenAiServer() as server:
        settings = worker_settings(bootstrap, database, f"{database_name(database)}-")
        async with running_worker(with_chat_server(settings, server)):
            yield settings, server


@pytest.fixture
def chat_tenant(chat_worker: tuple[StreamsSettings, OpenAiServer], topic_suffix: str) -> Iterator[ChatTenant]:
    """A tenant of the test's own; the server fails no longer than the test lasts."""
    settings, server = chat_worker
    yield ChatTenant(settings, f"tenant-{topic_suffix}", server)
    server.failures.clear()


async def test_a_store_takes_at_most_two_calls(chat_tenant: ChatTenant) -> None:
    requests = chat_tenant.server.requests
    start = requests["chat"]
    await chat_tenant.publish(chat_tenant.turn("t1", "I live in Bern.", "I work at Acme.", "I drive a red car."))
    await chat_tenant.outcomes(1)
    first = requests["chat"]
    again = ("I live in Berlin.", "I work at Acme Inc.", "I drive a blue car.")
    await chat_tenant.publish(chat_tenant.turn("t2", *again))
    await chat_tenant.outcomes(2)
    assert (first - start, requests["chat"] - first) == (1, 2)
    calls = await chat_tenant.rows("SELECT llm_calls FROM commits WHERE tenant = %s ORDER BY source_id")
    assert [row["llm_calls"] for row in calls] == [1, 2]


async def test_scopes_never_mix(tenant: TenantHarness) -> None:
    other = f"{tenant.tenant}-other"
    scopes = [
        tenant.scope(),
        tenant.scope(agent_id="bot"),
        tenant.scope(app_id="web"),
        tenant.scope(run_id="r1"),
        Scope(tenant=other, user_id="mira"),
        tenant.scope(None, agent_id="mira"),
    ]
    await tenant.publish(
        *(tenant.turn(f"t{n}", "I live in Berlin.", scope=scope) for n, scope in enumerate(scopes)),
        *(tenant.turn("same-id", "I like tea.", scope=scope) for scope in (scopes[0], *scopes[4:])),
        tenant.turn("move", "I moved from Berlin to Munich."),
    )
    await tenant.outcomes(len(scopes) - 1 + 3)
    await TenantHarness(tenant.settings, other).outcomes(2)
    found = await tenant.rows("SELECT * FROM facts WHERE tenant IN (%s, %s)", other)
    (ended,) = (row for row in found if row["status"] == "superseded")
    assert (ended["tenant"], ended["user_id"]) == (tenant.tenant, "mira")
    assert (ended["agent_id"], ended["app_id"], ended["run_id"]) == ("", "", "")
    assert len([row for row in found if "Berlin" in row["text"]]) == len(scopes)
    assert len([row for row in found if "tea" in row["text"]]) == 3


def books_turns(tenant: TenantHarness, count: int) -> list[Turn]:
    """A turn each of many users."""
    return [tenant.turn(f"t{n}", f"I own {n} books.", user=f"user{n}") for n in range(count)]


async def test_while_the_model_is_away_turns_wait_and_none_fails(chat_tenant: ChatTenant) -> None:
    server = chat_tenant.server
    start = server.requests["chat"]
    server.fail(mode="status", status=503, times=None)
    await chat_tenant.publish(*books_turns(chat_tenant, 8))
    await eventually(lambda: server.requests["chat"] - start >= 8)
    assert await chat_tenant.rows("SELECT 1 FROM commits WHERE tenant = %s") == []
    server.failures.clear()
    assert set((await chat_tenant.outcomes(8)).values()) == {"stored"}


async def test_one_slow_owner_delays_nobody_else(chat_tenant: ChatTenant) -> None:
    chat_tenant.server.fail(mode="hang", times=None, containing="turn_id: slow")
    await chat_tenant.publish(chat_tenant.turn("slow", "I live in Rome.", user="slow"))
    await chat_tenant.publish(*books_turns(chat_tenant, 30))
    assert "slow" not in await chat_tenant.outcomes(30)
    chat_tenant.server.failures.clear()
    assert (await chat_tenant.outcomes(31))["slow"] == "stored"
