"""A turn's whole way, with the offline provider, on a real Kafka and a real Postgres."""

import json

import pytest

from mnemolog.schemas.turn import Overrides
from mnemolog.streams.kafka.dead_letters import DeadLetter
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, DEAD_LETTERS
from tests.support.harnesses.worker_harness import TenantHarness
from tests.support.servers.kafka_client import publish, read_all, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


async def test_raw_texts_that_a_vector_cannot_tell_apart_are_all_kept(tenant: TenantHarness) -> None:
    opening = "Dear all, this is the usual beginning of every letter of ours. " * 40
    await tenant.publish(
        tenant.turn("t1", opening + "The flight leaves from Rome.", infer=False),
        tenant.turn("t2", opening + "The flight leaves from Oslo.", infer=False),
        tenant.turn("t3", opening + "Bring passports.", opening + "Bring visas.", infer=False),
        tenant.turn("t4", opening + "Bring visas.", infer=False),
    )
    await tenant.outcomes(4)
    query = "SELECT right(text, 12) AS ending, mention_count FROM facts WHERE tenant = %s ORDER BY 1"
    assert [(row["ending"], row["mention_count"]) for row in await tenant.rows(query)] == [
        ("Bring visas.", 2),
        ("g passports.", 1),
        ("s from Oslo.", 1),
        ("s from Rome.", 1),
    ]


async def test_every_record_reaches_its_end_and_what_fails_is_dead_lettered(tenant: TenantHarness) -> None:
    good = tenant.turn("good", "Hello there, how are you?")
    unknown_role = json.loads(good.to_bytes()) | {"turn_id": "role"}
    unknown_role["messages"] = [{"role": "wizard", "content": "I live in Rome."}]
    no_zone = json.loads(good.to_bytes()) | {"turn_id": "zone", "occurred_at": "2026-03-02T09:00:00"}
    key = good.scope.key
    records = [
        (key, good.to_bytes()),
        (key, json.dumps(unknown_role).encode()),
        (key, json.dumps(no_zone).encode()),
        (key, b"\xff\xfe no record"),
        (None, tenant.turn("keyless", "I live in Oslo.", user="priya").to_bytes()),
        (key, tenant.turn("large", "x" * 300_000).to_bytes()),
        (key, tenant.turn("blank", "  ").to_bytes()),
    ]
    positions = await publish(tenant.kafka, tenant.topic(CONVERSATION_TURNS.name), records)
    ids = ["good", "role", "zone", positions[3], "keyless", "large", "blank"]

    async def outcomes() -> dict[str, str]:
        query = "SELECT source_id, outcome FROM commits WHERE tenant IN (%s, '') AND source_id = ANY(%s)"
        found = {row["source_id"]: row["outcome"] for row in await tenant.rows(query, ids)}
        return found if len(found) == len(ids) else {}

    expected = {"good": "nothing_stored", "keyless": "stored", positions[3]: "failed"}
    assert await wait_until(outcomes) == expected | dict.fromkeys(("role", "zone", "large", "blank"), "rejected")
    letters = map(DeadLetter.from_record, await read_all(tenant.kafka, tenant.topic(DEAD_LETTERS.name)))
    assert {letter.source_id: letter.reason for letter in letters if letter.source_id in ids} == {
        "role": "unknown_role",
        "zone": "missing_zone",
        "large": "oversize",
        "blank": "empty",
        positions[3]: "not_a_record",
    }
    assert await tenant.rows("SELECT 1 FROM turns WHERE tenant IN (%s, '') AND status = 'pending'") == []


async def test_a_keyless_turn_still_lands_in_its_owners_partition(tenant: TenantHarness) -> None:
    first, second = tenant.turn("t1", "I live in Berlin."), tenant.turn("t2", "I like tea.")
    records = [(None, first.to_bytes()), (second.scope.key, second.to_bytes())]
    await publish(tenant.kafka, tenant.topic(CONVERSATION_TURNS.name), records)
    await tenant.outcomes(2)
    commits = await tenant.log()
    assert [commit.key for commit in commits] == [first.scope.key] * 2
    assert len({commit.partition for commit in commits}) == 1


async def test_known_facts_that_fit_into_no_record_are_compared_with_all_the_same(tenant: TenantHarness) -> None:
    every = Overrides(duplicate=1.0, raw_duplicate=1.0, conflict=0.0, near_duplicate=1.0)
    long = [f"{place} " + f"word{place} " * 3000 for place in range(4)]
    again = [*(f"{text} more" for text in long[1:]), long[0]]
    await tenant.publish(tenant.turn("t1", *long, infer=False, overrides=every))
    await tenant.publish(tenant.turn("t2", *again, infer=False, overrides=every))
    assert await tenant.outcomes(2) == {"t1": "stored", "t2": "stored"}
    query = "SELECT event, count(*) AS n FROM memory_events WHERE tenant = %s AND source_id = 't2' GROUP BY 1"
    assert {row["event"]: row["n"] for row in await tenant.rows(query)} == {"fact_added": 3, "fact_skipped": 1}
