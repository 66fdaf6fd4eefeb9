"""A turn's whole way, with the offline provider, on a real Kafka and a real Postgres."""

import json

import pytest
from prometheus_client import REGISTRY

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.kafka.dead_letters import DeadLetter
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, DEAD_LETTERS, MEMORY_EVENTS, topic_name
from mnemolog.streams.runtime.wiring import ALL_STAGES
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
    worker_settings,
)
from tests.support.servers.kafka_client import publish, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def settings(bootstrap: str, database: str, topic_suffix: str) -> StreamsSettings:
    return worker_settings(bootstrap, database, f"{topic_suffix}-")


async def test_a_published_turn_becomes_a_queryable_fact(settings: StreamsSettings, database: str) -> None:
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."))
        assert await wait_for_outcomes(database, 1) == {"t1": "facts"}
    (fact,) = await query_rows(database, "SELECT * FROM facts")
    assert (fact["tenant"], fact["user_id"], fact["status"]) == ("default", "mira", "active")
    assert "Berlin" in fact["text"]
    assert "Berlin" in fact["excerpt"]
    (status,) = await query_rows(database, "SELECT status FROM turns WHERE source_id = 't1'")
    assert status["status"] == "facts"


async def test_the_time_in_every_stage_is_measured(settings: StreamsSettings, database: str) -> None:
    before = {stage: stage_count(stage) for stage in ALL_STAGES}
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."))
        await wait_for_outcomes(database, 1)
    assert {stage: stage_count(stage) - before[stage] for stage in ALL_STAGES} == dict.fromkeys(ALL_STAGES, 1)


def stage_count(stage: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_stage_seconds_count", {"stage": stage}) or 0


async def test_what_was_true_is_replaced_and_kept(settings: StreamsSettings, database: str) -> None:
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."), user_turn("t2", "I moved to Munich."))
        await wait_for_outcomes(database, 2)
    found = await query_rows(
        database, "SELECT text, status, true_to, supersedes, fact_id FROM facts ORDER BY believed_from"
    )
    assert [row["status"] for row in found] == ["superseded", "active"]
    assert found[0]["true_to"] is not None
    assert found[1]["supersedes"] == [found[0]["fact_id"]]


async def test_a_repetition_is_skipped_and_counted(settings: StreamsSettings, database: str) -> None:
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "I live in Berlin."), user_turn("t2", "I live in Berlin."))
        await wait_for_outcomes(database, 2)
    (fact,) = await query_rows(database, "SELECT mention_count FROM facts")
    assert fact["mention_count"] == 2


async def test_a_raw_store_keeps_user_messages_as_they_are_without_a_model(
    settings: StreamsSettings, database: str
) -> None:
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "  deploys happen on   Tuesdays ", infer=False))
        await wait_for_outcomes(database, 1)
    (fact,) = await query_rows(database, "SELECT text FROM facts")
    assert fact["text"] == "  deploys happen on   Tuesdays "
    (commit,) = await query_rows(database, "SELECT llm_calls FROM commits")
    assert commit["llm_calls"] == 0


async def test_raw_texts_that_a_vector_cannot_tell_apart_are_all_kept(settings: StreamsSettings, database: str) -> None:
    letter = "Dear all, this is the usual beginning of every letter of ours. " * 40
    said = [
        user_turn("t1", letter + "The flight leaves from Rome.", infer=False),
        user_turn("t2", letter + "The flight leaves from Oslo.", infer=False),
        user_turn("t3", letter + "Bring passports.", letter + "Bring visas.", infer=False),
        user_turn("t4", letter + "Bring visas.", infer=False),
    ]
    async with running_worker(settings):
        await publish_records(settings, *said)
        await wait_for_outcomes(database, len(said))
    found = await query_rows(database, "SELECT right(text, 12) AS ending, mention_count FROM facts ORDER BY 1")
    assert [(row["ending"], row["mention_count"]) for row in found] == [
        ("Bring visas.", 2),
        ("g passports.", 1),
        ("s from Oslo.", 1),
        ("s from Rome.", 1),
    ]


async def test_a_turns_own_thresholds_come_first(settings: StreamsSettings, database: str) -> None:
    lax = Overrides(raw_duplicate=0.1, near_duplicate=0.1)
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", "We deploy on Tuesdays.", infer=False))
        await publish_records(
            settings, user_turn("t2", "We deploy each Tuesday.", "On Tuesdays we deploy.", infer=False)
        )
        again = ["There is soup on a Tuesday.", "We have soup on Tuesdays."]
        await publish_records(settings, user_turn("t3", *again, infer=False, overrides=lax))
        await wait_for_outcomes(database, 3)
    found = await query_rows(database, "SELECT source_id, event FROM memory_events ORDER BY source_id")
    assert [(row["source_id"], row["event"]) for row in found] == [
        ("t1", "fact_added"),
        ("t2", "fact_added"),
        ("t2", "fact_added"),
        ("t3", "fact_skipped"),
    ]


