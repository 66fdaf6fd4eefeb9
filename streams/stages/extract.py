"""`extract`: from a turn's bytes to its facts, with one model call; without one for a raw turn or a command.

Commands are records of the same topic, so that each keeps its place among the turns of its owner.
"""

import hmac
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from pydantic import SecretStr

from mnemolog.schemas.admission import Refusal, parse_record
from mnemolog.schemas.command import Command, CommandPayload, Import, embedded_texts
from mnemolog.schemas.envelopes import End, ExtractedFacts
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.instructions.model import Instructions
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.turn import Turn
from mnemolog.streams import metrics
from mnemolog.streams.instructions.withheld import (
    allowed_categories,
    with_instructions,
    withhold,
    withhold_texts,
)
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import COMMAND_TOKEN_HEADER
from mnemolog.streams.llm.ask import Answer, ask, step_of
from mnemolog.streams.llm.errors import PromptRefusedError, ReplyInvalidError
from mnemolog.streams.llm.extract_prompt import PROMPT_VERSION, extraction_prompt, parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask, RequestSource, SourceChatModel
from mnemolog.streams.stages.echo_filter import drop_recalled_echoes
from mnemolog.streams.stages.envelope import new_envelope, next_envelope
from mnemolog.streams.stages.errors import SourceEndedError
from mnemolog.streams.stages.over_limit import as_raw, end_over_limit, raw_note
from mnemolog.streams.stages.ports import Precheck, RulesFor


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """A parsed turn or command, or its refusal, and its first envelope; `notes` say what was changed in it."""

    envelope: ExtractedFacts
    parsed: Turn | Command | Refusal
    notes: tuple[str, ...] = ()


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
    """Works on one parsed turn or command. `categories` are those that a fact may have."""

    def __init__(
        self, model: SourceChatModel, *, categories: tuple[str, ...], rules_for: RulesFor, precheck: Precheck
    ) -> None:
        self._model = model
        self._categories = categories
        self._rules_for = rules_for
        self._precheck = precheck

    async def __call__(self, source: ParsedSource, record: KafkaRecord) -> ExtractedFacts:  # noqa: ARG002 -- a stage's signature
        envelope, parsed = source.envelope, source.parsed
        if isinstance(parsed, Refusal):
            raise SourceEndedError(parsed.reason, parsed.detail, outcome=parsed.outcome)
        if isinstance(parsed, Command):
            return next_envelope(ExtractedFacts, envelope, facts=command_facts(parsed.order))
        rules = await self._rules_for(parsed.scope, parsed.overrides)
        notes = source.notes
        if hit := await self._precheck(parsed.scope, rules, envelope.size, envelope.published_at):
            if end := end_over_limit(hit, rules):
                return next_envelope(ExtractedFacts, envelope, end=end)
            parsed, envelope = as_raw(parsed, envelope)
            notes = (*notes, raw_note(hit))
        facts, step = await self._facts(parsed, rules.instructions)
        step = step.model_copy(update={"notes": notes})
        for dropped in step.dropped:
            metrics.FACTS_DROPPED.labels(reason=dropped.reason).inc()
        end = None if facts else End(outcome="no_facts", reason="nothing_to_remember")
        return next_envelope(ExtractedFacts, envelope, facts=facts, steps=(*envelope.steps, step), end=end)

    async def _facts(self, turn: Turn, told: Instructions | None) -> tuple[tuple[ExtractedFact, ...], Step]:
        """What a turn states and may be stored, and what it took to find that out."""
        if not turn.infer:
            raw, left_out = withhold(raw_facts(turn), (), told)
            return raw, with_instructions(Step(stage="extract", milliseconds=0, dropped=left_out), told)
        answer = await self._ask(turn, told)
        facts, echoes = drop_recalled_echoes(answer.value, turn)
        if turn.valid_until is not None:  # a fact that names no end of its own has the turn's
            facts = tuple(
                fact.model_copy(update={"valid_until": fact.valid_until or turn.valid_until}) for fact in facts
            )
        facts, left_out = withhold(facts, (*answer.dropped, *echoes), told)
        step = step_of("extract", PROMPT_VERSION, answer).model_copy(update={"dropped": left_out})
        return facts, with_instructions(step, told)

    async def _ask(self, turn: Turn, told: Instructions | None) -> Answer[tuple[ExtractedFact, ...]]:
        categories = allowed_categories(self._categories, told)
        task, overrides = ExtractionTask(turn=turn, categories=categories, instructions=told), turn.overrides
        prompt = replace(extraction_prompt(task), model=overrides.chat_model, timeout=overrides.llm_timeout)
        source = RequestSource(owner=turn.scope.owner, source_id=turn.turn_id, stage="extract")
        model, parse = self._model.for_source(source, prompt), partial(parse_extraction, subject=task)
        try:
            answer = await ask(model, prompt, parse, reprompts=overrides.reprompts)
        except ReplyInvalidError as error:
            metrics.REPROMPTS.labels(purpose="extract").inc(len(error.replies) - 1)
            step = with_instructions(step_of("extract", PROMPT_VERSION, error), told)
            (detail,) = withhold_texts([str(error)], told)
            raise SourceEndedError("invalid_reply", detail, step=step, possibly_systemic=True) from error
        except PromptRefusedError as error:
            raise SourceEndedError(error.reason, error.detail) from error
        metrics.REPROMPTS.labels(purpose="extract").inc(len(answer.replies) - 1)
        return answer


def has_asked_model(output: ExtractedFacts) -> bool:
    """Whether the facts came from a model, and not from a raw turn or a command."""
    return any(step.stage == "extract" and step.model is not None for step in output.steps)


def raw_facts(turn: Turn) -> tuple[ExtractedFact, ...]:
    """The facts of a raw turn: each user message exactly as given; what others said is ignored."""
    return tuple(
        ExtractedFact(
            text=message.content,
            search_text=message.content,
            excerpt=message.content,
            subject=message.name or turn.speaker,
            valid_until=turn.valid_until,
        )
        for message in turn.messages
        if message.role == "user" and message.content.strip()
    )


def command_facts(payload: CommandPayload) -> tuple[ExtractedFact, ...]:
    """One fact for each text of a command, in the order of its items, without a model call.

    What is imported was said elsewhere: it has no excerpt.
    """
    said = not isinstance(payload, Import)
    return tuple(
        ExtractedFact(text=text, search_text=text, excerpt=text if said else "") for text in embedded_texts(payload)
    )
