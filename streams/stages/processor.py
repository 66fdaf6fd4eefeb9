"""Takes one record through a stage: decode the envelope, drop repeats, work, send durably or hand on."""

import asyncio
import random
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final, Generic, Protocol, TypeVar

from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.faults import fault_of
from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.command import Command, Import
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import End, Envelope, ExtractedFacts
from mnemolog.schemas.errors import InvalidRecordError
from mnemolog.schemas.policy import LIMIT_ADVICE, EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Origin, Stage, Thresholds
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Overrides, Turn
from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge, SourceEndedError
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata, SeenOrigins
from mnemolog.streams.kafka.sender import Sender

MAX_FAILURES_IN_A_ROW: Final = 20
"""So many records in a row are not all at fault: it is the program, or its model. At a failure rate of 50 % that many
come in a row once in a million records."""
FIRST_DELAY_SECONDS: Final = 1.0
MAX_DELAY_SECONDS: Final = 60.0
_PROGRAM_ERRORS: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)

ThresholdsFor = Callable[[str, Overrides], Thresholds]
"""The thresholds for an embedding model and a turn's overrides."""
RulesFor = Callable[[Scope, Overrides], Awaitable[EffectivePolicy]]
"""The rules for a scope and a turn's overrides."""
Precheck = Callable[[Scope, EffectivePolicy, int, datetime], Awaitable[LimitHit | None]]
"""The limit for which a turn of so many bytes, published then, is rejected before any model is called."""
WaitUntilProjected = Callable[[str, int], Awaitable[None]]
"""Returns when the tables hold all that was committed for an owner, whose log is the partition."""

log = get_logger(__name__)


E = TypeVar("E", bound=Envelope)


class StageInput(Protocol):
    """What a stage reads from a record: at least the envelope that names the source."""

    @property
    def envelope(self) -> Envelope: ...


@dataclass(frozen=True, slots=True)
class ReceivedEnvelope(Generic[E]):
    """An envelope; `fault` says why the bytes could not be decoded, then the envelope only names the record."""

    envelope: E
    fault: str | None = None

    def require_valid(self) -> E:
        """The envelope. Raises `SourceEndedError` for bytes that could not be decoded."""
        if self.fault is not None:
            raise SourceEndedError("not_a_record", self.fault)
        return self.envelope


def envelope_reader(kind: type[E]) -> Callable[[KafkaRecord], ReceivedEnvelope[E]]:
    """Read records of one kind, or take the envelope that an earlier stage of this process has handed on.

    A record of a newer version escapes: the stage waits to be upgraded.
    """

    def read(record: KafkaRecord) -> ReceivedEnvelope[E]:
        if isinstance(record.content, kind):
            return ReceivedEnvelope(record.content)
        try:
            return ReceivedEnvelope(kind.from_bytes(record.value))
        except InvalidRecordError as error:
            refusal = Refusal(source_id=record.position, scope=None, reason="not_a_record", detail=error.detail)
            return ReceivedEnvelope(next_envelope(kind, new_envelope(record, refusal)), error.detail)

    return read


def new_envelope(record: KafkaRecord, parsed: Turn | Command | Refusal) -> ExtractedFacts:
    """The first envelope of a turn or a command: its identity and times, without facts yet."""
    published_at = datetime.fromtimestamp(record.timestamp, UTC)
    match parsed:
        case Turn():
            names = ("occurred_at", "infer", "speaker", "metadata", "overrides", "immutable")
            fields = {"source_id": parsed.turn_id, **{name: getattr(parsed, name) for name in names}}
        case Command(order=payload, actor=actor):
            fields = {"source_id": parsed.command_id, "occurred_at": parsed.issued_at, "order": payload, "actor": actor}
            fields |= {"metadata": payload.metadata} if isinstance(payload, Import) else {}
        case Refusal():
            fields = {"source_id": parsed.source_id, "occurred_at": published_at}
    return ExtractedFacts(
        scope=parsed.scope,
        source_kind=parsed.kind,
        origin=Origin(topic=record.topic, partition=record.partition, offset=record.offset),
        published_at=published_at,
        size=len(record.value or b""),
        **fields,
    )


def next_envelope(kind: type[E], envelope: Envelope, **changes: Any) -> E:
    """The next stage's envelope from this one's common part and `changes`."""
    common = {name: getattr(envelope, name) for name in Envelope.model_fields}
    return kind(**(common | changes))


def ended_envelope(kind: type[E]) -> Callable[[StageInput, SourceEndedError], E]:
    """Makes the output of a source that ends here: later stages pass it on to its commit."""

    def finish(stage_input: StageInput, error: SourceEndedError) -> E:
        envelope, step = stage_input.envelope, error.step
        raw = {"facts": error.raw_facts, "infer": False} if error.raw_facts else {}
        return next_envelope(kind, envelope, end=error.end, steps=(*envelope.steps, *([step] if step else [])), **raw)

    return finish


def limit_end(hit: LimitHit) -> End:
    """The end of a turn or an import that is rejected for a limit: it can be published again."""
    again = "raise the limit (`mnemolog policy set`) and publish it again under its id"
    detail = f"{hit}: {again}, or {LIMIT_ADVICE[hit.name]}"
    return End(outcome="rejected", reason="limit", detail=detail, limit=hit)


