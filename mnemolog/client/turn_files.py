"""Publishes lines of JSON turns and waits until they are finished: the work of `mnemolog publish`."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.producer import DeliveryReport, OutgoingRecord, RecordProducer
from mnemolog.client.records import read_turn
from mnemolog.client.results import published
from mnemolog.errors import InvalidTurnError
from mnemolog.projections.queries.results import Result
from mnemolog.schemas.admission import parse_turn, source_kind
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings

MAX_CONCURRENT_WAITS: Final = 16
READ_HINT_BYTES: Final = 1 << 20

ProgressCallback = Callable[[str, int, int], None]
"""Called with a step, how much of it is done, and of how much."""


@dataclass(slots=True, kw_only=True)
class PublishReport:
    """What became of the lines: the faults by line number, and by turn id what failed or was rejected, and why.

    `reused` are ids that an earlier turn with other messages had: that one counts, and these did nothing.
    """

    read: int = 0
    acknowledged: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    unacknowledged: dict[int, str] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    unfinished: list[str] = field(default_factory=list)
    unsuccessful: dict[str, str] = field(default_factory=dict)
    reused: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every line was sent, and every end that was waited for is a success."""
        return not (self.refused or self.unacknowledged or self.unfinished or self.unsuccessful or self.reused)


class TurnFilePublisher:
    """One input on its way. With `raw`, lines are sent as they are, even those that are no turn."""

    def __init__(self, settings: Settings, *, raw: bool, progress: ProgressCallback) -> None:
        self.report = PublishReport()
        self._settings = settings
        self._raw = raw
        self._progress = progress
        self._awaiting_delivery: deque[tuple[int, OutgoingRecord]] = deque()

    async def publish(self, stream: IO[bytes]) -> list[Result]:
        """Send every line that is a turn; returns when the broker has answered for all of them."""
        settings = self._settings
        publisher = await RecordProducer.connect(
            settings.kafka or "", prefix=settings.topic_prefix, compression=settings.compression
        )
        try:
            receipts = publisher.publish_stream(self._records(stream))
            return [followed async for receipt in receipts if (followed := self._count_delivery(receipt))]
        finally:
            await publisher.close()

    async def wait_for_ends(self, records: Sequence[Result], *, seconds: float) -> None:
        """Wait until all `records` have their ends, `seconds` at the most, and count the ends."""
        deadline = asyncio.get_running_loop().time() + seconds
        at_once = asyncio.Semaphore(MAX_CONCURRENT_WAITS)

        async def one(client: AsyncMemoryClient, record: Result) -> None:
            try:
                async with at_once, asyncio.timeout_at(deadline):
                    result = await client.wait(record, timeout=seconds)
            except TimeoutError:
                self.report.unfinished.append(record.turn_id)
            else:
                self._count_end(record, result)
            self._progress("finished", self.report.ends.total() + len(self.report.reused), len(records))

        async with AsyncMemoryClient(settings=self._settings) as client, asyncio.TaskGroup() as group:
            for record in records:
                group.create_task(one(client, record))

    def _count_end(self, record: Result, result: Result) -> None:
        if result.reused:
            self.report.reused.append(record.turn_id)
            return
        self.report.ends[result.status] += 1
        if not result.success:
            self.report.unsuccessful[record.turn_id] = result.error or result.status

    async def _records(self, stream: IO[bytes]) -> AsyncIterator[OutgoingRecord]:
        async for number, content in _lines(stream):
            self.report.read += 1
            try:
                record = self._record(number, content)
            except InvalidTurnError as error:
                self.report.refused[number] = str(error)
                continue
            self._awaiting_delivery.append((number, record))
            yield record

    def _record(self, number: int, content: bytes) -> OutgoingRecord:
        if source_kind(content) == "command":
            raise InvalidTurnError("a command is not published as a turn: use `mnemolog delete`, `correct`, `undo` ...")
        if not self._raw:
            return OutgoingRecord.of(read_turn(content, max_bytes=self._settings.max_turn_bytes))
        scope = parse_turn(content, position="").scope
        return OutgoingRecord(name=f"line {number}", key=scope.key if scope else None, value=content)

    def _count_delivery(self, delivery: DeliveryReport) -> Result | None:
        number, record = self._awaiting_delivery.popleft()
        if delivery.position is None:
            self.report.unacknowledged[number] = str(delivery.error)
            return None
        self.report.acknowledged += 1
        self._progress("acknowledged by the broker", self.report.acknowledged, self.report.read)
        judged = parse_turn(record.value, position=delivery.position, max_bytes=self._settings.max_turn_bytes)
        if isinstance(judged, Turn):
            return published(judged, position=delivery.position)
        whose = (judged.scope.tenant, judged.scope.user_id) if judged.scope else (None, None)
        return Result(turn_id=judged.source_id, position=delivery.position, tenant=whose[0], user_id=whose[1])


async def _lines(stream: IO[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """Numbered lines that hold anything. Read in a thread: a pipe may be slow, and what was sent awaits answers."""
    hint = READ_HINT_BYTES if stream.seekable() else 1
    number = 0
    while lines := await asyncio.to_thread(stream.readlines, hint):
        for line in lines:
            number += 1
            if content := line.strip():
                yield number, content
