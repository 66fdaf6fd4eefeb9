"""The client over a memory in this process: the stages decide each record when it is published."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from itertools import count
from typing import Any, Concatenate, Final, NoReturn, ParamSpec, TypeVar, cast

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.connections import CLOSED, Connections
from mnemolog.client.ends import OnEnd
from mnemolog.client.producer import DeliveryReport, OutgoingRecord
from mnemolog.client.search_models import SearchModels
from mnemolog.client.sync_client import MemoryClient
from mnemolog.errors import MnemologError
from mnemolog.schemas.command import Command
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings
from mnemolog.streams.commands.expiry import ExpirySweep
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.ports import Embedder
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores, do_nothing
from mnemolog.streams.runtime.dry_run import NullReplyStore
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.extract import parse_source
from mnemolog.streams.stages.processor import ReceivedEnvelope
from mnemolog.streams.text.differences import USER_WORDS
from mnemolog.testing.models import GivenFact, ScriptedModel, WordsEmbedder
from mnemolog.testing.queries import Answers
from mnemolog.testing.stores import (
    MemoryEntities,
    MemoryFacts,
    MemoryFinder,
    MemoryJournal,
    MemoryLimits,
    MemoryPolicies,
    NotInMemoryError,
)
from mnemolog.testing.tables import Tables

P = ParamSpec("P")
R = TypeVar("R")
THRESHOLDS: Final[Mapping[str, Any]] = {
    "duplicate_threshold": 0.999,
    "raw_duplicate_threshold": 0.995,
    "conflict_threshold": 0.35,
    "near_duplicate_threshold": 0.98,
    "ending_threshold": 0.35,
    "name_twin_threshold": 0.0,
    "search_threshold": 0.17,
}
"""Those of the offline embedder, but for conflicts: vectors of words are less near than those of meanings. Names are
compared letter by letter alone."""


def memory_stores(tables: Tables, settings: StreamsSettings) -> Stores:
    """What decisions read, over tables in memory; no reply of a model is kept."""
    return Stores(
        finder=MemoryFinder.over(tables, limit=settings.candidates),
        policies=MemoryPolicies.over(tables),
        limits=MemoryLimits(cast("Any", None)),
        journal=MemoryJournal.over(tables),
        facts=MemoryFacts.over(tables, user_words=USER_WORDS),
        entities=MemoryEntities.over(tables),
        replies=NullReplyStore(),
        forget_replies=do_nothing,
    )


class _Pipeline:
    """The stages over tables in memory, of one event loop."""

    def __init__(
        self, tables: Tables, settings: Settings, chat: ScriptedModel, embedder: Embedder, now: Callable[[], datetime]
    ) -> None:
        self._tables = tables
        self._now = now
        self._settings = settings
        replies = NullReplyStore()
        self.chat = self.resolver = CachedChatModel(chat, replies)
        self.embedder = CachedEmbedder(embedder, replies, max_texts=256, max_wait=0, max_concurrent=1)
        stores = memory_stores(tables, settings)
        self._stages = DecisionStages(stores, cast("Any", self), settings, clock=now)
        self._waiting: list[Command] = []
        self._resolver = self._stages.build_resolver(publish=self._follow)
        self._sweep = ExpirySweep(stores.facts, publish=self._follow)
        self._lock = asyncio.Lock()
        self._offsets = count(len(tables.rows.commits))

    async def publish(self, letter: OutgoingRecord) -> DeliveryReport:
        """Decide a record, what has ended before it, and what follows from it."""
        async with self._lock:
            await self._sweep.sweep(self._now())
            await self._follow_ups()
            position = await self._process(letter.value, letter.key)
            await self._follow_ups()
        return DeliveryReport(name=letter.name, position=position)

    async def publish_batch(self, records: Iterable[OutgoingRecord]) -> list[DeliveryReport]:
        return [await self.publish(letter) for letter in records]

    async def close(self) -> None:
        await self._stages.close()
        await self.chat.close()
        await self.embedder.close()

    async def _follow(self, command: Command) -> None:
        self._waiting.append(command)

    async def _follow_ups(self) -> None:
        while self._waiting:
            command = self._waiting.pop(0)
            await self._process(command.to_bytes(), command.scope.key)

    async def _process(self, value: bytes, key: bytes | None) -> str:
        record = KafkaRecord(
            topic=CONVERSATION_TURNS.name,
            partition=0,
            offset=next(self._offsets),
            key=key,
            value=value,
            timestamp=self._now().timestamp(),
        )
        parsed = parse_source(record, max_bytes=self._settings.max_turn_bytes).parsed
        if isinstance(parsed, Turn | Command):
            source_id = parsed.turn_id if isinstance(parsed, Turn) else parsed.command_id
            self._tables.received.setdefault((parsed.scope.owner, source_id), parsed)
        matched = await self._stages.matched(record)
        commit = await self._resolver(ReceivedEnvelope(matched), record)
        if commit is not None:
            self._tables.append(commit)
        return record.position


class _NoPostgres:
    """In the place of connections, and of a look at limits: deciding a turn, which is at once, says what is spent."""

    async def check(self, *_: object) -> None: ...

    def connection(self) -> NoReturn:
        raise NotInMemoryError("what reads the tables as a whole")


class _MemoryConnections(Connections):
    """Connections to nothing: the tables are here."""

    def __init__(self, settings: Settings, *, now: Callable[[], datetime], embedder: Embedder | None) -> None:
        super().__init__(settings, publish_timeout=0, now=now)
        self.limit_precheck = cast("Any", _NoPostgres())
        self.tables = Tables()
        self.chat = ScriptedModel()
        self._embedder = embedder or WordsEmbedder()
        self._answers = Answers(self.tables, now)
        self._pipeline: _Pipeline | None = None

    @cached_property
    def search_models(self) -> SearchModels:
        return SearchModels(self._settings, lambda: self._embedder)

    def forget(self) -> None:
        super().forget()
        self._pipeline = None

    async def producer(self) -> Any:
        self.read_pool()
        if self._pipeline is None:
            self._pipeline = _Pipeline(self.tables, self._settings, self.chat, self._embedder, self._now)
        return self._pipeline

    def read_pool(self) -> Any:
        self._use_this_loop()
        self._discovered()  # raises where the client is closed
        return _NoPostgres()

    def _discovered(self, *_: str) -> Settings:
        if self._closed:
            raise MnemologError(CLOSED)
        return self._settings

    async def query(
        self,
        query: Callable[Concatenate[Any, P], Awaitable[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        self.read_pool()
        return cast("R", self._answers.answer(query, *args, **kwargs))

    async def dry_run(self) -> NoReturn:
        raise NotInMemoryError("dry_run")

    async def connect(self) -> None:
        await self.producer()

    ping = connect

    async def close(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            await pipeline.close()
        await super().close()


class _InMemory:
    """What both clients of a memory in memory have besides."""

    _connections: Connections
    _settings: Settings
    _now: Callable[[], datetime]

    def __init__(
        self,
        *,
        tenant: str = "default",
        now: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        embedder: Embedder | None = None,
        on_end: OnEnd | None = None,
    ) -> None:
        given = {"now": now, "new_id": new_id, "on_end": on_end}
        options: Any = {name: value for name, value in given.items() if value is not None}
        options["settings"] = Settings(provider="offline", tenant=tenant, **THRESHOLDS)
        super().__init__(**options)
        self._connections = _MemoryConnections(self._settings, now=self._now, embedder=embedder)

    def script(self, said: str, *facts: GivenFact) -> None:
        """Have a message of exactly these words read as `facts`, instead of by rules; none for "nothing".

        A fact is its text, or a mapping with `text` and what else a reply of a model has: `key`, `value`, `subject`,
        `category` (a list), `entities` and others. It is checked as such a reply is: what `said` does not say is left
        out, and `why_not` says so.
        """
        cast("_MemoryConnections", self._connections).chat.script[said] = facts


class AsyncInMemoryClient(_InMemory, AsyncMemoryClient):
    """`AsyncMemoryClient` without servers: see `InMemoryClient`."""


class InMemoryClient(_InMemory, MemoryClient):
    """`MemoryClient` without servers, for tests: the decisions are those of the stages, and nothing outlives it.

    Published is decided: `add` returns when the turn has ended, and `wait` at once. Messages are read by the rules of
    the offline provider, or as `script` says. Vectors are made of plain words unless an `embedder` is given; `now` is
    the time of each turn and of each reader, and what has ended by then expires. Raises `NotInMemoryError` for what
    needs the servers: limits, dry runs, promotions, searches in the past, changes of entities, exports.
    """
