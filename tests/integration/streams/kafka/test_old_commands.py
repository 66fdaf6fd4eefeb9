"""The topic `memory_commands` of earlier versions on a real broker: refused while unread, or forwarded once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped] # as above
from aiokafka.consumer.group_coordinator import GroupCoordinator  # type: ignore[import-untyped] # as above
from aiokafka.errors import GroupLoadInProgressError  # type: ignore[import-untyped] # as above
from aiokafka.protocol.commit import (  # type: ignore[import-untyped] # as above
    OffsetFetchRequest,
    OffsetFetchResponse_v3,
)

from mnemolog.streams.errors import StartRefused, UnreadCommands
from mnemolog.streams.kafka.old_commands import drain_old_commands
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, group_id, topic_name
from tests.support.servers.kafka_client import PARTITIONS, publish, read_all

pytestmark = pytest.mark.kafka

COMMANDS = [(b"default/mira", b' {"command_id": "c%d"}' % number) for number in range(40)] + [
    (b"default/jonas", b"delete everything"),
    (b"default/jonas", b""),
]


async def publish_old(bootstrap: str, prefix: str, records: Sequence[tuple[bytes, bytes]]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(f"{prefix}memory_commands", PARTITIONS, 1)])
    await admin.close()
    await publish(bootstrap, f"{prefix}memory_commands", records)


@asynccontextmanager
async def old_stage(bootstrap: str, prefix: str) -> AsyncIterator[Any]:
    """A consumer of the group of `extract`, as the earlier version had it."""
    consumer = AIOKafkaConsumer(
        f"{prefix}memory_commands",
        bootstrap_servers=bootstrap,
        group_id=group_id("extract", prefix),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def test_an_installation_without_the_old_topic_starts(bootstrap: str, prefix: str) -> None:
    assert await drain_old_commands(bootstrap, prefix=prefix) == 0


async def test_unread_commands_are_refused_until_the_earlier_version_has_read_them(bootstrap: str, prefix: str) -> None:
    await publish_old(bootstrap, prefix, COMMANDS)
    with pytest.raises(UnreadCommands, match=r"42 commands of .*memory_commands .*start the earlier version"):
        await drain_old_commands(bootstrap, prefix=prefix)
    async with old_stage(bootstrap, prefix) as consumer:
        seen = 0
        while seen < len(COMMANDS):
            seen += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))
        await consumer.commit()
    assert await drain_old_commands(bootstrap, prefix=prefix) == 0


async def test_unread_commands_are_forwarded_once_and_in_order(bootstrap: str, prefix: str) -> None:
    await publish_old(bootstrap, prefix, COMMANDS)
    headers = [("mnemolog-token", b"s3cret")]
    assert await drain_old_commands(bootstrap, prefix=prefix, forward=True, headers=headers) == len(COMMANDS)
    assert await drain_old_commands(bootstrap, prefix=prefix) == 0
    forwarded = await read_all(bootstrap, topic_name(CONVERSATION_TURNS, prefix))
    assert {record.headers for record in forwarded} == {tuple(headers)}
    assert [record.value for record in forwarded if record.key == b"default/mira"] == [
        b'{"kind": "command", "command_id": "c%d"}' % number for number in range(40)
    ]
    assert [record.value for record in forwarded if record.key == b"default/jonas"] == [b"delete everything", b""]


async def test_a_coordinator_that_is_still_loading_does_not_make_read_commands_unread(
    bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish_old(bootstrap, prefix, COMMANDS)
    assert await drain_old_commands(bootstrap, prefix=prefix, forward=True) == len(COMMANDS)
    send = GroupCoordinator._send_req
    loading = [OffsetFetchResponse_v3(0, [], GroupLoadInProgressError.errno)] * PARTITIONS

    async def answer_loading_first(self: Any, request: Any) -> Any:
        return loading.pop() if loading and isinstance(request, OffsetFetchRequest) else await send(self, request)

    monkeypatch.setattr(GroupCoordinator, "_send_req", answer_loading_first)
    assert await drain_old_commands(bootstrap, prefix=prefix) == 0
    assert not loading


async def test_nothing_is_forwarded_while_a_worker_of_the_earlier_version_runs(bootstrap: str, prefix: str) -> None:
    await publish_old(bootstrap, prefix, COMMANDS)
    async with old_stage(bootstrap, prefix) as consumer:
        await consumer.getmany(timeout_ms=5000)
        with pytest.raises(StartRefused, match="stop all workers"):
            await drain_old_commands(bootstrap, prefix=prefix, forward=True)
        places = [TopicPartition(f"{prefix}memory_commands", number) for number in range(PARTITIONS)]
        assert {await consumer.committed(place) for place in places} == {None}
    assert await read_all(bootstrap, topic_name(CONVERSATION_TURNS, prefix)) == []
