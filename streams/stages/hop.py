"""One stage's handling of one record: read, drop repeats, work, send durably; whatever happens, the turn goes on.

What concerns this record alone (a refused prompt, bytes that are none of ours) ends the turn, with a dead letter.
What concerns the stage (the database, the producer, a newer schema) escapes, and crashes it unacknowledged.
"""

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, Protocol, TypeVar

import psycopg
import structlog

from mnemolog.schemas.envelopes import End
from mnemolog.schemas.provenance import Origin, Stage, Step
from mnemolog.streams import metrics
from mnemolog.streams.dead_letters import DeadLetters
from mnemolog.streams.errors import RecordTooLarge, StageBroken
from mnemolog.streams.records import Record
from mnemolog.streams.seen import Seen
from mnemolog.streams.send import Sender, Sent
from mnemolog.streams.stages.errors import TurnEndedError

log = structlog.get_logger(__name__)

# What a single record's content can provoke by a fault in this program; anything else is the stage's trouble.
RECORD_FAULTS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, psycopg.DataError)
# So many turns in a row do not all carry poison: the fault is the stage's, or its model's.
POISON_LIMIT = 20


class Input(Protocol):
    @property
    def source_id(self) -> str: ...
    @property
    def origin(self) -> Origin: ...


class Output(Protocol):
    @property
    def key(self) -> bytes: ...
    def to_bytes(self) -> bytes: ...


I = TypeVar("I", bound=Input)  # noqa: E741 -- the usual name of an input
O = TypeVar("O", bound=Output)  # noqa: E741 -- the usual name of an output


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Generic[I, O]):
    """What a stage is made of.

    `read` never fails for bad bytes: it gives an input that `work` will end. `work` gives None where the turn has
    its end already. `finish` makes the output of a turn that ends here.
    """

    stage: Stage
    topic: str
    read: Callable[[Record], I]
    work: Callable[[I, Record], Awaitable[O | None]]
    finish: Callable[[I, End, Step | None], O]
    sent: Callable[[O, Sent], None] = lambda _output, _sent: None


class Hop(Generic[I, O]):
    """Processes one record at a time for a window; returns when the output is durable."""

    def __init__(self, steps: Steps[I, O], *, sender: Sender, dead_letters: DeadLetters, seen: Seen) -> None:
        self._steps = steps
        self._sender = sender
        self._dead_letters = dead_letters
        self._seen = seen
        self._poisoned = 0

    async def __call__(self, record: Record) -> None:
        started = perf_counter()
        steps = self._steps
        given = steps.read(record)
        if given.origin.position in self._seen:
            metrics.REPEATS_DROPPED.labels(stage=steps.stage).inc()
            return
        output = await self._worked(given, record)
        if output is not None:
            await self._send(given, record, output)
        self._seen.add(given.origin.position)
        metrics.STAGE_SECONDS.labels(stage=steps.stage).observe(perf_counter() - started)

    async def _worked(self, given: I, record: Record) -> O | None:
        try:
            output = await self._steps.work(given, record)
        except TurnEndedError as error:
            if error.suspicious:
                self._suspect(error)
            return await self._end(given, record, error)
        except RECORD_FAULTS as error:
            self._suspect(error)
            log.exception("record_failed", stage=self._steps.stage, position=record.position)
            detail = "".join(traceback.format_exception_only(error)).strip()
            return await self._end(given, record, TurnEndedError("unexpected_error", detail))
        self._poisoned = 0
        return output

    async def _send(self, given: I, record: Record, output: O) -> None:
        try:
            sent = await self._sender.send(self._steps.topic, key=output.key, value=output.to_bytes())
        except RecordTooLarge as error:
            output = await self._end(given, record, TurnEndedError("output_too_large", str(error)))
            sent = await self._sender.send(self._steps.topic, key=output.key, value=output.to_bytes())
        self._steps.sent(output, sent)

    async def _end(self, given: I, record: Record, error: TurnEndedError) -> O:
        await self._dead_letters.put(
            record,
            stage=self._steps.stage,
            reason=error.reason,
            detail=error.detail,
            tries=max(1, error.step.llm_calls if error.step else 1),
            source_id=given.source_id,
        )
        return self._steps.finish(given, error.end, error.step)

    def _suspect(self, error: Exception) -> None:
        self._poisoned += 1
        if self._poisoned > POISON_LIMIT:
            raise StageBroken(f"{self._poisoned} turns in a row failed, the last with {error!r}") from error
