"""A command's whole way, on a real Kafka and a real Postgres: in order with the turns of its owner."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from mnemolog.client.client import MemoryClient
from mnemolog.errors import PublishError
from mnemolog.projections.db.pools import open_pool
from mnemolog.projections.queries.audit import audit
from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.rebuild.rebuild import rebuild
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
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, DEAD_LETTERS, topic_name
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    MONDAY,
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
    worker_settings,
)
from tests.support.servers.kafka_client import publish, read_all, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

MIRA = Scope(user_id="mira")
JONAS = Scope(user_id="jonas")
BERLIN = fact_id(MIRA.owner, "t1", 0)


@pytest.fixture
def settings(bootstrap: str, database: str, topic_suffix: str) -> StreamsSettings:
    return worker_settings(bootstrap, database, f"{topic_suffix}-")


def command(command_id: str, payload: CommandPayload, scope: Scope = MIRA, **fields: Any) -> Command:
    issued_at = MONDAY + timedelta(hours=1)
    return Command(**{"command_id": command_id, "scope": scope, "issued_at": issued_at, "order": payload, **fields})


async def statuses(database: str) -> dict[str, str]:
    """The status of each fact by its text."""
    return {row["text"]: row["status"] for row in await query_rows(database, "SELECT text, status FROM facts")}


async def test_an_update_takes_the_place_of_a_fact_and_is_found_by_its_own_vector(
    settings: StreamsSettings, database: str
) -> None:
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."))
        await wait_for_outcomes(database, 1)
        edit = Edit(fact_id=BERLIN, text="Mira lives in Bern.", value="Bern")
        await publish_records(settings, command("c1", Update(edits=(edit,)), actor="support"))
        assert await wait_for_outcomes(database, 2) == {"t1": "facts", "c1": "done"}
    assert await statuses(database) == {"Mira lives in Berlin.": "superseded", "Mira lives in Bern.": "active"}
    (new,) = await query_rows(database, "SELECT * FROM facts WHERE status = 'active'")
    (old,) = await query_rows(database, "SELECT * FROM facts WHERE status <> 'active'")
    assert (new["key"], new["value"], new["supersedes"]) == (old["key"], "Bern", [BERLIN])
    assert new["embedding"] is not None
    assert new["embedding_model"] == old["embedding_model"]
    (committed,) = await query_rows(database, "SELECT * FROM commits WHERE source_id = 'c1'")
    assert (committed["source_kind"], committed["order_kind"], committed["actor"]) == ("command", "update", "support")
    assert (committed["llm_calls"], committed["origin_topic"]) == (
        0,
        topic_name(CONVERSATION_TURNS, settings.topic_prefix),
    )


async def test_a_backlog_of_turns_and_commands_is_carried_out_in_order(
    settings: StreamsSettings, database: str
) -> None:
    async with running_worker(settings):
        pass
    await publish_records(settings, user_turn("t1", "I live in Berlin."), user_turn("t2", "I work as a nurse."))
    await publish_records(settings, command("c1", DeleteAll()))
    await publish_records(settings, user_turn("t3", "I own a dog."), user_turn("t4", "I like tea."))
    await publish_records(settings, command("c2", DeleteAll(key="home_city")))
    async with running_worker(settings):
        await wait_for_outcomes(database, 6)
    found = await statuses(database)
    retracted = {text for text, status in found.items() if status == "retracted"}
    assert len(found) == 4
    assert retracted == {text for text in found if "Berlin" in text or "nurse" in text}


async def test_what_cannot_be_carried_out_is_refused_and_touches_nothing(
    settings: StreamsSettings, database: str
) -> None:
    assert settings.kafka is not None
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    unknown = uuid4()
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."))
        await wait_for_outcomes(database, 1)
        before = await query_rows(database, "SELECT * FROM facts")
        await publish_records(
            settings,
            command("unknown", Delete(fact_ids=(unknown,))),
            command("foreign", Delete(fact_ids=(BERLIN,)), scope=JONAS),
            command("agents", Delete(fact_ids=(BERLIN,)), scope=Scope(user_id="mira", agent_id="bot")),
            command("tenants", Delete(fact_ids=(BERLIN,)), scope=Scope(tenant="other", user_id="mira")),
            command("half", Delete(fact_ids=(BERLIN, unknown))),
            command("nothing", Undo(source_id="no-such-turn")),
            command("foreign-undo", Undo(source_id="t1"), scope=JONAS),
        )
        explode = json.loads(command("explode", DeleteAll()).to_bytes()) | {"order": {"kind": "explode"}}
        zone = json.loads(command("zone", DeleteAll()).to_bytes()) | {"issued_at": "2026-03-02T09:00:00"}
        oversize = command("large", DeleteAll(), actor="x" * 200_000).to_bytes()
        bad = [b"delete everything", b"", json.dumps(explode).encode(), json.dumps(zone).encode(), oversize]
        await publish(settings.kafka, topic, [(MIRA.key, value) for value in bad])
        outcomes = await wait_for_outcomes(database, 13)
        assert await query_rows(database, "SELECT * FROM facts") == before
    reasons = await query_rows(database, "SELECT source_id, source_kind, outcome, reason, detail FROM commits")
    told = {row["source_id"]: row["reason"] for row in reasons if row["source_id"] != "t1"}
    positions = {name for name in told if name.startswith(f"{topic}/")}
    assert {name: reason for name, reason in told.items() if name not in positions} == {
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
    }
    assert [told[name] for name in positions] == ["not_a_record", "not_a_record"]
    kinds = {row["source_id"]: row["source_kind"] for row in reasons if row["detail"]}
    assert kinds == {name: "turn" if name in positions else "command" for name in told}
    assert {name: end for name, end in outcomes.items() if end == "facts"} == {"t1": "facts"}
    letters = await read_all(settings.kafka, topic_name(DEAD_LETTERS, settings.topic_prefix))
    assert len(letters) == len(bad)


async def test_a_command_that_is_delivered_twice_is_carried_out_once(settings: StreamsSettings, database: str) -> None:
    given = command("c1", Correct(edit=Edit(fact_id=BERLIN, text="Mira lives in Bern.")))
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."))
        await wait_for_outcomes(database, 1)
        await publish_records(settings, given, given, command("c2", Delete(fact_ids=(fact_id(MIRA.owner, "c1", 0),))))
        assert await wait_for_outcomes(database, 3) == {"t1": "facts", "c1": "done", "c2": "done"}
    assert await statuses(database) == {"Mira lives in Berlin.": "superseded", "Mira lives in Bern.": "retracted"}


async def test_turns_and_commands_survive_a_rebuild_and_the_audit_passes(
    settings: StreamsSettings, database: str
) -> None:
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."), user_turn("t2", "I moved to Munich."))
        await wait_for_outcomes(database, 2)
        await publish_records(settings, command("c1", Undo(source_id="t2")), command("c2", Undo(source_id="c1")))
        await wait_for_outcomes(database, 4)
        await publish_records(settings, command("c3", SetPolicy(level="scope", policy=Policy(add_only=True))))
        await publish_records(settings, command("c4", DeleteAll(), scope=JONAS))
        await wait_for_outcomes(database, 6)
    assert await statuses(database) == {"Mira lives in Berlin.": "superseded", "Mira lives in Munich.": "active"}
    async with open_pool(database, min_size=1, max_size=4, application_name="test") as pool:
        report = await rebuild(database, TableLogSource(pool))
        assert report.equal, report
        async with pool.connection() as connection:
            books = await audit(connection, now=datetime.now(UTC))
    assert (books.ok, books.accepted) == (True, 2)


async def test_the_audit_passes_over_turns_commands_and_what_is_neither(
    settings: StreamsSettings, database: str
) -> None:
    assert settings.kafka is not None
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."), command("c1", DeleteAll(), scope=JONAS))
        broken = [b"nonsense", b'{"kind": "command"}', b'{"kind": "command", "command_id": 7}', b"\xff", b'"command"']
        await publish(settings.kafka, topic, [(MIRA.key, value) for value in broken])
        await wait_for_outcomes(database, 7)
        journaled = "SELECT 1 FROM mnemolog_journal.turn_journal HAVING count(*) = 4"
        await wait_until(partial(query_rows, database, journaled))
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool, pool.connection() as conn:
        books = await audit(conn, now=datetime.now(UTC))
    assert (books.ok, books.accepted) == (True, 4)


async def test_a_policy_holds_for_the_turns_after_it(settings: StreamsSettings, database: str) -> None:
    everyone = tenant_scope("default")
    async with running_worker(settings):
        await publish_records(settings, command("c1", SetPolicy(level="scope", policy=Policy(add_only=True))))
        limits = Policy(limits=Limits(bytes_per_turn=2000))
        await publish_records(settings, command("c2", SetPolicy(level="tenant", policy=limits), scope=everyone))
        await wait_for_outcomes(database, 2)
        await publish_records(settings, user_turn("t1", "I live in Berlin."), user_turn("t2", "I moved to Munich."))
        await publish_records(settings, user_turn("t3", "I like tea. " * 200, user="jonas"))
        outcomes = await wait_for_outcomes(database, 5)
    assert outcomes["t3"] == "rejected"
    (refused,) = await query_rows(database, "SELECT * FROM commits WHERE source_id = 't3'")
    assert (refused["reason"], refused["limit_hit"]["name"], refused["limit_hit"]["limit"]) == (
        "limit",
        "bytes_per_turn",
        2000,
    )
    assert list((await statuses(database)).values()) == ["active", "active"]


async def test_a_turn_published_at_once_after_a_commands_acknowledgement_is_read_after_it(
    settings: StreamsSettings, bootstrap: str, database: str
) -> None:
    """Turn, command, turn, each as soon as the one before is acknowledged, for many users at once."""
    own = Settings(kafka=bootstrap, postgres=database, topic_prefix=settings.topic_prefix)
    async with running_worker(settings), MemoryClient.from_settings(own) as memory:

        async def forget_and_tell(user: str) -> None:
            await memory.add("I have a red car.", user_id=user, infer=False)
            await memory.delete_all(user_id=user)
            await memory.add("I have a blue bike.", user_id=user, infer=False)

        await asyncio.gather(*(forget_and_tell(f"user{number}") for number in range(50)))
        await wait_for_outcomes(database, 150)
    found = await query_rows(database, "SELECT text, status, count(*) AS n FROM facts GROUP BY 1, 2 ORDER BY 1")
    assert [(row["text"], row["status"], row["n"]) for row in found] == [
        ("I have a blue bike.", "active", 50),
        ("I have a red car.", "retracted", 50),
    ]


async def test_only_a_command_with_the_token_is_carried_out(
    settings: StreamsSettings, bootstrap: str, database: str
) -> None:
    """The client and the timer send the token; who publishes to the topic without it can send turns alone."""
    token = SecretStr("s3cret")
    strict = settings.model_copy(update={"command_token": token, "expiry_interval": 0.2})
    own = Settings(kafka=bootstrap, postgres=database, topic_prefix=settings.topic_prefix, command_token=token)
    async with running_worker(strict), MemoryClient.from_settings(own) as memory:
        await publish_records(strict, user_turn("t1", "I live in Berlin."), command("foreign", DeleteAll()))
        await publish_records(
            strict, user_turn("t2", "Parking permit.", infer=False, valid_until=MONDAY + timedelta(days=1))
        )
        assert (await wait_for_outcomes(database, 3))["foreign"] == "rejected"
        await wait_until(partial(query_rows, database, "SELECT 1 FROM facts WHERE status = 'expired'"))
        assert await statuses(database) == {"Mira lives in Berlin.": "active", "Parking permit.": "expired"}
        own_command = await memory.delete_all(user_id="mira")
        assert (await memory.wait(own_command[0].command_id)).success
    (refused,) = await query_rows(database, "SELECT reason, detail FROM commits WHERE source_id = 'foreign'")
    assert refused["reason"] == "not_allowed"
    assert "MNEMOLOG_COMMAND_TOKEN" in refused["detail"]


async def test_what_has_ended_is_expired_by_the_timer(settings: StreamsSettings, database: str) -> None:
    quick = settings.model_copy(update={"expiry_interval": 0.2})
    async with running_worker(quick):
        past = MONDAY + timedelta(days=1)
        await publish_records(settings, user_turn("t1", "Parking permit.", infer=False, valid_until=past))
        await publish_records(settings, user_turn("t2", "Season ticket.", infer=False))
        await wait_until(partial(query_rows, database, "SELECT 1 FROM facts WHERE status = 'expired'"))
    (committed,) = await query_rows(database, "SELECT * FROM commits WHERE source_kind = 'command'")
    assert (committed["outcome"], committed["order_kind"]) == ("done", "expire")
    assert await statuses(database) == {"Parking permit.": "expired", "Season ticket.": "active"}


async def test_the_client_sends_commands_and_waits(settings: StreamsSettings, bootstrap: str, database: str) -> None:
    own = Settings(kafka=bootstrap, postgres=database, topic_prefix=settings.topic_prefix)
    async with running_worker(settings), MemoryClient.from_settings(own) as memory:
        for user, agent in (("mira", None), ("mira", "bot"), ("jonas", None)):
            accepted = await memory.add("I live in Berlin.", user_id=user, agent_id=agent, speaker=user.capitalize())
            await memory.wait(accepted.turn_id)
        (fact,) = await memory.facts(user_id="mira")
        ordered = await memory.correct(fact.fact_id, "Mira lives in Bern.", user_id="mira", actor="Mira")
        result = await memory.wait(ordered.command_id)
        assert (result.status, result.success, result.order, result.actor) == ("done", True, "correct", "Mira")
        (found,) = (await memory.search("Where does Mira live?", user_id="mira")).hits
        assert (found.fact.text, found.fact.authority) == ("Mira lives in Bern.", "human")
        foreign = await memory.delete(found.fact.fact_id, user_id="jonas")
        refused = await memory.wait(foreign.command_id)
        assert (refused.status, refused.success) == ("rejected", False)
        assert "foreign_fact" in (refused.error or "")
        everybody = await memory.delete_all(user_id="*", agent_id="*", command_id="sweep")
        again = await memory.delete_all(user_id="*", agent_id="*", command_id="sweep")
        assert len(everybody) == 3
        assert {one.command_id for one in again} <= {one.command_id for one in everybody}
        assert {(await memory.wait(one.command_id)).facts_deleted for one in everybody} == {1}
        assert await memory.facts(user_id="*", agent_id="*") == []
        await memory.wait((await memory.undo(turn_id=everybody[0].command_id, user_id="jonas")).command_id)
        assert {fact.user_id for fact in await memory.facts(user_id="*", agent_id="*")} == {"jonas"}
        policy = await memory.set_policy(Policy(note="quiet"), user_id="mira")
        assert (await memory.wait(policy.command_id)).success
        known = await memory.policies(user_id="mira")
        assert (known.tenant, known.scope) == (None, Policy(note="quiet"))


async def test_a_broker_that_is_away_names_the_command_to_give_again(settings: StreamsSettings) -> None:
    nowhere = Settings(kafka=settings.kafka, topic_prefix="no-such-", postgres=settings.postgres)
    async with MemoryClient(settings=nowhere, publish_timeout=1.5) as memory:
        with pytest.raises(PublishError, match=r"c1 was not acknowledged .* the same command_id"):
            await memory.delete(UUID(int=1), user_id="mira", command_id="c1")
