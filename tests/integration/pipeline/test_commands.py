"""A command's whole way, on a real Kafka and a real Postgres: in order with the turns of its owner."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.errors import PublishError
from mnemolog.projections.database import open_pool
from mnemolog.projections.queries.audit import audit
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import (
    Command,
    CommandPayload,
    Correct,
    Delete,
    DeleteAll,
    Edit,
    SetPolicy,
    Undo,
    Update,
    tenant_scope,
)
from mnemolog.schemas.ids import fact_id
from mnemolog.schemas.policy import Limits, Policy
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


def berlin_id(tenant: TenantHarness) -> UUID:
    """The id of the fact of Mira's turn t1."""
    return fact_id(tenant.scope().owner, "t1", 0)


async def publish_berlin(tenant: TenantHarness) -> None:
    await tenant.publish(tenant.turn("t1", "I live in Berlin."))
    await tenant.outcomes(1)


async def test_an_update_takes_the_place_of_a_fact_and_is_found_by_its_own_vector(tenant: TenantHarness) -> None:
    await publish_berlin(tenant)
    edit = Edit(fact_id=berlin_id(tenant), text="Mira lives in Bern.", value="Bern")
    await tenant.publish(command("c1", Update(edits=(edit,)), tenant.scope(), actor="support"))
    assert await tenant.outcomes(2) == {"t1": "facts", "c1": "done"}
    old, new = await tenant.rows("SELECT * FROM facts WHERE tenant = %s ORDER BY recorded_at")
    assert (old["text"], old["status"]) == ("Mira lives in Berlin.", "superseded")
    assert (new["text"], new["status"]) == ("Mira lives in Bern.", "active")
    assert (new["key"], new["value"], new["supersedes"]) == (old["key"], "Bern", [berlin_id(tenant)])
    assert new["embedding"] is not None
    assert new["embedding_model"] == old["embedding_model"]
    (committed,) = await tenant.rows("SELECT * FROM commits WHERE tenant = %s AND source_id = 'c1'")
    assert (committed["source_kind"], committed["order_kind"], committed["actor"]) == ("command", "update", "support")
    assert (committed["llm_calls"], committed["origin_topic"]) == (0, tenant.topic(CONVERSATION_TURNS.name))


async def test_a_backlog_of_turns_and_commands_is_carried_out_in_order(
    settings: StreamsSettings, database: str
) -> None:
    """In a worker of its own, which starts when all is published."""
    async with running_worker(settings):
        pass
    await publish_records(settings, user_turn("t1", "I live in Berlin."), user_turn("t2", "I work as a nurse."))
    await publish_records(settings, command("c1", DeleteAll(), MIRA))
    await publish_records(settings, user_turn("t3", "I own a dog."), user_turn("t4", "I like tea."))
    await publish_records(settings, command("c2", DeleteAll(key="home_city"), MIRA))
    async with running_worker(settings):
        await wait_for_outcomes(database, 6)
    found = {row["text"]: row["status"] for row in await query_rows(database, "SELECT text, status FROM facts")}
    retracted = {text for text, status in found.items() if status == "retracted"}
    assert len(found) == 4
    assert retracted == {text for text in found if "Berlin" in text or "nurse" in text}


async def test_what_cannot_be_carried_out_is_refused_and_touches_nothing(tenant: TenantHarness) -> None:
    unknown, berlin, jonas = uuid4(), berlin_id(tenant), tenant.scope("jonas")
    await publish_berlin(tenant)
    before = await tenant.rows("SELECT * FROM facts WHERE tenant = %s")
    await tenant.publish(
        command("unknown", Delete(fact_ids=(unknown,)), tenant.scope()),
        command("foreign", Delete(fact_ids=(berlin,)), jonas),
        command("agents", Delete(fact_ids=(berlin,)), tenant.scope(agent_id="bot")),
        command("tenants", Delete(fact_ids=(berlin,)), Scope(tenant=f"{tenant.tenant}-other", user_id="mira")),
        command("half", Delete(fact_ids=(berlin, unknown)), tenant.scope()),
        command("nothing", Undo(source_id="no-such-turn"), tenant.scope()),
        command("foreign-undo", Undo(source_id="t1"), jonas),
    )
    explode = json.loads(command("explode", DeleteAll(), tenant.scope()).to_bytes()) | {"order": {"kind": "explode"}}
    zone = json.loads(command("zone", DeleteAll(), tenant.scope()).to_bytes()) | {"issued_at": "2026-03-02T09:00:00"}
    oversize = command("large", DeleteAll(), tenant.scope(), actor="x" * 200_000).to_bytes()
    bad = [b"delete everything", b"", json.dumps(explode).encode(), json.dumps(zone).encode(), oversize]
    topic = tenant.topic(CONVERSATION_TURNS.name)
    positions = await publish(tenant.kafka, topic, [(tenant.scope().key, value) for value in bad])
    expected = {
        "unknown": "unknown_fact",
        "foreign": "foreign_fact",
        "agents": "foreign_fact",
        "tenants": "foreign_fact",
        "half": "unknown_fact",
        "nothing": "nothing_to_undo",
        "foreign-undo": "nothing_to_undo",
        "explode": "invalid_command",
        "zone": "missing_zone",
        "large": "oversize",
        positions[0]: "not_a_record",
        positions[1]: "not_a_record",
    }

    async def refusals() -> list[dict[str, Any]]:
        query = "SELECT * FROM commits WHERE tenant IN (%s, %s, '') AND source_id = ANY(%s)"
        found = await tenant.rows(query, f"{tenant.tenant}-other", list(expected))
        return found if len(found) == len(expected) else []

    refused = await wait_until(refusals)
    assert {row["source_id"]: row["reason"] for row in refused} == expected
    assert all(row["detail"] and row["outcome"] != "done" for row in refused)
    assert {row["source_id"] for row in refused if row["source_kind"] == "turn"} == set(positions[:2])
    assert await tenant.rows("SELECT * FROM facts WHERE tenant = %s") == before
    letters = await read_all(tenant.kafka, tenant.topic(DEAD_LETTERS.name))
    assert len([letter for letter in letters if letter.value in bad]) == len(bad)


