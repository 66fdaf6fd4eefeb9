"""Whether the topics between the stages of a chain are empty: only then may the chain begin with a partition.

Before, the stages of this partition ran in several processes, and what they have written there is older than what the
chain would begin with.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above

from mnemolog.projections.logs import get_logger
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.kafka.admin import connected_admin
from mnemolog.streams.kafka.committed import committed_offsets
from mnemolog.streams.kafka.topics import TOPICS, group_id, topic_name

TIMEOUT_SECONDS: Final = 20.0

log = get_logger(__name__)


class LaterTopics:
    """The topics that `stages` read where they run alone."""

    def __init__(self, bootstrap: str, stages: Sequence[Stage], *, prefix: str = "") -> None:
        self._bootstrap = bootstrap
        self._stages = stages
        self._prefix = prefix

    async def are_empty(self, partitions: Collection[int]) -> bool:
        """Whether `stages` have finished everything in these partitions of their topics; False where Kafka is away."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                waiting = await self._waiting(sorted(partitions))
        except (KafkaError, OSError, TimeoutError) as error:
            log.warning("later_topics_unknown", error=repr(error))
            return False
        for stage, records in waiting.items():
            log.info("chain_waits_for_later_stage", stage=stage, records=records)
        return not waiting

    async def _waiting(self, partitions: Sequence[int]) -> dict[Stage, int]:
        """The first stage that has not finished its partitions, and how many records these hold.

        Topic by topic: the end of one is final once the stage that writes it has committed all that it reads.
        """
        consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap)
        try:
            await consumer.start()
            async with connected_admin(self._bootstrap) as admin:
                for stage in self._stages:
                    (topic,) = (topic_name(topic, self._prefix) for topic in TOPICS if stage in topic.consumers)
                    places = [TopicPartition(topic, number) for number in partitions]
                    ends = await consumer.end_offsets(places)
                    starts = await consumer.beginning_offsets(places)
                    done = await committed_offsets(admin, group_id(stage, self._prefix), places)
                    # What retention has deleted waits for nobody.
                    records = sum(max(0, ends[place] - max(done[place], starts[place])) for place in places)
                    if records:
                        return {stage: records}
                return {}
        finally:
            await consumer.stop()
