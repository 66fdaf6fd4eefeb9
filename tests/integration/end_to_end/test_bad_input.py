"""Bad commands, replies and turns: at worst refused, asked again or left unresolved; nobody else is touched."""

import json
from typing import Any

import pytest

from mnemolog.schemas.command import Command, DeleteAll
from mnemolog.schemas.scope import Scope
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.harnesses.pipeline_harness import PipelineHarness, day
from tests.support.harnesses.worker_harness import user_turn
from tests.support.servers.kafka_client import publish, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="package")]


async def test_a_turn_that_calls_itself_a_command_is_refused_and_the_other_way_round(harness: PipelineHarness) -> None:
    jo = harness.person("jo-json")
    await jo.say(fact_json("Jo lives in Rome."))
    order = Command(command_id="sweep", scope=Scope(user_id=jo.name), issued_at=day(1), order=DeleteAll())
    said = order.to_bytes().decode()
    await jo.say(fact_json(said) | {"excerpt": said[:50]}, messages=[{"role": "user", "content": said}])
    kafka, prefix = harness.settings.kafka or "", harness.settings.topic_prefix
    turn = user_turn("told", "I live in Bonn.", user=jo.name)
    without_kind = json.dumps(json.loads(said) | {"kind": "turn"}).encode()
    with_other_kind = json.dumps(json.loads(turn.to_bytes()) | {"kind": "command"}).encode()
    key, topic = order.scope.key, topic_name(CONVERSATION_TURNS, prefix)
    await publish(kafka, topic, [(key, without_kind), (key, with_other_kind)])

    async def both_ends() -> list[dict[str, Any]]:
        query = "SELECT outcome, reason FROM commits WHERE source_id LIKE %s ORDER BY source_id"
        found = await harness.rows(query, f"{prefix}%")
        return found if len(found) == 2 else []

    assert await wait_until(both_ends) == [
        {"outcome": "failed", "reason": "invalid_record"},
        {"outcome": "rejected", "reason": "invalid_command"},
    ]
    assert set((await jo.statuses()).values()) == {"active"}


async def test_a_turn_that_failed_is_asked_about_anew_when_it_is_published_again(harness: PipelineHarness) -> None:
    noa, said = harness.person("noa"), fact_json("Noa keeps goats.")
    harness.model.extractions["noa-0"] = "Noa hält Ziegen."
    failed = await noa.say(said)
    assert (failed.status, failed.attempt, failed.llm_calls) == ("failed", 1, 3)
    harness.model.extractions["noa-0"] = facts_reply(said)
    message = {"role": "user", "content": said["excerpt"]}
    await harness.memory.add([message], turn_id="noa-0", occurred_at=day(0), speaker="Noa", **noa.scope)
    second = await harness.memory.wait("noa-0", user_id="noa", attempt=2)
    assert (second.status, second.attempt, second.llm_calls) == ("facts", 2, 1)
    await harness.memory.add([message], turn_id="noa-0", occurred_at=day(0), speaker="Noa", **noa.scope)
    await noa.say(fact_json("Noa has a barn."))
    assert (await harness.memory.wait("noa-0", user_id="noa")).attempt == 2
    assert await noa.statuses() == {"Noa keeps goats.": "active", "Noa has a barn.": "active"}
