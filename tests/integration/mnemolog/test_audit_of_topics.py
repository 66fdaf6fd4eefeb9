"""The audit also looks at what the topic still holds, on a real Kafka and a real Postgres."""

from collections.abc import Sequence

import pytest

from mnemolog.admin import audit
from mnemolog.projections.queries.audit import Finding
from mnemolog.settings import Settings
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.lag import stage_lags
from mnemolog.streams.kafka_address import KafkaAddress
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import publish_records, running_worker, user_turn, wait_for_outcomes
from tests.support.servers.kafka_client import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def operator_settings(settings: StreamsSettings) -> Settings:
    return Settings.model_validate(settings.model_dump())


def warnings(findings: Sequence[Finding]) -> list[str]:
    return [f"{one.severity}: {one.what}" for one in findings]


async def test_turns_that_no_stage_has_read_are_told_until_they_are(settings: StreamsSettings) -> None:
    kafka, prefix = settings.kafka or "", settings.topic_prefix
    await ensure_topics(KafkaAddress(kafka), partitions=settings.partitions, prefix=prefix)
    await publish_records(settings, *(user_turn(f"t{n}", "I live in Bern.", user=f"u{n}") for n in range(3)))
    books = await audit(operator_settings(settings))
    assert (books.ok, books.accepted, books.unread) == (True, 0, {"journal": 3, "extract": 3})
    assert warnings(books.findings) == [
        "warning: 3 records of conversation_turns not read yet by journal, or not acknowledged",
        "warning: 3 records of conversation_turns not read yet by extract, or not acknowledged",
    ]
    async with running_worker(settings):
        await wait_for_outcomes(settings.postgres or "", 3)

        async def all_read() -> bool:
            return not any(one.lag for one in await stage_lags(KafkaAddress(kafka), prefix=prefix))

        await wait_until(all_read)
        books = await audit(operator_settings(settings))
    assert (books.ok, books.accepted, books.unread, books.findings) == (True, 3, {"journal": 0, "extract": 0}, ())


async def test_without_kafka_the_tables_are_audited_and_the_rest_is_said_to_be_unseen(
    settings: StreamsSettings,
) -> None:
    away = operator_settings(settings).model_copy(update={"kafka": "127.0.0.1:9"})
    books = await audit(away)
    assert (books.ok, books.unread) == (True, None)
    (finding,) = books.findings
    assert finding.what == "what the topic still holds was not looked at"
    assert "Kafka at 127.0.0.1:9 cannot be reached" in finding.advice
