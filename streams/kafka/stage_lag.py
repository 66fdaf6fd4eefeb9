"""How many workers run each stage, and how many records it has not acknowledged yet."""

from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.kafka.admin import TopicState, connected_admin, describe_topics
from mnemolog.streams.kafka.committed import committed_offsets
from mnemolog.streams.kafka.topics import CHAIN_PROTOCOL, CHAINED_BEHIND, group_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLag:
    """One stage: how many workers run it, and how many records of its topic wait for it.

    A stage that workers chain behind `extract` has their number, and no records in its topic.
    """

    stage: str
    workers: int
    lag: int


async def stage_lags(bootstrap: str, *, prefix: str = "") -> list[StageLag]:
    """The lag of every stage in the order of a turn's way. Raises aiokafka's errors where no broker answers."""
    topics = await describe_topics(bootstrap, prefix=prefix)
    found = []
    async with connected_admin(bootstrap) as admin:
        chained = await chaining_workers(admin, prefix)
        for state in topics:
            for stage in state.topic.consumers:
                group = group_id(stage, prefix)
                workers = await group_members(admin, group) + (chained if stage in CHAINED_BEHIND else 0)
                found.append(StageLag(stage=stage, workers=workers, lag=await _lag(admin, group, state)))
    return found


async def chaining_workers(admin: Any, prefix: str = "") -> int:
    """How many workers chain their stages; 0 while their group rebalances, as it does not tell its protocol then."""
    answers = await admin.describe_consumer_groups([group_id("extract", prefix)])
    return sum(len(found[5]) for answer in answers for found in answer.groups if found[4] == CHAIN_PROTOCOL)


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
