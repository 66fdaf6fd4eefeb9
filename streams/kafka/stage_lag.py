"""How many workers run each stage, and how many records it has not acknowledged yet."""

from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.kafka.admin import TopicState, connected_admin, describe_topics
from mnemolog.streams.kafka.committed import committed_offsets
from mnemolog.streams.kafka.topics import group_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLag:
    """One stage: `workers` are the members of its consumer group, `lag` the records of its topic that wait for it."""

    stage: str
    workers: int
    lag: int


async def stage_lags(bootstrap: str, *, prefix: str = "") -> list[StageLag]:
    """The lag of every stage in the order of a turn's way. Raises aiokafka's errors where no broker answers."""
    topics = await describe_topics(bootstrap, prefix=prefix)
    async with connected_admin(bootstrap) as admin:
        return [
            StageLag(
                stage=stage,
                workers=await group_members(admin, group_id(stage, prefix)),
                lag=await _lag(admin, group_id(stage, prefix), state),
            )
            for state in topics
            for stage in state.topic.consumers
        ]


async def group_members(admin: Any, group: str) -> int:
    """How many workers take part in a consumer group, or did until a moment ago."""
    answers = await admin.describe_consumer_groups([group])
    return sum(len(found[5]) for answer in answers for found in answer.groups)


async def _lag(admin: Any, group: str, state: TopicState) -> int:
    """Records that retention has deleted wait for nobody."""
    done = await committed_offsets(admin, group, [TopicPartition(state.name, number) for number in state.end_offsets])
    return sum(
        max(0, state.end_offsets[place.partition] - max(offset, state.start_offsets[place.partition]))
        for place, offset in done.items()
    )
