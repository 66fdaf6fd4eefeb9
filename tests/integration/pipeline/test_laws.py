"""The laws that everything else rests on, one test each, on real servers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from mnemolog.projections.database import open_pool
from mnemolog.projections.queries.audit import audit
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import LogSource, TableLogSource
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from mnemolog.streams.errors import ProducerDead
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata, SeenOrigins
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, MEMORY_EVENTS, TOPICS, topic_name
from mnemolog.streams.kafka.window import Delivery, KeyedWindow
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.processor import (
    ReceivedEnvelope,
    StageDefinition,
    StageProcessor,
    ended_envelope,
    envelope_reader,
    next_envelope,
)
from tests.support.builders.commits import added, commit, day, replaced
from tests.support.databases import database_name, fresh_database
from tests.support.harnesses.worker_harness import (
    TenantHarness,
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
    with_chat_server,
    worker_settings,
)
from tests.support.polling import eventually
from tests.support.servers.kafka_client import publish, read_all, wait_until
from tests.support.servers.memory_broker import SentRecord
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


class ManualAckBroker:
    """Confirms a record only when the test does."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[RecordMetadata]] = []

    async def enqueue(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]
    ) -> Awaitable[RecordMetadata]:
        del topic, key, value, headers
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


async def test_law_1_an_input_is_acknowledged_only_after_its_output_is_confirmed() -> None:
    broker, crashes = ManualAckBroker(), list[BaseException]()
    sender = Sender(broker.enqueue, limits={})

    async def work(received: ReceivedEnvelope[ExtractedFacts], _: KafkaRecord) -> ExtractedFacts:
        return next_envelope(ExtractedFacts, received.envelope)

    steps = StageDefinition(
        stage="embed",
        topic="out",
        read=envelope_reader(ExtractedFacts),
        work=work,
        finish=ended_envelope(ExtractedFacts),
    )
    window = KeyedWindow(
        StageProcessor(steps, sender=sender, dead_letters=DeadLetterWriter(sender), seen=SeenOrigins())
    )

    async def deliveries() -> AsyncIterator[Delivery]:
        for offset in range(2):
            record = KafkaRecord(
                topic="in", partition=0, offset=offset, key=b"k%d" % offset, value=b"{}", timestamp=1.7e9
            )
            yield Delivery(record=record)

    async def crash(error: BaseException) -> None:
        crashes.append(error)

    await window.run(deliveries(), crash)
    await eventually(lambda: len(broker.sent) == 2)
    assert window.finished == {}
    broker.sent[0].set_result(SentRecord(topic="out", partition=0, offset=0))
    await eventually(lambda: window.finished == {("in", 0): 1})
    broker.sent[1].set_exception(ProducerDead("the producer was fenced"))
    await eventually(lambda: crashes)
    assert window.finished == {("in", 0): 1}


async def test_law_2_every_accepted_turn_has_exactly_one_end(settings: StreamsSettings, database: str) -> None:
    assert settings.kafka is not None
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    with OpenAiServer() as server:
        server.fail(mode="wrong_schema", times=3, path="chat", containing="turn_id: fails")
        async with running_worker(with_chat_server(settings, server)):
            await publish_records(
                settings, *(user_turn(f"t{n}", f"I own {n} books.", user=f"user{n % 4}") for n in range(20))
            )
            await publish_records(
                settings,
                user_turn("blank", " "),
                user_turn("fails", "I live in Rome."),
                user_turn("t0", "I own 0 books.", user="user0"),
            )
            await publish(settings.kafka, topic, [(b"x", b"not a record"), (None, b"")])
            outcomes = await wait_for_outcomes(database, 24)
    assert sorted(outcomes.values()) == ["facts"] * 20 + ["failed"] * 3 + ["rejected"]
    assert outcomes["fails"] == "failed"
    async with (
        open_pool(database, min_size=1, max_size=1, application_name="test") as pool,
        pool.connection() as connection,
    ):
        report = await audit(connection, now=datetime.now(UTC))
    assert report.ok, report
    (journalled,) = await query_rows(database, "SELECT count(*) AS n FROM turns")
    assert journalled["n"] == len(outcomes)


async def test_law_3_the_first_commit_of_a_source_wins(settings: StreamsSettings, database: str) -> None:
    assert settings.kafka is not None
    topic = topic_name(MEMORY_EVENTS, settings.topic_prefix)
    first, second = commit("t1", added("Alice lives in Bern.")), commit("t1", added("Alice lives in Rome."))
    async with running_worker(settings, ["project"]):
        await publish(settings.kafka, topic, [(each.key, each.to_bytes()) for each in (first, second)])

        async def rejected() -> list[dict[str, object]]:
            return await query_rows(database, "SELECT reason, source_id FROM rejections")

        assert await wait_until(rejected) == [{"reason": "duplicate_source", "source_id": "t1"}]
    assert [row["text"] for row in await query_rows(database, "SELECT text FROM facts")] == ["Alice lives in Bern."]


