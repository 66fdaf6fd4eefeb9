"""`extract`: from the bytes of a turn to its facts, with one model call for a smart store and none for a raw one.

Commands are records of the same topic, so that each keeps its place among the turns of its owner.
"""

import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from pydantic import SecretStr

from mnemolog.schemas.admission import Refusal, parse_record
from mnemolog.schemas.command import Command, CommandPayload, embedded_texts
from mnemolog.schemas.envelopes import End, ExtractedFacts
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import DroppedStatement, Origin, Step
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from mnemolog.streams import metrics
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import COMMAND_TOKEN_HEADER
from mnemolog.streams.llm.ask import Answer, ask
from mnemolog.streams.llm.cached_models import CachedChatModel, RequestSource
from mnemolog.streams.llm.errors import PromptRefusedError, ReplyInvalidError
from mnemolog.streams.llm.extract_prompt import PROMPT_VERSION, extraction_prompt, parse_extraction
from mnemolog.streams.llm.ports import ExtractionTask, TimedReply
from mnemolog.streams.stages.echo_filter import drop_recalled_echoes
from mnemolog.streams.stages.envelope import ended_envelope, limit_end, new_envelope, next_envelope
from mnemolog.streams.stages.errors import SourceEndedError
from mnemolog.streams.stages.match import RulesFor

REPROMPTS: Final = 2
Precheck = Callable[[Scope, EffectivePolicy, int, datetime], Awaitable[LimitHit | None]]


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """A turn or a command as it was parsed, and its first envelope."""

    envelope: ExtractedFacts
    parsed: Turn | Command | Refusal

    @property
    def source_id(self) -> str:
        return self.envelope.source_id

    @property
    def origin(self) -> Origin:
        return self.envelope.origin


def parse_source(record: KafkaRecord, *, max_bytes: int, command_token: SecretStr | None = None) -> ParsedSource:
    """Parse a turn of at most `max_bytes`, or a command, which must have the `command_token` where one is given."""
    parsed = parse_record(record.value, position=record.position, max_turn_bytes=max_bytes)
    if isinstance(parsed, Command) and not _has_token(record, command_token):
        parsed = Refusal(
            source_id=parsed.command_id,
            scope=parsed.scope,
            reason="not_allowed",
            detail=f"the header {COMMAND_TOKEN_HEADER} does not have the worker's token: set MNEMOLOG_COMMAND_TOKEN",
            kind="command",
        )
    return ParsedSource(new_envelope(record, parsed), parsed)


class ExtractStage:
    """Works on one admitted turn or command. `categories` are those a fact may have.

    `precheck` tells the limit for which a turn is refused before anybody is asked.
    """

    def __init__(
        self, model: CachedChatModel, *, categories: tuple[str, ...], rules_for: RulesFor, precheck: Precheck
    ) -> None:
        self._model = model
        self._categories = categories
        self._rules_for = rules_for
        self._precheck = precheck

    async def __call__(self, parsed_source: ParsedSource, record: KafkaRecord) -> ExtractedFacts:
        envelope, verdict = parsed_source.envelope, parsed_source.parsed
        if isinstance(verdict, Refusal):
            raise SourceEndedError(verdict.reason, verdict.detail, outcome=verdict.outcome)
        if record.key != envelope.key:
            metrics.WRONG_KEYS.inc()
        if isinstance(verdict, Command):
            return next_envelope(ExtractedFacts, envelope, facts=command_facts(verdict.order))
        if hit := await self._limit(verdict, envelope):
            return next_envelope(ExtractedFacts, envelope, end=limit_end(hit))
        if not verdict.infer:
            return _with_facts(envelope, raw_facts(verdict), Step(stage="extract", milliseconds=0))
        answer = await self._ask(verdict)
        stated, echoes = drop_recalled_echoes(answer.value, verdict)
        facts = [_with_default_end(fact, verdict.valid_until) for fact in stated]
        return _with_facts(envelope, facts, _step(answer.replies, answer.complaints, (*answer.dropped, *echoes)))

    async def _limit(self, turn: Turn, envelope: ExtractedFacts) -> LimitHit | None:
        rules = await self._rules_for(turn.scope, turn.overrides)
        return await self._precheck(turn.scope, rules, envelope.size, envelope.published_at)

    async def _ask(self, turn: Turn) -> Answer[tuple[ExtractedFact, ...]]:
        subject = ExtractionTask(turn=turn, categories=self._categories)
        asked = turn.overrides
        question = replace(extraction_prompt(subject), model=asked.chat_model, timeout=asked.llm_timeout)
        source = RequestSource(owner=turn.scope.owner, source_id=turn.turn_id, stage="extract")
        model = self._model.for_source(source, question)
        try:
            answer = await ask(
                model,
                question,
                partial(parse_extraction, subject=subject),
                reprompts=REPROMPTS if asked.reprompts is None else asked.reprompts,
            )
        except ReplyInvalidError as error:
            metrics.REPROMPTS.labels(purpose="extract").inc(len(error.replies) - 1)
            step = _step(error.replies, error.complaints[:-1])
            raise SourceEndedError("invalid_reply", str(error), step=step, possibly_systemic=True) from error
        except PromptRefusedError as error:
            raise SourceEndedError(error.reason, error.detail, possibly_systemic=True) from error
        metrics.REPROMPTS.labels(purpose="extract").inc(answer.reprompts)
        return answer


def finish_extract(parsed_source: ParsedSource, end: End, step: Step | None) -> ExtractedFacts:
    return ended_envelope(ExtractedFacts, parsed_source.envelope, end, step)


def _has_token(record: KafkaRecord, token: SecretStr | None) -> bool:
    sent = dict(record.headers).get(COMMAND_TOKEN_HEADER, b"")
    return token is None or hmac.compare_digest(sent, token.get_secret_value().encode())


def raw_facts(turn: Turn) -> tuple[ExtractedFact, ...]:
    """What a raw store keeps: each user message exactly as given; what others said is ignored."""
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
    """One fact for each text of an order, in the order of its items: nobody is asked what they mean."""
    return tuple(ExtractedFact(text=text, search_text=text, excerpt=text) for text in embedded_texts(payload))


def _with_default_end(fact: ExtractedFact, valid_until: datetime | None) -> ExtractedFact:
    """A fact that names no end of its own has the turn's."""
    if fact.valid_until is not None or valid_until is None:
        return fact
    return fact.model_copy(update={"valid_until": valid_until})


def _with_facts(envelope: ExtractedFacts, facts: Sequence[ExtractedFact], step: Step) -> ExtractedFacts:
    for dropped in step.dropped:
        metrics.FACTS_DROPPED.labels(reason=dropped.reason).inc()
    end = None if facts else End(outcome="no_facts", reason="nothing_to_remember")
    return next_envelope(ExtractedFacts, envelope, facts=tuple(facts), steps=(*envelope.steps, step), end=end)


def _step(
    replies: Sequence[TimedReply], complaints: tuple[str, ...], dropped: tuple[DroppedStatement, ...] = ()
) -> Step:
    """The calls as they were recorded, so that a re-delivery gives the same bytes."""
    return Step(
        stage="extract",
        milliseconds=round(sum(reply.milliseconds for reply in replies), 3),
        model=replies[-1].model,
        prompt_version=PROMPT_VERSION,
        llm_calls=len(replies),
        input_tokens=sum(reply.usage.input_tokens for reply in replies),
        output_tokens=sum(reply.usage.output_tokens for reply in replies),
        reprompts=len(replies) - 1,
        complaints=complaints,
        dropped=dropped,
    )
