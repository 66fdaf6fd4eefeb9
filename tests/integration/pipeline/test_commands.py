"""A command's whole way, on a real Kafka and a real Postgres: in order with the turns of its owner."""

import asyncio
import io
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import (
    Command,
    CommandPayload,
    Delete,
    DeleteAll,
    Undo,
)
from mnemolog.schemas.ids import fact_id
from mnemolog.schemas.scope import Scope
from mnemolog.settings import Settings
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, DEAD_LETTERS, command_headers, topic_name
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    MONDAY,
    TenantHarness,
    client_settings,
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
)
from tests.support.servers.kafka_client import publish, read_all, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]

MIRA = Scope(user_id="mira")


def command(command_id: str, payload: CommandPayload, scope: Scope, **fields: Any) -> Command:
    issued_at = MONDAY + timedelta(hours=1)
    return Command(**{"command_id": command_id, "scope": scope, "issued_at": issued_at, "order": payload, **fields})


async def test_what_cannot_be_carried_out_is_refused_and_touches_nothing(tenant: TenantHarness) -> None:
    unknown, berlin, jonas = uuid4(), fact_id(tenant.scope().owner, "t1", 0), tenant.scope("jonas")
    await tenant.publish(tenant.turn("t1", "I live in Berlin."))
    await tenant.outcomes(1)
    before = await tenant.rows("SELECT * FROM facts WHERE tenant = %s")
    await tenant.publish(
        command("half", Delete(fact_ids=(berlin, unknown)), tenant.scope()),
        command("foreign", Delete(fact_ids=(berlin,)), jonas),
        command("tenants", Delete(fact_ids=(berlin,)), Scope(tenant=f"{tenant.tenant}-other", user_id="mira")),
        command("foreign-undo", Undo(source_id="t1"), jonas),
    )
    explode = json.loads(command("explode", DeleteAll(), tenant.scope()).to_bytes()) | {"order": {"kind": "explode"}}
    oversize = command("large", DeleteAll(), tenant.scope(), actor="x" * 200_000).to_bytes()
    bad = [b"delete everything", json.dumps(explode).encode(), oversize]
    topic = tenant.topic(CONVERSATION_TURNS.name)
    positions = await publish(tenant.kafka, topic, [(tenant.scope().key, value) for value in bad])
    expected = {
        "half": "unknown_fact",
        "foreign": "foreign_fact",
        "tenants": "foreign_fact",
        "foreign-undo": "nothing_to_undo",
        "explode": "invalid_command",
        "large": "oversize",
        positions[0]: "not_a_record",
    }

    async def refusals() -> list[dict[str, Any]]:
        query = "SELECT * FROM commits WHERE tenant IN (%s, %s, '') AND source_id = ANY(%s)"
        found = await tenant.rows(query, f"{tenant.tenant}-other", list(expected))
        return found if len(found) == len(expected) else []

    refused = await wait_until(refusals)
    assert {row["source_id"]: row["reason"] for row in refused} == expected
    assert all(row["detail"] and row["outcome"] != "done" for row in refused)
    assert {row["source_id"] for row in refused if row["source_kind"] == "turn"} == {positions[0]}
    assert await tenant.rows("SELECT * FROM facts WHERE tenant = %s") == before
    letters = await read_all(tenant.kafka, tenant.topic(DEAD_LETTERS.name))
    assert len([letter for letter in letters if letter.value in bad]) == len(bad)


async def test_a_turn_published_at_once_after_a_commands_acknowledgement_is_read_after_it(
    tenant: TenantHarness,
) -> None:
    """Turn, command, turn, each as soon as the one before is acknowledged, for many users at once."""
    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:

        async def forget_and_tell(user: str) -> None:
            await memory.add("I have a red car.", user_id=user, infer=False)
            await memory.delete_all(user_id=user)
            await memory.add("I have a blue bike.", user_id=user, infer=False)

        await asyncio.gather(*(forget_and_tell(f"user{number}") for number in range(50)))
        await tenant.outcomes(150)
    query = "SELECT text, status, count(*) AS n FROM facts WHERE tenant = %s GROUP BY 1, 2 ORDER BY 1"
    assert [(row["text"], row["status"], row["n"]) for row in await tenant.rows(query)] == [
        ("I have a blue bike.", "active", 50),
        ("I have a red car.", "retracted", 50),
    ]


