"""Takes one record through a stage: read, drop repeats, work, send durably or hand on. Every record leaves an output.

What concerns this record alone (a refused prompt, undecodable bytes) ends its source, with a dead letter.
What may concern all records (an error of the program, replies that are never valid) does so while others succeed;
after many in a row it is held back (`failure_budget`).
What concerns the stage (the database, the producer, a newer schema) escapes, and crashes it unacknowledged.
"""

import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final, Generic, Protocol, TypeVar

from mnemolog.projections.db.faults import fault_of
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.logs import get_logger
from mnemolog.schemas.envelopes import End
from mnemolog.schemas.provenance import Stage, Step
from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.dedup import SeenOrigins
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.stages.envelope import StageInput
from mnemolog.streams.stages.errors import SourceEndedError
from mnemolog.streams.stages.failure_budget import FailureBudgets

log = get_logger(__name__)

_PROGRAM_ERRORS: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class StageOutput(Protocol):
    @property
    def key(self) -> bytes: ...
    def to_bytes(self) -> bytes: ...


I = TypeVar("I", bound=StageInput)  # noqa: E741 -- the usual name of an input
O = TypeVar("O", bound=StageOutput)  # noqa: E741 -- the usual name of an output


async def _nothing_to_do(_input: object) -> None:
    """What most stages do before a record is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDefinition(Generic[I, O]):
    """The parts of a stage.

    `topic` is where outputs are sent; with None they are handed on to the next stage in this process.

    `read` does not fail for bad bytes: `work` ends such an input. `work` gives None where the source was committed
    before, or its record published again. `finish` makes the output of a source that ends here. `shows_health` says
    whether an output proves that the stage can do its work; `before_retry` is called before a record whose failure was
    held is tried again.
    """

    stage: Stage
    topic: str | None
    read: Callable[[KafkaRecord], I]
    work: Callable[[I, KafkaRecord], Awaitable[O | None]]
    finish: Callable[[I, End, Step | None], O]
    on_sent: Callable[[O, RecordMetadata], None] = lambda _output, _sent: None
    shows_health: Callable[[O], bool] = lambda _output: True
    before_retry: Callable[[I], Awaitable[None]] = _nothing_to_do


class StageProcessor(Generic[I, O]):
    """Processes one record at a time for a window.

    It returns when the output is durable, or gives the record with its output as its content, to be handed on. The
    stages of a chain share `seen`: a record counts as seen once the last of them has its output durable.
    """

    def __init__(
        self,
        definition: StageDefinition[I, O],
        *,
        sender: Sender,
        dead_letters: DeadLetterWriter,
        seen: SeenOrigins,
        budgets: FailureBudgets | None = None,
    ) -> None:
        self._definition = definition
        self._sender = sender
        self._dead_letters = dead_letters
        self._seen = seen
        self._budgets = budgets or FailureBudgets()

    async def __call__(self, record: KafkaRecord) -> KafkaRecord | None:
        started, stage = perf_counter(), self._definition.stage
        stage_input = self._definition.read(record)
        position = stage_input.envelope.origin.position
        if position in self._seen:
            metrics.REPEATS_DROPPED.labels(stage=stage).inc()
            return None
        output = await self._run_work(stage_input, record)
        next_record: KafkaRecord | None = None
        if output is not None and self._definition.topic is None:
            next_record = replace(record, content=output)
        else:
            if output is not None and self._definition.topic is not None:
                await self._send(self._definition.topic, stage_input, record, output)
            self._seen.add(position)
        metrics.STAGE_SECONDS.labels(stage=stage).observe(perf_counter() - started)
        return next_record

    async def _run_work(self, stage_input: I, record: KafkaRecord) -> O | None:
        envelope = stage_input.envelope
        budget = self._budgets.of(self._definition.stage, envelope.source_kind)
        while True:
            try:
                output = await self._definition.work(stage_input, record)
            except Exception as error:
                ended = self._end_of(error, record)
                if ended is None:
                    raise
                if not ended.possibly_systemic or await budget.spend():
                    return await self._dead_letter(stage_input, record, ended)
                await self._definition.before_retry(stage_input)
            else:
                if output is not None and envelope.end is None and self._definition.shows_health(output):
                    budget.record_success()
                return output

    def _end_of(self, error: Exception, record: KafkaRecord) -> SourceEndedError | None:
        """How the source ends by an error; None where the error concerns the stage."""
        if isinstance(error, SourceEndedError):
            return error
        if isinstance(error, StatementTimeoutError):
            return SourceEndedError("statement_timeout", str(error))
        if not isinstance(error, _PROGRAM_ERRORS) and fault_of(error) != "record":
            return None
        log.error("record_failed", stage=self._definition.stage, position=record.position, exc_info=error)
        detail = "".join(traceback.format_exception_only(error)).strip()
        return SourceEndedError("unexpected_error", detail, possibly_systemic=True)

    async def _send(self, topic: str, stage_input: I, record: KafkaRecord, output: O) -> None:
        try:
            sent = await self._sender.send(topic, key=output.key, value=output.to_bytes())
        except RecordTooLarge as error:
            output = await self._dead_letter(stage_input, record, SourceEndedError("output_too_large", str(error)))
            sent = await self._sender.send(topic, key=output.key, value=output.to_bytes())
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
