"""The stage `extract` with a scripted model, for one record."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas.command import Command
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.policy import EffectivePolicy, LimitHit, Limits
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import NO_BACKGROUND, Background
from mnemolog.schemas.turn import Message, Overrides, Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ports import AskModel, Prompt, RequestSource, SourceQuestion, TimedReply, Usage
from mnemolog.streams.stages.extract import ExtractStage, parse_source
from mnemolog.streams.stages.processor import Precheck
from tests.support.builders.model_replies import fact_json, facts_reply

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FACTS = tuple(UUID(int=number) for number in range(3))


class ScriptedModel:
    """Answers with what the test gives it, in order, and remembers for whom. `unused` was paid for before."""

    def __init__(self, *replies: str | Exception, unused: Sequence[TimedReply] = ()) -> None:
        self.replies = list(replies)
        self.unused = unused
        self.sources: list[RequestSource] = []
        self.questions: list[Prompt] = []
        self.model = "told"

    def for_source(self, source: RequestSource, question: Prompt) -> AskModel:
        del question
        self.sources.append(source)

        async def ask(prompt: Prompt, attempt: int) -> TimedReply:
            del attempt
            self.questions.append(prompt)
            reply = self.replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return TimedReply(text=reply, model="told", usage=Usage(input_tokens=10, output_tokens=2), milliseconds=4.5)

        return ask

    async def has_reply(self, _question: SourceQuestion) -> bool:
        return False

    async def unused_replies(self, source: RequestSource, question: Prompt | None) -> Sequence[TimedReply]:
        is_own = (source.stage, source.position, question) == ("extract", "conversation_turns/1/2", None)
        return self.unused if is_own else ()


def turn(**fields: Any) -> Turn:
    given: dict[str, Any] = {
        "turn_id": "t1",
        "scope": Scope(user_id="mira"),
        "messages": (Message(role="user", content="I live in Berlin."),),
        "occurred_at": NOON,
    }
    return Turn(**(given | fields))


async def bytes_limit(_: Scope, rules: EffectivePolicy, size: int, published_at: datetime) -> LimitHit | None:
    """The limit of bytes as the limits know it."""
    assert published_at == NOON
    limit = rules.limits.get("scope", Limits()).bytes_per_turn
    if limit is None or size <= limit:
        return None
    return LimitHit(name="bytes_per_turn", level="scope", count=size, limit=limit)


def record_of(value: bytes, headers: tuple[tuple[str, bytes], ...] = ()) -> KafkaRecord:
    return KafkaRecord(
        topic="conversation_turns",
        partition=1,
        offset=2,
        key=b"default/mira",
        value=value,
        headers=headers,
        timestamp=NOON.timestamp(),
    )


class Shown:
    """Gives each turn the same background, and remembers what it was told."""

    def __init__(self, background: Background = NO_BACKGROUND) -> None:
        self.background = background
        self.turns: list[tuple[str, datetime, int]] = []
        self.deletions: list[tuple[str, datetime]] = []

    def remember(self, turn: Turn, place: tuple[datetime, int]) -> None:
        self.turns.append((turn.turn_id, *place))

    def forget(self, owner: str, published_at: datetime) -> None:
        self.deletions.append((owner, published_at))

    async def background_of(self, turn: Turn, place: tuple[datetime, int], rules: EffectivePolicy) -> Background:
        del turn, place, rules
        return self.background

    async def read_background(self, *_: object) -> tuple[Background, None]:
        raise AssertionError("nothing waits behind a turn here")


async def extracted(
    model: ScriptedModel,
    source: Turn | Command | bytes,
    backgrounds: Shown | None = None,
    *,
    rules: EffectivePolicy | None = None,
    precheck: Precheck = bytes_limit,
    detect_mood: bool = False,
) -> ExtractedFacts:
    async def rules_for(_: Scope, __: Overrides) -> EffectivePolicy:
        return rules or EffectivePolicy()

    record = record_of(source if isinstance(source, bytes) else source.to_bytes())
    recorder: Any = model
    shown: Any = backgrounds or Shown()
    extractor = ExtractStage(
        recorder,
        categories=CATEGORIES,
        rules_for=rules_for,
        precheck=precheck,
        backgrounds=shown,
        detect_mood=detect_mood,
    )
    return await extractor(parse_source(record, max_bytes=10_000), record)


def replied(*texts: str, quote: str = "I live in Berlin.") -> str:
    return facts_reply(*(fact_json(text, excerpt=quote) for text in texts))
