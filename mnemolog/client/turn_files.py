"""Publishes lines of JSON turns and waits until they are finished: the work of `mnemolog publish`."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.producer import OutgoingRecord, RecordProducer
from mnemolog.client.results import published
from mnemolog.client.turns import read_turn
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

    async def publish(self, stream: IO[bytes]) -> list[Result]:
        """Send every line that is a turn; returns when the broker has answered for all of them."""
        settings, report = self._settings, self.report
        sent: deque[tuple[int, OutgoingRecord]] = deque()

        async def records() -> AsyncIterator[OutgoingRecord]:
            hint = READ_HINT_BYTES if stream.seekable() else 1
            number = 0
            # Read in a thread: a pipe may be slow, and what was sent awaits answers.
            while lines := await asyncio.to_thread(stream.readlines, hint):
                for number, line in enumerate(lines, start=number + 1):  # noqa: B020 - goes on where the last batch ended
                    if not (content := line.strip()):
                        continue
                    report.read += 1
                    try:
                        sent.append((number, self._record(number, content)))
                    except InvalidTurnError as error:
                        report.refused[number] = str(error)
                    else:
                        yield sent[-1][1]

        producer = await RecordProducer.connect(
            settings.kafka_address, prefix=settings.topic_prefix, compression=settings.compression
        )
        followed: list[Result] = []
        try:
            async for delivery in producer.publish_stream(records()):
                number, record = sent.popleft()
                if delivery.position is None:
                    report.unacknowledged[number] = str(delivery.error)
                    continue
                report.acknowledged += 1
                self._progress("acknowledged by the broker", report.acknowledged, report.read)
                judged = parse_turn(record.value, position=delivery.position, max_bytes=settings.max_turn_bytes)
                if isinstance(judged, Turn):
                    followed.append(published(judged, position=delivery.position))
                else:
                    whose = (judged.scope.tenant, judged.scope.user_id) if judged.scope else (None, None)
                    followed.append(
                        Result(turn_id=judged.source_id, position=delivery.position, tenant=whose[0], user_id=whose[1])
                    )
        finally:
            await producer.close()
        return followed

    def _record(self, number: int, content: bytes) -> OutgoingRecord:
        if source_kind(content) == "command":
            raise InvalidTurnError("a command is not published as a turn: use `mnemolog delete`, `correct`, `undo` ...")
        if not self._raw:
            return OutgoingRecord.of(read_turn(content, max_bytes=self._settings.max_turn_bytes))
        scope = parse_turn(content, position="").scope
        return OutgoingRecord(name=f"line {number}", key=scope.key if scope else None, value=content)

    async def wait_for_ends(self, records: Sequence[Result], *, seconds: float) -> None:
        """Wait until all `records` have their ends, `seconds` at the most, and count the ends."""
        report = self.report
        deadline = asyncio.get_running_loop().time() + seconds
        at_once = asyncio.Semaphore(MAX_CONCURRENT_WAITS)

        async def one(client: AsyncMemoryClient, record: Result) -> None:
            try:
                async with at_once, asyncio.timeout_at(deadline):
                    end = await client.wait(record, timeout=seconds)
            except TimeoutError:
                report.unfinished.append(record.turn_id)
            else:
                if end.reused:
                    report.reused.append(record.turn_id)
                else:
                    report.ends[end.status] += 1
                    if not end.success:
                        report.unsuccessful[record.turn_id] = end.error or end.status
            self._progress("finished", report.ends.total() + len(report.reused), len(records))

        async with AsyncMemoryClient(settings=self._settings) as client, asyncio.TaskGroup() as group:
            for record in records:
                group.create_task(one(client, record))