async def test_every_record_reaches_its_end_and_what_fails_is_dead_lettered(
    settings: StreamsSettings, database: str
) -> None:
    assert settings.kafka is not None
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    good = user_turn("good", "Hello there, how are you?")
    unknown_role = json.loads(good.to_bytes()) | {"turn_id": "role"}
    unknown_role["messages"] = [{"role": "wizard", "content": "I live in Rome."}]
    no_zone = json.loads(good.to_bytes()) | {"turn_id": "zone", "occurred_at": "2026-03-02T09:00:00"}
    async with running_worker(settings):
        await publish(
            settings.kafka,
            topic,
            [
                (good.scope.key, good.to_bytes()),
                (b"default/mira", json.dumps(unknown_role).encode()),
                (b"default/mira", json.dumps(no_zone).encode()),
                (b"default/mira", b"\xff\xfe no record"),
                (None, user_turn("keyless", "I live in Oslo.", user="priya").to_bytes()),
                (b"default/mira", user_turn("large", "x" * 300_000).to_bytes()),
                (b"default/mira", user_turn("blank", "  ").to_bytes()),
            ],
        )
        outcomes = await wait_for_outcomes(database, 7)
    (position,) = set(outcomes) - {"good", "role", "zone", "keyless", "large", "blank"}
    assert position.startswith(f"{topic}/")
    expected = {"good": "no_facts", "keyless": "facts", position: "failed"}
    assert outcomes == expected | dict.fromkeys(("role", "zone", "large", "blank"), "rejected")
    letters = [
        DeadLetter.from_record(record)
        for record in await read_all(settings.kafka, topic_name(DEAD_LETTERS, settings.topic_prefix))
    ]
    reasons = {letter.source_id: letter.reason for letter in letters}
    assert reasons == {
        "role": "unknown_role",
        "zone": "missing_zone",
        "large": "oversize",
        "blank": "empty",
        position: "not_a_record",
    }
    (pending,) = await query_rows(database, "SELECT count(*) AS n FROM turns WHERE status = 'pending'")
    assert pending["n"] == 0


async def test_a_keyless_turn_still_lands_in_its_owners_partition(settings: StreamsSettings, database: str) -> None:
    assert settings.kafka is not None
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    first, second = user_turn("t1", "I live in Berlin."), user_turn("t2", "I like tea.")
    async with running_worker(settings):
        await publish(settings.kafka, topic, [(None, first.to_bytes()), (b"default/mira", second.to_bytes())])
        await wait_for_outcomes(database, 2)
    commits = await read_all(settings.kafka, topic_name(MEMORY_EVENTS, settings.topic_prefix))
    assert {(commit.key, commit.partition) for commit in commits} == {(b"default/mira", commits[0].partition)}


async def test_known_facts_that_fit_into_no_record_are_compared_with_all_the_same(
    settings: StreamsSettings, database: str
) -> None:
    every = Overrides(duplicate=1.0, raw_duplicate=1.0, conflict=0.0, near_duplicate=1.0)
    long = [f"{place} " + f"word{place} " * 3000 for place in range(10)]
    async with running_worker(settings):
        await publish_records(settings, user_turn("t1", *long, infer=False, overrides=every))
        again = [*(f"{text} more" for text in long[1:]), long[0]]
        await publish_records(settings, user_turn("t2", *again, infer=False, overrides=every))
        assert await wait_for_outcomes(database, 2) == {"t1": "facts", "t2": "facts"}
    events = await query_rows(
        database, "SELECT event, count(*) AS n FROM memory_events WHERE source_id = 't2' GROUP BY 1"
    )
    assert {row["event"]: row["n"] for row in events} == {"fact_added": 9, "fact_skipped": 1}


async def test_a_second_publication_of_a_turn_changes_nothing(settings: StreamsSettings, database: str) -> None:
    async with running_worker(settings):
        await publish_records(
            settings,
            user_turn("t1", "I live in Berlin."),
            user_turn("t1", "I live in Berlin."),
            user_turn("t2", "I like tea."),
        )
        await wait_for_outcomes(database, 2)
    assert settings.kafka is not None
    assert len(await read_all(settings.kafka, topic_name(MEMORY_EVENTS, settings.topic_prefix))) == 2
    assert len(await query_rows(database, "SELECT 1 FROM facts")) == 2
    (fact,) = await query_rows(database, "SELECT mention_count FROM facts WHERE text LIKE '%%Berlin%%'")
    assert fact["mention_count"] == 1


async def test_scopes_never_mix(settings: StreamsSettings, database: str) -> None:
    scopes = [
        Scope(user_id="mira"),
        Scope(user_id="mira", agent_id="bot"),
        Scope(user_id="mira", run_id="r1"),
        Scope(tenant="other", user_id="mira"),
        Scope(agent_id="mira"),
    ]
    async with running_worker(settings):
        await publish_records(
            settings, *(user_turn("same-id", "I live in Berlin.", scope=scope) for scope in scopes[3:4])
        )
        await publish_records(
            settings, *(user_turn(f"t{n}", "I live in Berlin.", scope=scope) for n, scope in enumerate(scopes))
        )
        await publish_records(
            settings, *(user_turn(f"u{n}", "I moved to Munich.", scope=scope) for n, scope in enumerate(scopes[:1]))
        )
        await wait_for_outcomes(database, 7)
    found = await query_rows(database, "SELECT tenant, user_id, agent_id, run_id, status FROM facts")
    superseded = [row for row in found if row["status"] == "superseded"]
    assert [(row["tenant"], row["agent_id"], row["run_id"]) for row in superseded] == [("default", "", "")]
    assert len([row for row in found if row["status"] == "active"]) == len(scopes)