async def test_law_4_the_log_is_enough_and_no_model_is_asked(settings: StreamsSettings, database: str) -> None:
    assert settings.kafka is not None
    with OpenAiServer() as server:
        async with running_worker(with_chat_server(settings, server)):
            said = ["I live in Bern.", "I live in Rome.", "I like tea.", "I live in Bern.", "I like tea."]
            await publish_records(settings, *(user_turn(f"t{n}", text) for n, text in enumerate(said)))
            await wait_for_outcomes(database, len(said))
        asked = dict(server.requests)
        assert asked
        async with open_pool(database, min_size=1, max_size=2, application_name="test") as pool:
            kafka_log = KafkaLogReader(settings.kafka, prefix=settings.topic_prefix)
            sources: list[LogSource] = [kafka_log, TableLogSource(pool)]
            for source in sources:
                report = await rebuild(database, source)
                assert report.equal, report
            await kafka_log.close()
        assert dict(server.requests) == asked


async def test_law_5_only_resolve_writes_and_a_zombies_commit_changes_nothing_wrongly(
    settings: StreamsSettings, database: str
) -> None:
    assert settings.kafka is not None
    writers = {topic.name: topic.producers for topic in TOPICS}
    assert writers["memory_events"] == ("resolve",)
    old = commit("t1", added("Alice lives in Bern."))
    target = old.events[0].fact.fact_id  # type: ignore[union-attr]  # an added fact
    newer = commit("t2", replaced("Alice lives in Rome.", target), at=day(1))
    zombies = commit("t3", replaced("Alice lives in Oslo.", target), at=day(2))
    async with running_worker(settings, ["project"]):
        topic = topic_name(MEMORY_EVENTS, settings.topic_prefix)
        await publish(settings.kafka, topic, [(each.key, each.to_bytes()) for each in (old, newer, zombies)])
        await wait_for_outcomes(database, 3)
    found = {
        row["text"]: row for row in await query_rows(database, "SELECT text, status, stale, superseded_by FROM facts")
    }
    assert {text: (row["status"], row["stale"]) for text, row in found.items()} == {
        "Alice lives in Bern.": ("superseded", False),
        "Alice lives in Rome.": ("active", False),
        "Alice lives in Oslo.": ("active", True),
    }
    assert found["Alice lives in Bern."]["superseded_by"] == newer.events[0].fact.fact_id  # type: ignore[union-attr]  # a new fact


async def test_law_6_a_decision_sees_every_earlier_commit_of_its_owner(
    settings: StreamsSettings, database: str
) -> None:
    assert settings.kafka is not None
    kafka, topic = settings.kafka, topic_name(MEMORY_EVENTS, settings.topic_prefix)
    others = [user_turn(f"o{n}", "I live in Oslo.", user=f"other{n}") for n in range(8)]

    async def committed() -> dict[str, KafkaRecord]:
        return {Commit.from_bytes(record.value).source_id: record for record in await read_all(kafka, topic)}

    async def others_are_committed() -> bool:
        return {turn.turn_id for turn in others} <= set(await committed())

    async with running_worker(settings, ["journal", "extract", "embed", "match", "resolve"]):
        await publish_records(settings, user_turn("m1", "I live in Bern."), user_turn("m2", "I live in Bern."))
        await publish_records(settings, *others)
        await wait_until(others_are_committed)
        # Nothing is projected yet. A turn behind m2 in its partition has its commit, and m2 waits for that of m1.
        found = await committed()
        assert found["m1"].partition in {found[turn.turn_id].partition for turn in others}
        assert "m2" not in found
        async with running_worker(settings, ["project"]):
            await wait_for_outcomes(database, 10)
    events = {name: [one.event for one in Commit.from_bytes(r.value).events] for name, r in (await committed()).items()}
    assert (events["m1"], events["m2"], events["o0"]) == (["fact_added"], ["fact_skipped"], ["fact_added"])


async def test_law_7_a_store_takes_at_most_two_calls(chat_tenant: ChatTenant) -> None:
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


async def test_law_8_scopes_never_mix(tenant: TenantHarness) -> None:
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


async def test_law_9_while_the_model_is_away_turns_wait_and_none_fails(chat_tenant: ChatTenant) -> None:
    server = chat_tenant.server
    start = server.requests["chat"]
    server.fail(mode="status", status=503, times=None)
    await chat_tenant.publish(*books_turns(chat_tenant, 8))
    await eventually(lambda: server.requests["chat"] - start >= 8)
    assert await chat_tenant.rows("SELECT 1 FROM commits WHERE tenant = %s") == []
    server.failures.clear()
    assert set((await chat_tenant.outcomes(8)).values()) == {"facts"}


async def test_law_10_one_slow_owner_delays_nobody_else(chat_tenant: ChatTenant) -> None:
    chat_tenant.server.fail(mode="hang", times=None, containing="turn_id: slow")
    await chat_tenant.publish(chat_tenant.turn("slow", "I live in Rome.", user="slow"))
    await chat_tenant.publish(*books_turns(chat_tenant, 30))
    assert "slow" not in await chat_tenant.outcomes(30)
    chat_tenant.server.failures.clear()
    assert (await chat_tenant.outcomes(31))["slow"] == "facts"
