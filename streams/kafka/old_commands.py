"""Empty the topic `memory_commands`, where earlier versions had the commands. To be removed in a later version."""

from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped] # ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above

from mnemolog.projections.logs import get_logger
from mnemolog.streams.errors import StartRefused, UnreadCommands
from mnemolog.streams.kafka.admin import connected_admin, partition_counts
from mnemolog.streams.kafka.offset_fetch import raise_fetch_errors
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, Headers, group_id, topic_name

log = get_logger(__name__)

OLD_TOPIC: Final = "memory_commands"
POLL_MILLISECONDS: Final = 1000


async def drain_old_commands(bootstrap: str, *, prefix: str = "", forward: bool = False, headers: Headers = ()) -> int:
    """Count the records of the old topic that `extract` has not read; with `forward`, append them to the new topic.

    Without it, raises `UnreadCommands` where there are any. Raises `StartRefused` while a worker of the earlier version
    runs. A command that is forwarded twice, after a crash, is carried out once.
    """
    topic = prefix + OLD_TOPIC
    async with connected_admin(bootstrap) as admin:
        places = [TopicPartition(topic, number) for number in range((await partition_counts(admin)).get(topic, 0))]
    if not places:
        return 0
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group_id("extract", prefix), enable_auto_commit=False
    )
    try:
        await consumer.start()
        raise_fetch_errors(consumer)
        consumer.assign(places)
        unread = await _unread_ranges(consumer, places)
        count = sum(end - start for start, end in unread.values())
        if count and not forward:
            raise UnreadCommands(count, topic)
        if count:
            await _forward(consumer, unread, bootstrap, topic_name(CONVERSATION_TURNS, prefix), headers)
            log.warning("old_commands_forwarded", count=count, topic=topic)
    finally:
        await consumer.stop()
    return count


async def _unread_ranges(consumer: Any, places: list[Any]) -> dict[Any, tuple[int, int]]:
    first, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
    starts = {place: max(await consumer.committed(place) or 0, first[place]) for place in places}
    return {place: (start, ends[place]) for place, start in starts.items() if start < ends[place]}


async def _forward(
    consumer: Any, unread: dict[Any, tuple[int, int]], bootstrap: str, topic: str, headers: Headers
) -> None:
    try:  # a commit from outside is refused while the group has members
        await consumer.commit({place: start for place, (start, _) in unread.items()})
    except KafkaError as error:
        raise StartRefused(
            f"cannot forward the commands of {OLD_TOPIC} while a stage `extract` runs: stop all workers, then try again"
        ) from error
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True) as producer:
        for place, (start, end) in unread.items():
            consumer.seek(place, start)
            while await consumer.position(place) < end:
                for record in (await consumer.getmany(place, timeout_ms=POLL_MILLISECONDS)).get(place, ()):
                    value = with_kind(record.value or b"")
                    await producer.send_and_wait(topic, key=record.key, value=value, headers=list(headers))
            await consumer.commit({place: end})


def with_kind(value: bytes) -> bytes:
    """A command of the old topic as a record of the new one; what is no JSON object stays as it is, and will fail."""
    fields = value.lstrip()
    return b'{"kind": "command", ' + fields[1:] if fields.startswith(b"{") else value
