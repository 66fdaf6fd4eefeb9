"""Workers and clients sign in at a Kafka with TLS and accounts; what is refused is named, and not waited for."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from mnemolog import AsyncMemoryClient
from mnemolog.admin import create_topics, lags
from mnemolog.client.producer import OutgoingRecord, RecordProducer
from mnemolog.errors import PublishError, SettingsError
from mnemolog.settings import Settings
from mnemolog.streams.errors import StartRefused
from mnemolog.streams.kafka.sessions import SESSIONS
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.runtime.worker import run_worker
from tests.support.databases import server_folder
from tests.support.harnesses.worker_harness import running_worker, worker_settings
from tests.support.servers.kafka_client import wait_until
from tests.support.servers.secured_kafka import (
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    PASSWORD,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    SecuredKafka,
    secured_kafka,
)

pytestmark = [pytest.mark.kafka, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kafka() -> AsyncIterator[SecuredKafka]:
    with server_folder() as folder:
        async with secured_kafka(folder) as started:
            yield started


@pytest.mark.postgres
@pytest.mark.parametrize("way", ["scram", "token", "certificate"])
async def test_a_turn_becomes_facts(way: str, kafka: SecuredKafka, database: str) -> None:
    settings = worker_settings("", database, f"{way}-", **getattr(kafka, way)())
    client = Settings.model_validate(settings.model_dump() | {"kafka": settings.kafka})
    async with running_worker(settings), AsyncMemoryClient(settings=client) as memory:
        assert (await memory.add("I live in Berlin.", user_id="alice", wait=30)).success
        assert {one.workers for one in await lags(client)} == {1}


async def test_sessions_are_renewed_on_their_connections(kafka: SecuredKafka) -> None:
    """The broker cuts each connection that is used after two seconds without a renewal."""
    settings = Settings(**kafka.scram(), topic_prefix="sessions-", partitions=1)
    await create_topics(settings)
    producer = await RecordProducer.connect(settings.kafka_address, prefix="sessions-")
    connections: set[int] = set()

    async def renewals() -> bool:
        await producer.publish(OutgoingRecord(name="x", key=b"k", value=b"v"))
        (*found,) = (one for one in SESSIONS if one.port == int(kafka.sasl.rpartition(":")[2]) and one.connected())
        used = [one for one in found if SESSIONS[one].renewals]
        connections.update(map(id, used))
        return any(SESSIONS[one].renewals >= 3 for one in used)

    await wait_until(renewals)
    assert len(connections) == 1, "a connection was cut"
    await producer.close()


async def test_a_password_may_lie_in_a_file(kafka: SecuredKafka) -> None:
    """Read for each new client: here that of a broker that takes the password itself, without a challenge."""
    path = kafka.folder / "password"
    path.write_text("wrong\n")
    given = kafka.scram() | {"kafka_mechanism": "PLAIN", "kafka_password": None, "kafka_password_file": path}
    settings = Settings(**given, topic_prefix="file-", partitions=1)
    with pytest.raises(SettingsError, match="refuses the account worker"):
        await create_topics(settings)
    path.write_text(f"{PASSWORD}\n")
    assert await create_topics(settings)


@pytest.mark.parametrize(
    ("way", "change", "message"),
    [
        ("scram", {"kafka_password": "wrong"}, "refuses the account worker"),
        ("scram", {"kafka_mechanism": "SCRAM-SHA-256"}, "MECHANISM=SCRAM-SHA-256"),
        ("scram", {"kafka_ca_file": "other-ca.pem"}, "not trusted"),
        ("scram", {"kafka": "plain"}, "has no TLS"),
        ("certificate", {"kafka": "plain"}, "has no TLS"),
        ("certificate", {"kafka_security": "PLAINTEXT", "kafka_ca_file": None}, "speaks TLS"),
        ("certificate", {"kafka_certificate_file": None}, "MNEMOLOG_KAFKA_CERTIFICATE_FILE"),
        ("certificate", {"kafka_certificate_file": "expired-client.pem"}, "has not expired: set"),
        ("certificate", {"kafka_ca_file": "client.pem"}, "not trusted"),
    ],
)
async def test_wrong_access_is_named(way: str, change: dict[str, Any], message: str, kafka: SecuredKafka) -> None:
    given: dict[str, Any] = getattr(kafka, way)()
    if change.get("kafka_security") == "PLAINTEXT":
        del given["kafka_certificate_file"]
    change = {name: kafka.plain if value == "plain" else value for name, value in change.items()}
    change |= {name: kafka.folder / value for name, value in change.items() if str(value).endswith(".pem")}
    settings = Settings(**given | change)
    with pytest.raises(SettingsError, match=message):
        await create_topics(settings)
    with pytest.raises(SettingsError, match=message):
        async with AsyncMemoryClient(settings=settings) as memory:
            await memory.add("I live in Berlin.", user_id="alice")


async def test_an_expired_certificate_of_the_broker_is_named(kafka: SecuredKafka) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(kafka.folder / "expired-server.pem")
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(SettingsError, match=r"certificate has expired\): renew it"):
            await create_topics(Settings(**kafka.scram() | {"kafka": f"127.0.0.1:{port}"}))


@pytest.mark.postgres
async def test_a_worker_needs_the_rights_that_the_page_names(kafka: SecuredKafka, database: str) -> None:
    prefix = "least-"
    settings = worker_settings("", database, prefix, **kafka.scram("least"))
    least = Settings.model_validate(settings.model_dump())
    client = least.model_copy(update={"kafka_username": "worker"})
    await create_topics(client)

    async def start() -> None:
        await create_topics(least)
        await asyncio.wait_for(run_worker(settings, ["extract"], asyncio.Event()), 30)

    on_topics = [(operation, prefix, TOPIC) for operation in (DESCRIBE, DESCRIBE_CONFIGS, WRITE, READ)]
    for operation, name, resource in (*on_topics[:-1], (READ, f"{prefix}mnemolog", GROUP), on_topics[-1]):
        with pytest.raises((SettingsError, StartRefused), match="account least lacks a right"):
            await start()
        await kafka.allow("least", operation, name, resource=resource, pattern=PREFIXED)
    async with running_worker(settings), AsyncMemoryClient(settings=client) as memory:
        assert (await memory.add("I live in Berlin.", user_id="alice", wait=30)).success


async def test_a_missing_right_is_named(kafka: SecuredKafka) -> None:
    prefix = "rights-"
    topic = topic_name(CONVERSATION_TURNS, prefix)
    await create_topics(Settings(**kafka.scram(), topic_prefix=prefix, partitions=1))
    publisher = Settings(**kafka.scram("publisher"), topic_prefix=prefix)
    with pytest.raises(SettingsError, match="account publisher lacks a right"):
        await create_topics(publisher)
    async with AsyncMemoryClient(settings=publisher) as memory:
        with pytest.raises(SettingsError, match="account publisher lacks a right"):
            await memory.add("I live in Berlin.", user_id="alice")
        await kafka.allow("publisher", WRITE, "another-topic")  # so that it may write at all
        with pytest.raises(PublishError, match="account publisher lacks a right"):
            await memory.add("I live in Berlin.", user_id="alice")
    for operation in (DESCRIBE, WRITE):
        await kafka.allow("publisher", operation, topic)
    async with AsyncMemoryClient(settings=publisher) as memory:
        assert (await memory.add("I live in Berlin.", user_id="alice")).turn_id
