"""A recorded dialogue through the real `openai` package, a real Kafka and a real Postgres."""

from collections import Counter
from datetime import UTC, datetime

import orjson
import pytest

from mnemolog.projections.database import open_pool
from mnemolog.projections.queries.audit import audit
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    publish_records,
    query_rows,
    running_worker,
    wait_for_outcomes,
    with_chat_server,
)
from tests.support.locomo import locomo_folder
from tests.support.servers.canned_replies import LocomoReplies
from tests.support.servers.openai_server import OpenAiServer

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.dialogues,
    pytest.mark.asyncio(loop_scope="package"),
]

DIALOGUE, TURNS = "conv-26", 200
REFUSED = {"conv-26:D4:13", "conv-26:D8:19", "conv-26:D10:3"}
"""Turns whose one recorded statement has words of other turns: a parade, the name of a group, "inspiring"."""


def dialogue_turns() -> list[Turn]:
    """The dialogue is one user's; the turn names who speaks."""
    lines = map(orjson.loads, (locomo_folder() / "turns.jsonl").read_bytes().splitlines())
    return [
        Turn(
            turn_id=line["turn_id"],
            scope=Scope(user_id=line["conversation"]),
            messages=(Message(role="user", content=line["text"], name=line["speaker"]),),
            occurred_at=datetime.fromisoformat(line["occurred_at"]),
            speaker=line["speaker"],
        )
        for line in lines
        if line["conversation"] == DIALOGUE
    ][:TURNS]


async def test_a_dialogue_becomes_facts_that_can_be_rebuilt(settings: StreamsSettings, database: str) -> None:
    assert settings.kafka is not None
    turns = dialogue_turns()
    recorded = LocomoReplies(locomo_folder() / "observations.jsonl")
    with OpenAiServer(recorded) as server:
        async with running_worker(with_chat_server(settings, server)):
            await publish_records(settings, *turns)
            outcomes = await wait_for_outcomes(database, len(turns), seconds=300)
    fact_counts = {turn.turn_id: recorded.fact_count(turn.turn_id) for turn in turns}
    stated = {turn_id: count and turn_id not in REFUSED for turn_id, count in fact_counts.items()}
    assert outcomes == {turn_id: "stored" if any_ else "nothing_stored" for turn_id, any_ in stated.items()}
    await assert_every_statement_is_accounted_for(database, Counter(fact_counts))
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool, pool.connection() as conn:
        report = await audit(conn, now=datetime.now(UTC))
    assert report.ok, report
    log = KafkaLogReader(settings.kafka_address, prefix=settings.topic_prefix)
    rebuilt = await rebuild(database, log, verify_only=True)
    await log.close()
    assert rebuilt.equal, rebuilt


async def assert_every_statement_is_accounted_for(database: str, fact_counts: Counter[str]) -> None:
    """Each recorded statement is one event, or was dropped as the repetition of another of its turn."""
    made = await query_rows(database, "SELECT source_id, count(*) AS n FROM memory_events GROUP BY source_id")
    dropped = await query_rows(
        database,
        """SELECT source_id, count(*) AS n
           FROM commits, jsonb_array_elements(provenance -> 'steps') AS step, jsonb_array_elements(step -> 'dropped')
           GROUP BY source_id""",
    )
    accounted = Counter({row["source_id"]: row["n"] for row in made})
    accounted.update({row["source_id"]: row["n"] for row in dropped})
    assert accounted == +fact_counts
    conflicts = await query_rows(database, "SELECT 1 FROM memory_events WHERE decided_by = 'model'")
    assert conflicts, "a dialogue without a conflict would prove little"
    over = await query_rows(database, "SELECT 1 FROM commits WHERE llm_calls > 2")
    assert over == []
