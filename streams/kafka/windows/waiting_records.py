"""What waits in a window behind a record that is worked on, and waiting for more of it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice

from mnemolog.streams.kafka.record import KafkaRecord, Partition
from mnemolog.streams.kafka.windows.lingerers import Lingerers
from mnemolog.streams.kafka.windows.state import KeyQueue, KeyState, PartitionProgress


class WaitingRecords:
    """Of a window with these queues and partitions, in which so many records may be worked on at once.

    `may_linger` says whether there is time to wait for more, `is_draining` whether nothing more is begun.
    """

    def __init__(
        self,
        queues: Mapping[Hashable, KeyQueue],
        partitions: Mapping[Partition, PartitionProgress],
        places: int,
        *,
        key_of: Callable[[KafkaRecord], Hashable],
        may_linger: Callable[[], bool],
        is_draining: Callable[[], bool],
    ) -> None:
        self._queues = queues
        self._partitions = partitions
        self._lingerers = Lingerers(places)
        self._key_of = key_of
        self._may_linger = may_linger
        self._is_draining = is_draining

    async def records_behind(
        self, record: KafkaRecord, *, enough: int, most: int, seconds: float
    ) -> Sequence[KafkaRecord]:
        """At most `most` records of the key and partition of `record`, which is worked on, that wait behind it.

        Waits up to `seconds` until there are `enough`, as `linger` does. While draining there are none.
        """
        if (queue := self._queue_of(record)) is None:
            return ()
        await self.linger(record, lambda behind: behind.waiting >= enough, seconds)
        waiting = (one.record for one in islice(queue.waiting, 0 if self._is_draining() else most))
        return [one for one in waiting if one.topic_partition == record.topic_partition]

    async def linger(self, record: KafkaRecord, is_enough: Callable[[KeyState], bool], seconds: float) -> None:
        """Wait up to `seconds` until what waits behind `record` is enough, looking whenever more has come.

        Not at all while a quarter of the places is held so, or the chain is full or drained.
        """
        queue = self._queue_of(record)
        if queue is not None and self._may_linger():
            await self._lingerers.wait(queue, lambda: is_enough(self.state_of(record)), seconds)

    def state_of(self, record: KafkaRecord) -> KeyState:
        """How many records of its key wait, and whether its partition has more."""
        return KeyState.of(self._queue_of(record), self._partitions.get(record.topic_partition))

    def look_again(self) -> None:
        """Let those that wait for more records see whether it is enough."""
        self._lingerers.look_again()

    def stop_lingering(self) -> None:
        """Let nobody wait for more records."""
        self._lingerers.stop()

    def _queue_of(self, record: KafkaRecord) -> KeyQueue | None:
        return self._queues.get(self._key_of(record))
