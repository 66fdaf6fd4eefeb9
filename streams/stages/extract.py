"""`extract`: from a turn's bytes to its facts, with one model call that waiting turns of the conversation share."""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from aiokafka.partitioner import murmur2  # type: ignore[import-untyped] # aiokafka ships no types
from pydantic import SecretStr

from mnemolog.common.logs import get_logger
from mnemolog.schemas.admission import Refusal, parse_record
from mnemolog.schemas.command import Command, CommandPayload, Import, embedded_texts
from mnemolog.schemas.entities import ENTITY_TYPES
from mnemolog.schemas.envelopes import End, ExtractedFacts
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.policy import BUDGETS, EffectivePolicy
from mnemolog.schemas.provenance import DroppedStatement, Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import NO_BACKGROUND, Background
from mnemolog.schemas.turn import Turn
from mnemolog.streams import metrics
from mnemolog.streams.errors import RecordTooLarge, SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import COMMAND_TOKEN_HEADER
from mnemolog.streams.llm.ask import Answer, ask, step_of, with_unused
from mnemolog.streams.llm.evidence import evidence_messages
from mnemolog.streams.llm.extract_prompt import PROMPT_VERSION, SHARED_PROMPT_VERSION, read_mood
from mnemolog.streams.llm.extract_reply import MAX_FACTS, lines_of, parse_extraction
from mnemolog.streams.llm.ports import PromptRefusedError, ReplyInvalidError, RequestSource, SourceChatModel, TimedReply
from mnemolog.streams.llm.shared_prompt import CallTurn
from mnemolog.streams.llm.withheld import with_instructions, withhold, withhold_texts
from mnemolog.streams.stages.background import BackgroundReader
from mnemolog.streams.stages.processor import Precheck, RulesFor, limit_end, new_envelope, next_envelope
from mnemolog.streams.stages.shared_calls import CallSharer, CallWait, TurnQuestion, TurnQuestions, WaitingTurns
from mnemolog.streams.text.differences import copied_texts, texts_equivalent
from mnemolog.streams.text.tokens import comparable_text, has_words, without_texts