class FailureBudget:
    """Lets so many records end as failed; then holds every further failure back until a record succeeds.

    Of the records that are held, one is tried again after each pause, and all once a record succeeds. A budget outlives
    restarts of its stage, so that a stage that crashes again and again does not get a new one each time.
    """

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._delay = growing_delay(FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, jitter=random.random)
        self._left = MAX_FAILURES_IN_A_ROW
        self._tries = 0
        self._held = metrics.STAGE_HELD.labels(stage=stage)
        self._turn = asyncio.Lock()
        self._refilled = asyncio.Event()

    def record_success(self) -> None:
        """A record of the same kind of work succeeded."""
        if self._left == MAX_FAILURES_IN_A_ROW:
            return
        if not self._left:
            log.info("stage_failures_released", stage=self._stage)
        self._left, self._tries = MAX_FAILURES_IN_A_ROW, 0
        self._refilled.set()

    async def spend(self) -> bool:
        """Whether the record may end as failed. If not, this waits until the record is to be tried again."""
        if self._left:
            self._left -= 1
            if not self._left:
                self._refilled.clear()
                log.error("stage_failures_held", stage=self._stage, failures=MAX_FAILURES_IN_A_ROW)
            return True
        self._held.inc()
        try:
            async with self._turn:
                if not self._left:  # wait for a success, or for a pause that grows with each record tried in vain
                    self._tries += 1
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._delay(self._tries)):
                            await self._refilled.wait()
        finally:
            self._held.dec()
        return False


class FailureBudgets(dict[tuple[str, str], FailureBudget]):
    """The budgets of a process, by stage and kind of source."""

    def __missing__(self, key: tuple[str, str]) -> FailureBudget:
        budget = self[key] = FailureBudget(key[0])
        return budget


I = TypeVar("I", bound=StageInput)  # noqa: E741 -- the usual name of an input
O = TypeVar("O", bound=Envelope | Commit)  # noqa: E741 -- the usual name of an output


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDefinition(Generic[I, O]):
    """The parts of a stage.

    `topic` is where outputs are sent; with None they are handed on to the next stage in this process.

    `read` does not fail for bad bytes: `work` ends such an input. `work` gives None where the source was committed
    before, or its record published again. `finish` makes the output of a source that ends here. `shows_health` says
    whether an output proves that the stage can do its work; `before_retry` is called before a record whose failure was
    held is tried again, `before_send` before an output is sent: what it sends itself is there where the output is.
    """

    stage: Stage
    topic: str | None
    read: Callable[[KafkaRecord], I]
    work: Callable[[I, KafkaRecord], Awaitable[O | None]]
    finish: Callable[[I, SourceEndedError], O]
    on_sent: Callable[[O, RecordMetadata], None] = lambda _output, _sent: None
    shows_health: Callable[[O], bool] = lambda _output: True
    before_retry: Callable[[I], Awaitable[None]] | None = None
    before_send: Callable[[O], Awaitable[None]] | None = None


@dataclass(slots=True)
class StageProcessor(Generic[I, O]):
    """Processes one record at a time for a window.

    It returns when the output is durable, or gives the record with its output as its content, to be handed on. The
    stages of a chain share `seen`: a record counts as seen once the last of them has its output durable.
    """

    definition: StageDefinition[I, O]
    sender: Sender
    dead_letters: DeadLetterWriter
    seen: SeenOrigins
    budgets: FailureBudgets

    async def __call__(self, record: KafkaRecord) -> KafkaRecord | None:
        started, stage, topic = perf_counter(), self.definition.stage, self.definition.topic
        stage_input = self.definition.read(record)
        position = stage_input.envelope.origin.position
        if position in self.seen:
            metrics.REPEATS_DROPPED.labels(stage=stage).inc()
            return None
        output = await self._run_work(stage_input, record)
        next_record: KafkaRecord | None = None
        if output is not None and topic is None:
            next_record = replace(record, content=output)
        else:
            if output is not None and topic is not None:
                try:
                    sent = await self._send(topic, output)
                except RecordTooLarge as error:
                    ended = SourceEndedError("output_too_large", str(error))
                    output = await self._dead_letter(stage_input, record, ended)
                    sent = await self._send(topic, output)
                self.definition.on_sent(output, sent)
            self.seen.add(position)
        metrics.STAGE_SECONDS.labels(stage=stage).observe(perf_counter() - started)
        return next_record

    async def _send(self, topic: str, output: O) -> RecordMetadata:
        if self.definition.before_send is not None:
            await self.definition.before_send(output)
        return await self.sender.send(topic, key=output.key, value=output.to_bytes())

    async def _run_work(self, stage_input: I, record: KafkaRecord) -> O | None:
        envelope = stage_input.envelope
        budget = self.budgets[self.definition.stage, envelope.source_kind]
        while True:
            try:
                output = await self.definition.work(stage_input, record)
            except Exception as error:
                if isinstance(error, SourceEndedError):
                    ended = error
                elif isinstance(error, StatementTimeoutError):
                    ended = SourceEndedError("statement_timeout", str(error))
                elif isinstance(error, _PROGRAM_ERRORS) or fault_of(error) == "record":
                    log.exception("record_failed", stage=self.definition.stage, position=record.position)
                    detail = "".join(traceback.format_exception_only(error)).strip()
                    ended = SourceEndedError("unexpected_error", detail, possibly_systemic=True)
                else:  # it concerns the stage
                    raise
                if not ended.possibly_systemic or await budget.spend():
                    return await self._dead_letter(stage_input, record, ended)
                if self.definition.before_retry is not None:
                    await self.definition.before_retry(stage_input)
            else:
                if output is not None and envelope.end is None and self.definition.shows_health(output):
                    budget.record_success()
                return output

    async def _dead_letter(self, stage_input: I, record: KafkaRecord, error: SourceEndedError) -> O:
        await self.dead_letters.write(
            record,
            stage=self.definition.stage,
            reason=error.reason,
            detail=error.detail,
            tries=1 + (error.step.reprompts if error.step else 0),
            source_id=stage_input.envelope.source_id,
        )
        return self.definition.finish(stage_input, error)
