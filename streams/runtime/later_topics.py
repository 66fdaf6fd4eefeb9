"""Where the topics between the stages of a chain are empty: only there may the chain begin with a partition.

Before, the stages of this partition ran in several processes, and what they have written there is older than what the
chain would begin with.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above

from mnemolog.projections.logs import get_logger
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.kafka import finish
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

    async def finished(self, partitions: Collection[int]) -> frozenset[int]:
        """Those of `partitions` in whose topics `stages` have finished everything; none while Kafka is away."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._finished(sorted(partitions))
        except (KafkaError, OSError, TimeoutError) as error:
            log.warning("later_topics_unknown", error=repr(error))
            return frozenset()

    async def _finished(self, partitions: Sequence[int]) -> frozenset[int]:
        """Topic by topic: the end of one is final once the stage that writes it has committed all that it reads."""
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
                    left = {place.partition: ends[place] - max(done[place], starts[place]) for place in places}
                    _log_waiting(stage, left)
                    partitions = [number for number, records in left.items() if records <= 0]
                    if not partitions:
                        break
                return frozenset(partitions)
        finally:
            await finish(consumer.stop())


def _log_waiting(stage: Stage, left: Mapping[int, int]) -> None:
    waiting = {number: records for number, records in left.items() if records > 0}
    if waiting:
        log.info("chain_waits_for_later_stage", stage=stage, partitions=sorted(waiting), records=sum(waiting.values()))
