"""A Kafka record as it lies in the log: bytes and their position, nothing decoded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRecord:
    """One record; `timestamp` is the broker's or producer's, in seconds since 1970."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: float

    @property
    def position(self) -> str:
        """`topic/partition/offset`: the record's name for ever."""
        return f"{self.topic}/{self.partition}/{self.offset}"
