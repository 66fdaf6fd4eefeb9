"""The client without servers: what it would publish is recorded."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.connections import Connections
from mnemolog.client.producer import DeliveryReport, OutgoingRecord
from mnemolog.schemas.command import Command
from mnemolog.settings import Settings

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


class RecordingProducer:
    """Takes records as a broker would."""

    def __init__(self) -> None:
        self.records: list[OutgoingRecord] = []

    async def publish(self, letter: OutgoingRecord) -> DeliveryReport:
        self.records.append(letter)
        return DeliveryReport(name=letter.name, position=f"conversation_turns/0/{len(self.records) - 1}")

    async def publish_batch(self, records: Iterable[OutgoingRecord]) -> list[DeliveryReport]:
        return [await self.publish(letter) for letter in records]


class OfflineConnections(Connections):
    """Connections to nothing but a recording producer."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, publish_timeout=1, now=lambda: AT)
        self.recorder = RecordingProducer()

    async def producer(self) -> Any:
        return self.recorder


class OfflineClient(AsyncMemoryClient):
    """The client with a producer that records; it queries the tables only where `postgres` says where they are."""

    def __init__(self, *, postgres: str | None = None) -> None:
        super().__init__(settings=Settings(postgres=postgres), now=lambda: AT, new_id=lambda: "c1")
        connections = OfflineConnections(self._settings)
        self._connections = connections
        self.producer = connections.recorder

    @property
    def commands(self) -> list[Command]:
        return [Command.from_bytes(letter.value) for letter in self.producer.records]