async def test_a_command_that_is_delivered_twice_is_carried_out_once(tenant: TenantHarness) -> None:
    given = command("c1", Correct(edit=Edit(fact_id=berlin_id(tenant), text="Mira lives in Bern.")), tenant.scope())
    await publish_berlin(tenant)
    bern = fact_id(tenant.scope().owner, "c1", 0)
    await tenant.publish(given, given, command("c2", Delete(fact_ids=(bern,)), tenant.scope()))
    assert await tenant.outcomes(3) == {"t1": "facts", "c1": "done", "c2": "done"}
    assert await tenant.statuses() == {"Mira lives in Berlin.": "superseded", "Mira lives in Bern.": "retracted"}


async def test_turns_commands_and_what_is_neither_survive_a_rebuild_and_the_audit_passes(
    settings: StreamsSettings, database: str
) -> None:
    """In a database of its own: it is rebuilt and audited as a whole."""
    assert settings.kafka is not None
    async with running_worker(settings):
        await publish_records(
            settings, user_turn("t1", "I live in Berlin."), user_turn("t2", "I moved from Berlin to Munich.")
        )
        await wait_for_outcomes(database, 2)
        undos = [command("c1", Undo(source_id="t2"), MIRA), command("c2", Undo(source_id="c1"), MIRA)]
        await publish_records(settings, *undos)
        await wait_for_outcomes(database, 4)
        add_only = SetPolicy(level="scope", policy=Policy(add_only=True))
        foreign = command("c4", DeleteAll(), Scope(user_id="jonas"))
        await publish_records(settings, command("c3", add_only, MIRA), foreign)
        broken = [b"nonsense", b'{"kind": "command"}', b'{"kind": "command", "command_id": 7}', b"\xff", b'"command"']
        topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
        await publish(settings.kafka, topic, [(MIRA.key, value) for value in broken])
        await wait_for_outcomes(database, 11)
        journaled = "SELECT 1 FROM mnemolog_journal.turn_journal HAVING count(*) = 5"
        await wait_until(partial(query_rows, database, journaled))
    found = await query_rows(database, "SELECT text, status FROM facts")
    assert {row["text"]: row["status"] for row in found} == {
        "Mira lives in Berlin.": "superseded",
        "Mira lives in Munich.": "active",
    }
    async with open_pool(database, min_size=1, max_size=4, application_name="test") as pool:
        report = await rebuild(database, TableLogSource(pool))
        assert report.equal, report
        async with pool.connection() as connection:
            audited = await audit(connection, now=datetime.now(UTC))
    assert (audited.ok, audited.accepted) == (True, 5)


async def test_a_policy_holds_for_the_turns_after_it(tenant: TenantHarness) -> None:
    add_only = SetPolicy(level="scope", policy=Policy(add_only=True))
    limits = SetPolicy(level="tenant", policy=Policy(limits=Limits(bytes_per_turn=2000)))
    await tenant.publish(command("c1", add_only, tenant.scope()), command("c2", limits, tenant_scope(tenant.tenant)))
    await tenant.outcomes(2)
    await tenant.publish(
        tenant.turn("t1", "I live in Berlin."),
        tenant.turn("t2", "I moved from Berlin to Munich."),
        tenant.turn("t3", "I like tea. " * 200, user="jonas"),
    )
    assert (await tenant.outcomes(5))["t3"] == "rejected"
    (refused,) = await tenant.rows("SELECT * FROM commits WHERE tenant = %s AND source_id = 't3'")
    assert (refused["reason"], refused["limit_hit"]["name"], refused["limit_hit"]["limit"]) == (
        "limit",
        "bytes_per_turn",
        2000,
    )
    assert list((await tenant.statuses()).values()) == ["active", "active"]


