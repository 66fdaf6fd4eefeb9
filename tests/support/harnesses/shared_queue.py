"""A queue of waiting turns before `extract`, with a model that counts its calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import orjson

from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.stores.entities import ShownEntities
from mnemolog.projections.stores.facts import ShownFacts
from mnemolog.projections.stores.turns import ConversationRequest
from mnemolog.schemas.base import Record
from mnemolog.schemas.envelopes import ExtractedFacts
from mnemolog.schemas.facts import CATEGORIES
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import ShownFact
from mnemolog.schemas.turn import Message, Overrides, Turn
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.cached_models import CachedChatModel
from mnemolog.streams.llm.extract_prompt import extraction_prompt
from mnemolog.streams.llm.extract_reply import numbered_lines
from mnemolog.streams.llm.ports import BatchSuspectError, Prompt, PromptRefusedError, Reply, SharedPrompt, Usage
from mnemolog.streams.llm.shared_prompt import CallTurn
from mnemolog.streams.offline.model import RuleModel
from mnemolog.streams.stages.background import BackgroundReader
from mnemolog.streams.stages.extract import ExtractStage, leading_turns, parse_source
from mnemolog.streams.stages.shared_calls import CallWait
from tests.simulation.servers.models import StoredReplies

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
SAID: Final = ("I live in Berlin.", "My cat is called Tom.", "I work at Acme.", "I am allergic to nuts.")
RULES: Final = EffectivePolicy(known_facts=0)
Damage = Callable[[str], str]


@dataclass
class CountingModel:
    """The rules as a model that costs tokens; what it says of several turns can be damaged."""

    model: str = "told-1"
    calls: list[Prompt] = field(default_factory=list)
    damage: Damage | None = None
    refused: str = ""
    is_quick: bool = False
    rules: RuleModel = field(default_factory=RuleModel)

    async def complete(self, prompt: Prompt) -> Reply:
        self.calls.append(prompt)
        if self.refused and self.refused in prompt.messages[1].content:
            error = BatchSuspectError if self.is_quick and isinstance(prompt, SharedPrompt) else PromptRefusedError
            raise error("content_filter", "as the test asked for")
        text = await self._answer(replace(prompt, model=None))
        if self.damage is not None and isinstance(prompt, SharedPrompt):
            text = self.damage(text)
        asked = sum(len(message.content) for message in prompt.messages) // 4
        usage = Usage(input_tokens=asked, output_tokens=len(text) // 4, cached_tokens=asked // 3)
        return Reply(text=text, model=self.model, usage=usage)

    async def _answer(self, prompt: Prompt) -> str:
        """The rules read one turn at a time: those of a shared call are put together, each item with its line."""
        if not isinstance(prompt, SharedPrompt):
            return (await self.rules.complete(prompt)).text
        answer: dict[str, list[dict[str, Any]]] = {"facts": [], "omitted": []}
        first = 1
        for task in prompt.tasks:
            lines = numbered_lines(task.turn)
            reply = orjson.loads((await self.rules.complete(extraction_prompt(task))).text)
            for name, item in ((kind, item) for kind in answer for item in reply[kind]):
                said = item.get("excerpt") or item["text"]
                place = next((place for place, line in enumerate(lines) if said in line or line in said), 0)
                answer[name].append({**item, "line": first + place})
            first += len(lines)
        return orjson.dumps(answer).decode()

    async def close(self) -> None: ...

    @property
    def turns(self) -> list[int]:
        """How many turns each call asked about."""
        return [len(one.tasks) if isinstance(one, SharedPrompt) else 1 for one in self.calls]


@dataclass
class _Known:
    """What is known is the same for all; before the turn `slow` no messages can be read."""

    slow: str
    facts: Callable[[], tuple[ShownFact, ...]]

    async def messages_before(self, requests: Sequence[ConversationRequest]) -> list[tuple[()]]:
        if self.slow in [one.turn_id for one in requests]:
            raise StatementTimeoutError("messages")
        return [() for _ in requests]

    async def shown_facts(self, requests: Sequence[object]) -> list[ShownFacts]:
        return [ShownFacts(names=(), facts=self.facts()) for _ in requests]

    async def shown_entities(self, requests: Sequence[object]) -> list[ShownEntities]:
        return [ShownEntities() for _ in requests]


@dataclass
class Queue:
    """Processes the records of an owner in order, each with the records that wait after it; `results` by turn."""

    model: CountingModel
    rules: EffectivePolicy = RULES
    replies: StoredReplies = field(default_factory=StoredReplies)
    hits: dict[str, LimitHit] = field(default_factory=dict)
    waited: list[tuple[int, float]] = field(default_factory=list)
    arriving: list[float] = field(default_factory=list)
    now: datetime = NOON
    detect_mood: bool = False
    slow: str = ""
    known: tuple[ShownFact, ...] = ()

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """What a process remembers is gone."""
        stores: Any = _Known(self.slow, lambda: self.known)
        self.recent = BackgroundReader(stores, stores, stores, self.replies)
        self.stage = ExtractStage(
            CachedChatModel(self.model, self.replies),
            categories=CATEGORIES,
            rules_for=self._rules_for,
            precheck=self._precheck,
            backgrounds=self.recent,
            clock=lambda: self.now,
            detect_mood=self.detect_mood,
        )

    async def _rules_for(self, _scope: Scope, _overrides: Overrides) -> EffectivePolicy:
        return self.rules

    async def _precheck(self, _s: Scope, _r: EffectivePolicy, size: int, _at: datetime) -> LimitHit | None:
        return self.hits.get(str(size))

    async def process(self, records: Sequence[KafkaRecord], place: int) -> ExtractedFacts | Exception:
        read = partial(parse_source, max_bytes=100_000)

        async def waiting_turns(enough: int, most: int, wait: CallWait) -> Sequence[CallTurn | None]:
            self.waited.append((enough, wait.linger))
            self.arriving.append(wait.arriving)
            return leading_turns(records[place + 1 :][:most], read)

        try:
            return await self.stage(read(records[place]), records[place], waiting_turns)
        except (SourceEndedError, StatementTimeoutError) as error:
            return error

    async def run(self, records: Sequence[KafkaRecord]) -> list[Any]:
        return [await self.process(records, place) for place in range(len(records))]


def record(number: int, source: Record) -> KafkaRecord:
    value = source.model_dump_json().encode()
    return KafkaRecord(
        topic="t", partition=0, offset=number, key=b"default/mira", value=value, timestamp=NOON.timestamp() + number
    )


def turn(number: int, said: str, **fields: Any) -> KafkaRecord:
    given: dict[str, Any] = {
        "turn_id": f"t{number}",
        "scope": Scope(user_id="mira"),
        "messages": (Message(role="user", content=said),),
        "occurred_at": NOON - timedelta(hours=1) + timedelta(seconds=number),
        "speaker": "Mira",
    }
    return record(number, Turn(**(given | fields)))


def turns(*said: str) -> list[KafkaRecord]:
    return [turn(number, words) for number, words in enumerate(said)]


def facts(results: Sequence[Any]) -> list[list[str]]:
    return [[fact.text for fact in one.facts] for one in results]


def asked_in(results: Sequence[ExtractedFacts]) -> list[int]:
    """With how many turns each turn's first call was shared, itself too."""
    return [one.steps[-1].call_turns for one in results]


def alone() -> Queue:
    return Queue(CountingModel(), EffectivePolicy(known_facts=0, call_turns=1))