REKEYED_HEADER: Final = "mnemolog-rekeyed"
"""On a copy; it is not copied again, whatever its key and partition are."""
DELETIONS: Final = ("delete", "delete_all", "reject", "undo", "forget_entity")
"""Commands by which somebody takes back what was said: nothing before them explains a later turn."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """A parsed turn or command, or its refusal, and its first envelope; `notes` say what was changed in it."""

    envelope: ExtractedFacts
    parsed: Turn | Command | Refusal
    notes: tuple[str, ...] = ()

    @property
    def placed(self) -> CallTurn | None:
        """The turn and where it stands; None for another record."""
        if not isinstance(self.parsed, Turn):
            return None
        return CallTurn(
            turn=self.parsed,
            published_at=self.envelope.published_at,
            position=self.envelope.origin.position,
            offset=self.envelope.origin.offset,
            size=self.envelope.size,
        )


def leading_turns(
    records: Sequence[KafkaRecord], read: Callable[[KafkaRecord], ParsedSource]
) -> Sequence[CallTurn | None]:
    """The turns that `records` begin with; None for the first record that is no turn, after which none is read."""
    found: list[CallTurn | None] = []
    for record in records:
        try:
            found.append(read(record).placed)
        except UnsupportedVersionError:  # the stage stops when it comes to this record
            found.append(None)
        if found[-1] is None:
            break
    return found


async def no_waiting_turns(_enough: int, _most: int, _wait: CallWait) -> Sequence[CallTurn | None]:
    return ()


def parse_source(record: KafkaRecord, *, max_bytes: int, command_token: SecretStr | None = None) -> ParsedSource:
    """Parse a turn of at most `max_bytes`, or a command, which must have the `command_token` where one is given.

    A turn that is ahead of the broker's time has that time: else what is said until then would be older than it.
    """
    published_at = datetime.fromtimestamp(record.timestamp, UTC)
    parsed = parse_record(record.value, position=record.position, max_turn_bytes=max_bytes, published_at=published_at)
    if isinstance(parsed, Turn) and parsed.occurred_at > published_at:
        note = f"occurred_at {parsed.occurred_at.isoformat()} was ahead of the broker's time: capped to that"
        parsed = parsed.model_copy(update={"occurred_at": published_at})
        return ParsedSource(new_envelope(record, parsed), parsed, notes=(note,))
    expected = command_token.get_secret_value().encode() if command_token else None
    sent = dict(record.headers).get(COMMAND_TOKEN_HEADER, b"")
    if parsed.kind == "command" and expected is not None and not hmac.compare_digest(sent, expected):
        command_id = parsed.source_id if isinstance(parsed, Refusal) else parsed.command_id
        parsed = Refusal(
            source_id=record.position,  # the command's id stays free for whoever has the token
            scope=parsed.scope,
            reason="not_allowed",
            detail=f"command {command_id}: its header {COMMAND_TOKEN_HEADER} does not have the worker's token: "
            "set MNEMOLOG_COMMAND_TOKEN, then send it again",
            kind="command",
        )
    return ParsedSource(new_envelope(record, parsed), parsed)


class ExtractStage:
    """Works on one parsed turn or command.

    `categories` are those that a fact may have, `entity_types` the types of what it names that are asked for.
    With `detect_mood` the mood of a turn is asked for too.
    """

    def __init__(
        self,
        model: SourceChatModel,
        *,
        categories: tuple[str, ...],
        entity_types: tuple[str, ...] = ENTITY_TYPES,
        rules_for: RulesFor,
        precheck: Precheck,
        backgrounds: BackgroundReader,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        detect_mood: bool = False,
    ) -> None:
        self._model = model
        self._rules_for = rules_for
        self._precheck = precheck
        self._backgrounds = backgrounds
        self._detect_mood = detect_mood
        questions = TurnQuestions(backgrounds, categories, entity_types, detect_mood=detect_mood)
        self._sharer = CallSharer(model, questions, clock)

    async def __call__(
        self,
        source: ParsedSource,
        record: KafkaRecord,  # noqa: ARG002 -- a stage's signature
        waiting_turns: WaitingTurns = no_waiting_turns,
    ) -> ExtractedFacts:
        envelope, parsed = source.envelope, source.parsed
        if isinstance(parsed, Refusal):
            raise SourceEndedError(parsed.reason, parsed.detail, outcome=parsed.outcome)
        if isinstance(parsed, Command):
            if parsed.order.kind in DELETIONS:
                self._backgrounds.forget(parsed.scope.owner, envelope.published_at)
            return next_envelope(ExtractedFacts, envelope, facts=command_facts(parsed.order))
        placed = source.placed
        if placed is None:
            raise AssertionError("a turn has a place")
        self._backgrounds.remember(parsed, placed.place)
        rules = await self._rules_for(parsed.scope, parsed.overrides)
        notes = source.notes
        # What is paid for already is decided by the exact limits, when the turn is committed.
        is_paid = self._sharer.answered(placed, rules) is not None
        hit = await self._precheck(parsed.scope, rules, envelope.size, envelope.published_at) if not is_paid else None
        if hit:
            if parsed.infer:
                # What an earlier delivery paid for, or another turn in a shared call: no model is asked now.
                unused = await self._model.unused_replies(RequestSource.of(envelope, "extract"), None)
                paid = (with_unused(Step(stage="extract", milliseconds=0), unused),) if unused else ()
                envelope = envelope.model_copy(update={"steps": paid})
            if hit.name in BUDGETS:
                metrics.OVER_BUDGET.labels(result=rules.when_spent).inc()
            if hit.name not in BUDGETS or rules.when_spent == "reject":
                return next_envelope(ExtractedFacts, envelope, end=limit_end(hit))
            placed = replace(placed, turn=parsed.model_copy(update={"infer": False}))
            envelope = envelope.model_copy(update={"infer": False})
            notes = (*notes, f"{hit}: each message of a user is stored as it is, and no model extracts facts")
        facts, step = await self._facts(placed, rules, waiting_turns)
        step = step.model_copy(update={"notes": (*notes, *step.notes)})
        for dropped in step.dropped:
            metrics.FACTS_DROPPED.labels(reason=dropped.reason).inc()
        end = None if facts else End(outcome="nothing_stored", reason="nothing_to_remember")
        return next_envelope(ExtractedFacts, envelope, facts=facts, steps=(*envelope.steps, step), end=end)

    async def _facts(
        self, placed: CallTurn, rules: EffectivePolicy, waiting_turns: WaitingTurns
    ) -> tuple[tuple[ExtractedFact, ...], Step]:
        """What a turn states and may be stored, and what it took to find that out.

        What the assistant says alone states nothing.
        """
        turn, instructions = placed.turn, rules.instructions
        if not turn.infer:
            raw, left_out = withhold(raw_facts(turn), (), instructions)
            return raw, with_instructions(Step(stage="extract", milliseconds=0, dropped=left_out), instructions)
        if not evidence_messages(turn):
            return (), Step(stage="extract", milliseconds=0)
        is_outdated = self._sharer.is_outdated(placed, rules)
        question = await self._sharer.question_of(placed, rules, waiting_turns)
        try:
            answer = await self._ask(question)
        except SourceEndedError as error:
            if rules.when_unread == "raw":
                error.raw_facts, _ = withhold(raw_facts(turn, parts=lines_of)[:MAX_FACTS], (), instructions)
            raise
        facts, echoes = drop_recalled_echoes(answer.value, turn)
        if turn.valid_until is not None:  # a fact that names no end of its own has the turn's
            facts = tuple(
                fact.model_copy(update={"valid_until": fact.valid_until or turn.valid_until}) for fact in facts
            )
        facts, left_out = withhold(facts, (*answer.dropped, *echoes), instructions)
        step = _step(answer, question.task.background)
        if is_outdated:
            step = with_unused(step, await self._model.unused_replies(question.asked.source, question.asked.prompt))
        if self._detect_mood:
            # The last valid one: a model that corrects its facts may leave the mood out.
            moods = (read_mood(reply.text) for reply in reversed(answer.replies))
            step = step.model_copy(update={"mood": next(filter(None, moods), None)})
        return facts, with_instructions(step.model_copy(update={"dropped": left_out}), instructions)

    async def _ask(self, question: TurnQuestion) -> Answer[tuple[ExtractedFact, ...]]:
        task, prompt, source = question.task, question.asked.prompt, question.asked.source
        model, parse = self._model.for_source(source, prompt), partial(parse_extraction, subject=task)
        try:
            answer = await ask(model, prompt, parse, reprompts=task.turn.overrides.reprompts)
        except ReplyInvalidError as error:
            metrics.REPROMPTS.labels(purpose="extract").inc(len(error.replies) - 1)
            step = with_instructions(_step(error, task.background), task.instructions)
            (detail,) = withhold_texts([str(error)], task.instructions)
            raise SourceEndedError("invalid_reply", detail, step=step, possibly_systemic=True) from error
        except PromptRefusedError as error:
            took = with_unused(Step(stage="extract", milliseconds=0), error.replies) if error.replies else None
            raise SourceEndedError(error.reason, error.detail, step=took) from error
        metrics.REPROMPTS.labels(purpose="extract").inc(len(answer.replies) - 1)
        return answer


def _step(outcome: Answer[tuple[ExtractedFact, ...]] | ReplyInvalidError, background: Background) -> Step:
    """What the calls took, and what the model was shown: alone, and in a call with other turns."""
    replies: tuple[TimedReply, ...] = outcome.replies
    shared, is_alone = replies[0].shared, len(replies) > 1 or replies[0].shared is None
    step = step_of("extract", PROMPT_VERSION if is_alone else SHARED_PROMPT_VERSION, outcome)
    own = background if is_alone else NO_BACKGROUND
    known = (*(shared.known if shared else ()), *(fact.fact_id for fact in own.facts))
    entities = (*(shared.entities if shared else ()), *(entity.entity_id for entity in own.entities))
    shown = {
        "conversation": background.turn_ids,
        "known": tuple(dict.fromkeys(known)),
        "entities": tuple(dict.fromkeys(entities)),
        "notes": (*step.notes, *background.notes),
    }
    return step.model_copy(update=shown)


def drop_recalled_echoes(
    facts: Sequence[ExtractedFact], turn: Turn
) -> tuple[tuple[ExtractedFact, ...], tuple[DroppedStatement, ...]]:
    """The facts that the user states, and those that echo `turn.recalled`, dropped as `recalled`.

    A fact is an echo if no user says its excerpt, but for copies of whole recalled texts, or if it says just what a
    recalled text says, by words, and its excerpt is a part of that. A short answer ("No", "2", "Berlin") is none, even
    where the memory has that word. Without recalled texts all facts are kept.
    """
    if not any(map(comparable_text, turn.recalled)):
        return tuple(facts), ()
    said = tuple(comparable_text(message.content) for message in turn.messages if message.role == "user")
    kept: list[ExtractedFact] = []
    dropped: list[DroppedStatement] = []
    for fact in facts:
        excerpt = comparable_text(fact.excerpt)
        hiding = copied_texts(turn.recalled, fact.text, excerpt)
        is_said = any(has_words(without_texts(content, hiding), excerpt) for content in said)
        repeats = any(has_words(text, excerpt) and texts_equivalent(fact.text, text) for text in turn.recalled)
        if is_said and not repeats:
            kept.append(fact)
        else:
            dropped.append(DroppedStatement(text=fact.text, reason="recalled", excerpt=fact.excerpt))
    return tuple(kept), tuple(dropped)


def has_asked_model(output: ExtractedFacts) -> bool:
    """Whether the facts came from a model, and not from a raw turn or a command."""
    return any(step.stage == "extract" and step.model is not None for step in output.steps)


def raw_facts(
    turn: Turn, parts: Callable[[str], Sequence[str]] = lambda message: (message,)
) -> tuple[ExtractedFact, ...]:
    """The facts of a raw turn: each user message, or its `parts`, exactly as given; what others said is ignored."""
    return tuple(
        ExtractedFact(
            text=part,
            search_text=part,
            excerpt=part,
            subject=message.name or turn.speaker,
            valid_until=turn.valid_until,
        )
        for message in turn.messages
        for part in (parts(message.content) if message.role == "user" else ())
        if part.strip()
    )


def command_facts(payload: CommandPayload) -> tuple[ExtractedFact, ...]:
    """One fact for each text of a command, in the order of its items, without a model call.

    What is imported was said elsewhere: it has no excerpt.
    """
    said = not isinstance(payload, Import)
    return tuple(
        ExtractedFact(text=text, search_text=text, excerpt=text if said else "") for text in embedded_texts(payload)
    )


Work = Callable[[ParsedSource, KafkaRecord], Awaitable[ExtractedFacts | None]]


def partition_of(scope: Scope, partitions: int) -> int:
    """The partition of an owner's records, as Kafka's own partitioner chooses it."""
    return int(murmur2(scope.key) & 0x7FFFFFFF) % partitions


def rekeying(work: Work, sender: Sender, *, topic: str, partitions: int) -> Work:
    """`work`, and None for a record that was published again into `topic` instead."""

    async def rekey(source: ParsedSource, record: KafkaRecord) -> ExtractedFacts | None:
        scope = source.envelope.scope
        if scope is None or REKEYED_HEADER in dict(record.headers):
            return await work(source, record)
        if record.key == scope.key and record.partition == partition_of(scope, partitions):
            return await work(source, record)
        metrics.WRONG_KEYS.inc()
        try:
            headers = [*record.headers, (REKEYED_HEADER, b"1")]
            await sender.send(topic, key=scope.key, value=record.value, headers=headers)
        except RecordTooLarge as error:
            log.warning("not_published_again", position=record.position, error=str(error))
            return await work(source, record)
        return None

    return rekey
