"""Publishing lines of JSON turns, and following them to their ends: the work behind `mnemolog publish`."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

from mnemolog.client import MemoryClient
from mnemolog.errors import InvalidTurnError
from mnemolog.projections.results import WriteResult
from mnemolog.publishing import Letter, Publisher, Receipt
from mnemolog.schemas.admission import Refusal, admit
from mnemolog.settings import Settings
from mnemolog.turns import read_turn

WAITS_AT_ONCE: Final = 16
READ_BYTES: Final = 1 << 20

Report = Callable[[str, int, int], None]
"""Called with a step, how much of it is done, and of how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """By what the end of a published record is found: the turn's id, or the position of what is no turn."""

    turn_id: str
    position: str
    tenant: str | None = None
    user_id: str | None = None


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of the lines; the faults by line number."""

    read: int = 0
    acknowledged: int = 0
    refused: dict[int, str] = field(default_factory=dict)
    unacknowledged: dict[int, str] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    unfinished: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not (self.refused or self.unacknowledged or self.unfinished)


class TurnFile:
    """One input on its way. With `raw`, lines are sent as they are, even those that are no turn."""

    def __init__(self, settings: Settings, *, raw: bool, report: Report) -> None:
        self.tally = Tally()
        self._settings = settings
        self._raw = raw
        self._report = report
        self._sent: deque[tuple[int, Letter]] = deque()

    async def publish(self, stream: IO[bytes]) -> list[Followed]:
        """Send every line that is a turn; returns when the broker has answered for all of them."""
        settings = self._settings
        publisher = await Publisher.connect(
            settings.kafka or "", prefix=settings.topic_prefix, compression=settings.compression
        )
        try:
            receipts = publisher.publish_all(self._letters(stream))
            return [followed async for receipt in receipts if (followed := self._noted(receipt))]
        finally:
            await publisher.close()

    async def follow(self, turns: Sequence[Followed], *, seconds: float) -> None:
        """Wait until all `turns` have their ends, `seconds` at the most, and count the ends."""
        deadline = asyncio.get_running_loop().time() + seconds
        at_once = asyncio.Semaphore(WAITS_AT_ONCE)

        async def one(client: MemoryClient, turn: Followed) -> None:
            async with at_once:
                await self._end(client, turn, max(0.0, deadline - asyncio.get_running_loop().time()))
            self._report("reached their end", self.tally.ends.total(), len(turns))

        async with MemoryClient.from_settings(self._settings) as client, asyncio.TaskGroup() as group:
            for turn in turns:
                group.create_task(one(client, turn))

    async def _letters(self, stream: IO[bytes]) -> AsyncIterator[Letter]:
        async for number, content in _lines(stream):
            self.tally.read += 1
            try:
                letter = self._letter(number, content)
            except InvalidTurnError as error:
                self.tally.refused[number] = str(error)
                continue
            self._sent.append((number, letter))
            yield letter

    def _letter(self, number: int, content: bytes) -> Letter:
        if not self._raw:
            return Letter.of(read_turn(content, max_bytes=self._settings.max_turn_bytes))
        scope = admit(content, position="").scope
        return Letter(name=f"line {number}", key=scope.key if scope else None, value=content)

    def _noted(self, receipt: Receipt) -> Followed | None:
        number, letter = self._sent.popleft()
        if receipt.position is None:
            self.tally.unacknowledged[number] = str(receipt.error)
            return None
        self.tally.acknowledged += 1
        self._report("acknowledged by the broker", self.tally.acknowledged, self.tally.read)
        return self._followed(letter, receipt.position)

    def _followed(self, letter: Letter, position: str) -> Followed:
        judged = admit(letter.value, position=position, max_bytes=self._settings.max_turn_bytes)
        turn_id = judged.source_id if isinstance(judged, Refusal) else judged.turn_id
        if judged.scope is None:
            return Followed(turn_id=turn_id, position=position)
        return Followed(turn_id=turn_id, position=position, tenant=judged.scope.tenant, user_id=judged.scope.user_id)

    async def _end(self, client: MemoryClient, turn: Followed, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                result = await _own_end(client, turn, seconds)
        except TimeoutError:
            self.tally.unfinished.append(turn.turn_id)
        else:
            self.tally.ends[result.status] += 1


async def _own_end(client: MemoryClient, turn: Followed, seconds: float) -> WriteResult:
    """The end of this very record: that of a copy before it which was refused for a limit is another one."""
    attempt = 1
    while True:
        result = await client.wait(
            turn.turn_id, timeout=seconds, user_id=turn.user_id, tenant=turn.tenant, attempt=attempt
        )
        if result.limit is None or not _came_before(result.position, turn.position):
            return result
        attempt = result.attempt + 1


def _came_before(one: str | None, other: str) -> bool:
    """Whether a record lies before another one of the same partition."""
    where, _, offset = (one or "").rpartition("/")
    place, _, bound = other.rpartition("/")
    return where == place and int(offset) < int(bound)


async def _lines(stream: IO[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """Numbered lines that hold anything. Read in a thread: a pipe may be slow, and what was sent awaits answers."""
    hint = READ_BYTES if stream.seekable() else 1
    number = 0
    while lines := await asyncio.to_thread(stream.readlines, hint):
        for line in lines:
            number += 1
            if content := line.strip():
                yield number, content