async def test_a_turn_published_at_once_after_a_commands_acknowledgement_is_read_after_it(
    tenant: TenantHarness,
) -> None:
    """Turn, command, turn, each as soon as the one before is acknowledged, for many users at once."""
    async with AsyncMemoryClient.from_settings(client_settings(tenant)) as memory:

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
    async with running_worker(strict), AsyncMemoryClient.from_settings(own) as memory:
        await publish_records(strict, user_turn("t1", "I live in Berlin."), command("foreign", DeleteAll(), MIRA))
        await publish_records(strict, permit)
        assert sorted((await wait_for_outcomes(database, 4)).values()) == ["done", "facts", "facts", "rejected"]
        found = await query_rows(database, "SELECT text, status FROM facts ORDER BY text")
        assert [row["status"] for row in found] == ["active", "expired"]
        (own_command,) = await memory.delete_all(user_id="mira")
        assert (await memory.wait(own_command.command_id)).success
        topic, again = topic_name(CONVERSATION_TURNS, strict.topic_prefix), command("foreign", DeleteAll(), MIRA)
        await publish(
            strict.kafka or "", topic, [(MIRA.key, again.to_bytes())], headers=command_headers(strict.command_token)
        )
        assert (await wait_for_outcomes(database, 6))["foreign"] == "done"
    (refused,) = await query_rows(database, "SELECT * FROM commits WHERE reason = 'not_allowed'")
    assert refused["source_id"].startswith(topic)
    assert "command foreign: " in refused["detail"]
    assert "MNEMOLOG_COMMAND_TOKEN" in refused["detail"]


async def test_what_has_ended_is_expired_by_the_timer(tenant: TenantHarness) -> None:
    past = MONDAY + timedelta(days=1)
    await tenant.publish(
        tenant.turn("t1", "Parking permit.", infer=False, valid_until=past),
        tenant.turn("t2", "Season ticket.", infer=False),
    )
    assert "done" in (await tenant.outcomes(3)).values()
    (committed,) = await tenant.rows("SELECT * FROM commits WHERE tenant = %s AND source_kind = 'command'")
    assert (committed["outcome"], committed["order_kind"]) == ("done", "expire")
    assert await tenant.statuses() == {"Parking permit.": "expired", "Season ticket.": "active"}


async def test_an_export_is_imported_once_into_another_tenant(tenant: TenantHarness, tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    async with AsyncMemoryClient.from_settings(client_settings(tenant)) as memory:
        elsewhere = f"{tenant.scope().tenant}-copy"
        for text in ("I live in Berlin.", "I own a dog."):
            await memory.add(text, user_id="mira", speaker="Mira", metadata={"source": "chat"}, wait=True)
        assert await memory.export(file, user_id="mira") == 2
        for _ in range(2):
            report = await memory.import_facts(file, tenant=elsewhere, wait=True)
            assert (report.sent, report.damaged, report.rejected) == (2, {}, {})
        mine, copied = await memory.facts(user_id="mira"), await memory.facts(user_id="mira", tenant=elsewhere)
        kept = ("text", "key", "value", "category", "importance", "confidence", "subject", "speaker", "metadata")
        assert [[getattr(one, name) for name in kept] for one in copied] == [
            [getattr(one, name) for name in kept] for one in mine
        ]
        assert [one.source_id.rpartition("/")[0] for one in copied] == [f"import/{one.fact_id}" for one in mine]
        (found, *_) = await memory.search("Where does Mira live?", user_id="mira", tenant=elsewhere)
        assert "Berlin" in found.fact.text
        moved = [
            await memory.add("I moved to Bern.", user_id="mira", speaker="Mira", tenant=name, wait=True)
            for name in (None, elsewhere)
        ]
        told, told_elsewhere = ([(one.event, one.text, one.action) for one in result.memories] for result in moved)
        assert told == told_elsewhere


async def test_a_broker_that_is_away_names_the_command_to_give_again(settings: StreamsSettings) -> None:
    nowhere = Settings(kafka=settings.kafka, topic_prefix="no-such-")
    async with AsyncMemoryClient(settings=nowhere, publish_timeout=0.4) as memory:
        with pytest.raises(PublishError, match=r"c1 was not acknowledged .* the same command_id"):
            await memory.delete(UUID(int=1), user_id="mira", command_id="c1")