async def test_only_a_command_with_the_token_is_carried_out(settings: StreamsSettings, database: str) -> None:
    """The client and the timer send the token; who publishes without it sends turns alone and uses up no command id."""
    strict = settings.model_copy(update={"command_token": SecretStr("s3cret"), "expiry_interval": 0.2})
    permit = user_turn("t2", "Parking permit.", infer=False, valid_until=MONDAY + timedelta(days=1))
    own = Settings.model_validate(strict.model_dump())
    async with running_worker(strict), AsyncMemoryClient(settings=own) as memory:
        await publish_records(strict, user_turn("t1", "I live in Berlin."), command("foreign", DeleteAll(), MIRA))
        await publish_records(strict, permit)
        assert sorted((await wait_for_outcomes(database, 4)).values()) == ["done", "rejected", "stored", "stored"]
        found = await query_rows(database, "SELECT text, status FROM facts ORDER BY text")
        assert [row["status"] for row in found] == ["active", "expired"]
        own_command = await memory.delete_all(user_id="mira")
        assert (await memory.wait(own_command.turn_id)).success
        topic, again = topic_name(CONVERSATION_TURNS, strict.topic_prefix), command("foreign", DeleteAll(), MIRA)
        await publish(
            strict.kafka or "", topic, [(MIRA.key, again.to_bytes())], headers=command_headers(strict.command_token)
        )
        assert (await wait_for_outcomes(database, 6))["foreign"] == "done"
    (refused,) = await query_rows(database, "SELECT * FROM commits WHERE reason = 'not_allowed'")
    assert refused["source_id"].startswith(topic)
    assert "command foreign: " in refused["detail"]
    assert "MNEMOLOG_COMMAND_TOKEN" in refused["detail"]


async def test_the_end_of_an_import_is_that_of_its_last_publication(tenant: TenantHarness) -> None:
    """The first import of the line has its end already while the second one is on its way."""
    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:
        await memory.admin.set_policy({"limits": {"active_facts": 0}}, user_id="mira", wait=True)
        line = b'{"memory": "Mira has a cat.", "user_id": "mira"}\n'
        refused = await memory.admin.import_facts(io.BytesIO(line), wait=True)
        assert (refused.added, refused.rejected_count) == (0, 1)
        await memory.admin.set_policy({"limits": {}}, user_id="mira", wait=True)
        done = await memory.admin.import_facts(io.BytesIO(line), wait=True)
        assert (done.added, done.rejected) == (1, {})
        again = await memory.admin.import_facts(io.BytesIO(line), wait=True)
        assert (again.added, again.known, again.rejected) == (0, 1, {})


async def test_an_import_of_a_conversation_goes_on_where_it_stopped_and_is_undone_whole(tenant: TenantHarness) -> None:
    said = ("I live in Berlin.", "I moved from Berlin to Munich.", "I like tea.")
    messages = [
        {"uuid": f"m{place}", "sender": "human", "text": text, "created_at": f"2026-03-0{place}T09:00:00Z"}
        for place, text in enumerate(said, start=1)
    ]
    half, whole = (
        io.BytesIO(json.dumps([{"uuid": "k1", "chat_messages": messages[:end]}]).encode()) for end in (2, None)
    )
    async with AsyncMemoryClient(settings=client_settings(tenant)) as memory:
        mira = memory.scope(user_id="mira")
        await mira.add("I own a dog.", wait=True)
        before = await mira.facts()
        first = await mira.admin.import_facts(half, wait=True)
        again = await mira.admin.import_facts(whole, wait=True)
        assert (first.added, again.added, again.known, again.rejected) == (2, 1, 2, {})
        assert {fact.text for fact in await mira.facts()} > {"The user lives in Munich."}
        whole.seek(0)
        undone = await mira.admin.undo_import(whole, wait=True)
        assert (undone.undone, undone.rejected) == (3, {})
        assert [fact.fact_id for fact in await mira.facts()] == [fact.fact_id for fact in before]
        whole.seek(0)
        assert (await mira.admin.undo_import(whole, wait=True)).known == 3
