"""What a consumer group has committed, asked for without being its member."""

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import GroupLoadInProgressError  # type: ignore[import-untyped] # as above


async def committed_offsets(admin: Any, group: str, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
    """The next offset of `group` for each of `places`, 0 where it has committed none.

    Raises aiokafka's errors. A coordinator that is still loading answers without the places that it was asked for,
    which must not look like a group that has read nothing.
    """
    wanted = list(places)
    found = await admin.list_consumer_group_offsets(group, partitions=wanted) if wanted else {}
    missing = [place for place in wanted if place not in found]
    if missing:
        raise GroupLoadInProgressError(f"the coordinator of group {group} does not know its offsets yet")
    return {place: max(0, found[place].offset) for place in wanted}
