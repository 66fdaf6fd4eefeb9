"""Takes one record through a stage: read, drop repeats, work, send durably. Every record leaves an output.

What concerns this record alone (a refused prompt, undecodable bytes) ends its source, with a dead letter.
What concerns the stage (the database, the producer, a newer schema) escapes, and crashes it unacknowledged.
"""

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, Protocol, TypeVar

import psycopg

from mnemolog.projections.logs import get_logger
from mnemolog.schemas.envelopes import End
from mnemolog.schemas.provenance import Stage, Step
from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge, StageCrash
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.dedup import SeenOrigins
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.stages.envelope import StageInput
from mnemolog.streams.stages.errors import SourceEndedError

log = get_logger(__name__)

# What one record's content can cause through a fault of this program; any other error concerns the stage.
RECORD_ERRORS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, psycopg.DataError)
# So many records in a row are not all at fault: it is the stage, or its model.
MAX_CONSECUTIVE_FAILURES = 20


class StageOutput(Protocol):
    @property
    def key(self) -> bytes: ...
    def to_bytes(self) -> bytes: ...


I = TypeVar("I", bound=StageInput)  # noqa: E741 -- the usual name of an input
O = TypeVar("O", bound=StageOutput)  # noqa: E741 -- the usual name of an output


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDefinition(Generic[I, O]):
    """The parts of a stage.

    `read` does not fail for bad bytes: `work` ends such an input. `work` gives None where the source was committed
    before. `finish` makes the output of a source that ends here.
    """

    stage: Stage
    topic: str
    read: Callable[[KafkaRecord], I]
    work: Callable[[I, KafkaRecord], Awaitable[O | None]]
    finish: Callable[[I, End, Step | None], O]
    on_sent: Callable[[O, RecordMetadata], None] = lambda _output, _sent: None


class StageProcessor(Generic[I, O]):
    """Processes one record at a time for a window; returns when the output is durable."""

    def __init__(
        self, definition: StageDefinition[I, O], *, sender: Sender, dead_letters: DeadLetterWriter, seen: SeenOrigins
    ) -> None:
        self._definition = definition
        self._sender = sender
        self._dead_letters = dead_letters
        self._seen = seen
        self._consecutive_failures = 0

    async def __call__(self, record: KafkaRecord) -> None:
        started, stage = perf_counter(), self._definition.stage
        stage_input = self._definition.read(record)
        position = stage_input.envelope.origin.position
        if position in self._seen:
            metrics.REPEATS_DROPPED.labels(stage=stage).inc()
            return
        output = await self._run_work(stage_input, record)
        if output is not None:
            await self._send(stage_input, record, output)
        self._seen.add(position)
        metrics.STAGE_SECONDS.labels(stage=stage).observe(perf_counter() - started)

    async def _run_work(self, stage_input: I, record: KafkaRecord) -> O | None:
        try:
            output = await self._definition.work(stage_input, record)
        except SourceEndedError as error:
            if error.possibly_systemic:
                self._count_failure(error)
            return await self._dead_letter(stage_input, record, error)
        except RECORD_ERRORS as error:
            self._count_failure(error)
            log.exception("record_failed", stage=self._definition.stage, position=record.position)
            detail = "".join(traceback.format_exception_only(error)).strip()
            return await self._dead_letter(stage_input, record, SourceEndedError("unexpected_error", detail))
        self._consecutive_failures = 0
        return output

    async def _send(self, stage_input: I, record: KafkaRecord, output: O) -> None:
        try:
            sent = await self._sender.send(self._definition.topic, key=output.key, value=output.to_bytes())
        except RecordTooLarge as error:
            output = await self._dead_letter(stage_input, record, SourceEndedError("output_too_large", str(error)))
            sent = await self._sender.send(self._definition.topic, key=output.key, value=output.to_bytes())
        self._definition.on_sent(output, sent)

    async def _dead_letter(self, stage_input: I, record: KafkaRecord, error: SourceEndedError) -> O:
        await self._dead_letters.write(
            record,
            stage=self._definition.stage,
            reason=error.reason,
            detail=error.detail,
            tries=1 + (error.step.reprompts if error.step else 0),
            source_id=stage_input.envelope.source_id,
        )
        return self._definition.finish(stage_input, error.end, error.step)

    def _count_failure(self, error: Exception) -> None:
        self._consecutive_failures += 1
        if self._consecutive_failures > MAX_CONSECUTIVE_FAILURES:
            raise StageCrash(
                f"{self._consecutive_failures} records in a row failed, the last with {error!r}"
            ) from error
