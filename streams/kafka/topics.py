"""Every topic: name, key, retention and size limit.

All topics have the same number of partitions (the setting `partitions`) and the same key: all records of one user are
in the same partition of each topic, so they are processed in order. That number can never be changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import SecretStr

from mnemolog.schemas.provenance import Stage

MIB: Final = 1024 * 1024
SAFE_REPLICAS: Final = 3
"""From so many copies on, losing any one broker loses no acknowledged record and stops no writes."""
CHAIN_PROTOCOL: Final = "mnemolog-chain"
"""The protocol of the group of workers that chain their stages: the broker lets no others into it."""
CHAINED_BEHIND: Final[tuple[Stage, ...]] = ("embed", "match", "resolve")
"""The stages that a worker may chain behind `extract`."""
COMMAND_TOKEN_HEADER: Final = "mnemolog-token"  # noqa: S105 -- the name of the header

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic: what a record is, who writes and reads it, how long it stays.

    `retention` None means for ever; where it `is_compacted`, the last record of each key stays so long.
    `max_message_bytes` bounds one record with key, headers and overhead.
    """

    name: str
    key_description: str = "tenant/user, or tenant/agent where a scope has no user"
    value_description: str
    retention: timedelta | None = timedelta(days=7)
    producers: tuple[str, ...]
    consumers: tuple[str, ...]
    max_message_bytes: int = MIB
    is_compacted: bool = False

    def config(self, replicas: int = 1) -> Mapping[str, str]:
        """The settings of the topic by their names in Kafka.

        With three replicas a record is acknowledged when two have it: Kafka's own default is one, which a broker that
        is lost at that moment takes with it. With two replicas, two of two would stop writes while one broker restarts.
        """
        milliseconds = -1 if self.retention is None else self.retention // timedelta(milliseconds=1)
        return {
            "cleanup.policy": "compact,delete" if self.is_compacted else "delete",
            "compression.type": "zstd",
            "max.message.bytes": str(self.max_message_bytes),
            # By a publisher's clock that is slow, retention would delete its turns before they are read; by one that
            # is fast, the broker would refuse them.
            "message.timestamp.type": "LogAppendTime",
            "min.insync.replicas": "2" if replicas >= SAFE_REPLICAS else "1",
            "retention.bytes": "-1",
            "retention.ms": str(milliseconds),
        }


CONVERSATION_TURNS: Final = Topic(
    name="conversation_turns",
    value_description="a turn of a conversation, or a command (update, delete, confirm, undo, expire ...)",
    producers=("application", "resolve"),
    consumers=("journal", "extract"),
)
EXTRACTED_FACTS: Final = Topic(
    name="extracted_facts",
    value_description="one turn's facts as extracted",
    producers=("extract",),
    consumers=("embed",),
)
EMBEDDED_FACTS: Final = Topic(
    name="embedded_facts",
    value_description="one turn's facts with their vectors",
    producers=("embed",),
    consumers=("match",),
)
MATCHED_FACTS: Final = Topic(
    name="matched_facts",
    value_description="one turn's facts with the nearest known ones",
    producers=("match",),
    consumers=("resolve",),
)
MEMORY_EVENTS: Final = Topic(
    name="memory_events",
    value_description="a commit: everything that one turn or command did",
    retention=None,
    producers=("resolve",),
    consumers=("project",),
)
MEMORY_OUTCOMES: Final = Topic(
    name="memory_outcomes",
    key_description="tenant/user/id of the turn or command",
    value_description="a turn or a command that failed, was rejected, or has facts that wait for a confirmation",
    retention=timedelta(days=30),
    producers=("resolve",),
    consumers=(),
    is_compacted=True,
)
DEAD_LETTERS: Final = Topic(
    name="dead_letters",
    key_description="the key of the record that failed",
    value_description="the bytes of the record that failed; where and why is in the headers",
    retention=timedelta(days=30),
    producers=("extract", "embed", "match", "resolve", "project"),
    consumers=(),
    max_message_bytes=2 * MIB,
)

TOPICS: Final = (
    *(CONVERSATION_TURNS, EXTRACTED_FACTS, EMBEDDED_FACTS, MATCHED_FACTS, MEMORY_EVENTS, MEMORY_OUTCOMES),
    DEAD_LETTERS,
)


def group_id(stage: str, prefix: str = "") -> str:
    return f"{prefix}mnemolog-{stage}"


def topic_name(topic: Topic, prefix: str = "") -> str:
    """Name a topic on the broker; `prefix` lets several installations share one."""
    return prefix + topic.name


def command_headers(token: SecretStr | None) -> Headers:
    """The headers of a command: the token, where the setting `command_token` asks for one."""
    return [] if token is None else [(COMMAND_TOKEN_HEADER, token.get_secret_value().encode())]


def max_record_bytes(prefix: str = "") -> Mapping[str, int]:
    """Say the largest record, in bytes, by name on the broker."""
    return {topic_name(topic, prefix): topic.max_message_bytes for topic in TOPICS}
