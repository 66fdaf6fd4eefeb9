"""What the declaration of the topics promises."""

import pytest

from mnemolog.streams.kafka.topics import (
    DEAD_LETTERS,
    MEMORY_EVENTS,
    MEMORY_OUTCOMES,
    TOPICS,
    Topic,
    max_record_bytes,
    topic_name,
)


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_retention_in_milliseconds_is_the_declared_one(topic: Topic) -> None:
    milliseconds = int(topic.config()["retention.ms"])
    assert (milliseconds == -1) == (topic.retention is None)
    if topic.retention is not None:
        assert milliseconds == topic.retention.total_seconds() * 1000


def test_only_the_log_keeps_for_ever() -> None:
    assert [topic for topic in TOPICS if topic.retention is None] == [MEMORY_EVENTS]
    assert MEMORY_EVENTS.config()["retention.ms"] == MEMORY_EVENTS.config()["retention.bytes"] == "-1"
    assert MEMORY_EVENTS.config()["cleanup.policy"] == "delete"
    assert [topic for topic in TOPICS if "compact" in topic.config()["cleanup.policy"]] == [MEMORY_OUTCOMES]


def test_a_dead_letter_has_room_for_the_largest_record_and_its_headers() -> None:
    others = [topic for topic in TOPICS if topic is not DEAD_LETTERS]
    assert DEAD_LETTERS.max_message_bytes > max(topic.max_message_bytes for topic in others)


def test_names_are_unique_and_prefixed() -> None:
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)
    assert topic_name(MEMORY_EVENTS, "west-") == "west-memory_events"
    assert set(max_record_bytes("west-")) == {f"west-{topic.name}" for topic in TOPICS}


def test_every_topic_is_read_or_is_the_end_of_the_way() -> None:
    assert [topic for topic in TOPICS if not topic.consumers] == [MEMORY_OUTCOMES, DEAD_LETTERS]
    assert all(topic.producers for topic in TOPICS)
    assert MEMORY_EVENTS.producers == ("resolve",), "one stage decides"
