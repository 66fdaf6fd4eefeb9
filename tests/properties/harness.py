"""Runs histories through the real stages, resolver, command handler, timer and projector on one real database.

Only Kafka and the models are left out. Each history has a scope of its own; nothing is cached between two of them.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, Protocol, cast

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.command import Command, CommandPayload
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import content_hash
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Turn
from mnemolog.schemas.vector import Vector
from mnemolog.streams.commands.expiry import ExpirySweep
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.ports import (
    AskModel,
    EmbeddingResult,
    Prompt,
    Reply,
    RequestSource,
    SourceQuestion,
    TimedReply,
)
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.processor import ReceivedEnvelope
from tests.properties.sentences import read
from tests.support.builders.commits import MODEL, vector

TOPIC: Final = "conversation_turns"
HISTORIES_BETWEEN_CLEANINGS: Final = 25
NEARNESS: Final = {"near": 0.8, "far": 0.0}
"""By the first word of a search text: the share of its vector that all texts of its key have in common."""
_AXES: Final = 512
_KEYS: Final = ("home_city", "employer", "pet", "drink", "allergy", "other")


class Reader(Protocol):
    """What answers in the place of a language model."""

    def reply(self, source_id: str, prompt: Prompt, attempt: int, /) -> str | Awaitable[Reply]: ...


class _Models:
    """The models of the history that runs: its reader, and vectors that follow from the texts."""

    model = MODEL

    def __init__(self) -> None:
        self.reader: Reader | None = None
        self.chat = self.resolver = self.embedder = self

    def for_source(self, source: RequestSource, _question: Prompt) -> AskModel:
        async def ask(prompt: Prompt, attempt: int) -> TimedReply:
            assert self.reader is not None
            reply = self.reader.reply(source.source_id, prompt, attempt)
            text = reply if isinstance(reply, str) else (await reply).text
            return TimedReply(text=text, model="reader-1", milliseconds=0)

        return ask

    async def has_reply(self, _question: SourceQuestion) -> bool:
        return False

    async def unused_replies(self, _source: RequestSource, _question: Prompt | None) -> Sequence[TimedReply]:
        return ()

    async def ask_together(self, *_: object, **__: object) -> Sequence[bool]:
        raise AssertionError("no turn waits behind another")

    async def embed(self, _source: RequestSource, texts: tuple[str, ...]) -> EmbeddingResult:
        vectors = tuple(map(text_vector, texts))
        return EmbeddingResult(vectors=vectors, model=MODEL, calls=1, tokens=1, milliseconds=0)


def text_vector(text: str) -> Vector:
    """The vector of a search text: "near home_city: ..." is near all texts of that key; else the text itself tells."""
    head, _, rest = text.partition(": ")
    nearness, _, key = head.partition(" ")
    if nearness not in NEARNESS:
        meaning = read(text)
        nearness, key, rest = "near", meaning.key if meaning else "other", text
    common = NEARNESS[nearness]
    own = len(_KEYS) + int(content_hash(rest), 16) % (_AXES - len(_KEYS))
    axis = _KEYS.index(key)
    return vector(*(math.sqrt(common) * (at == axis) + math.sqrt(1 - common) * (at == own) for at in range(_AXES)))


class Harness:
    """The stages over one database; `start_history` gives a scope of its own to run a history in."""

    def __init__(self, pool: Pool, settings: StreamsSettings) -> None:
        self.pool = pool
        self.now = datetime.min.replace(tzinfo=UTC)
        self.models = _Models()
        self.settings = settings
        self.stages = DecisionStages(
            Stores.of_pool(pool, settings), cast("Any", self.models), settings, clock=lambda: self.now
        )
        self.follow_ups: list[Command] = []
        self.resolver = self.stages.build_resolver(publish=self._follow)
        self.projector = Projector(pool, clock=lambda: self.now)
        self.facts = FactStore(pool)
        self._count = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, database: str, **settings: Any) -> AsyncIterator["Harness"]:
        """With connections as a worker has them: each plans a statement once."""
        async with open_pool(
            database, min_size=1, max_size=2, application_name="properties", autocommit=True, looks_up=True
        ) as pool:
            harness = cls(pool, StreamsSettings(provider="offline", postgres=database, **settings))
            try:
                yield harness
            finally:
                await harness.stages.close()

    async def start_history(self, reader: Reader, kind: "type[History] | None" = None) -> "History":
        if self._count % HISTORIES_BETWEEN_CLEANINGS == 0:
            await self.clean()
        self._count += 1
        self.models.reader = reader
        return (kind or History)(self, self._count)

    async def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        async with self.pool.connection() as connection:
            return await (await connection.execute(query.encode(), parameters)).fetchall()

    async def _follow(self, command: Command) -> None:
        self.follow_ups.append(command)

    async def clean(self) -> None:
        """Empty all tables: the timer looks at the facts of all scopes."""
        names = await self.rows("""
            SELECT schemaname || '.' || tablename FROM pg_tables
            WHERE schemaname IN ('mnemolog', 'mnemolog_journal') AND tablename <> 'schema_files'
        """)
        async with self.pool.connection() as connection, connection.transaction():
            await connection.execute("SET LOCAL session_replication_role = replica")  # the triggers refuse it
            await connection.execute(f"TRUNCATE {', '.join(name for (name,) in names)}".encode())


class History:
    """One owner's records, one after another; `commits` are what was appended to the log."""

    def __init__(self, harness: Harness, number: int) -> None:
        self.harness = harness
        self.number = number
        self.scope = Scope(user_id=f"user-{number}")
        self.commits: list[Commit] = []
        self._offset = 0
        self._sweep = ExpirySweep(harness.facts, publish=self._expire, owns_scope=lambda scope: scope == self.scope)

    async def publish_turn(self, turn: Turn, *, now: datetime) -> Commit | None:
        """Carry a turn to its commit, decided at `now`, and into the tables."""
        self.harness.now = now
        return await self._process(turn.to_bytes())

    async def send_command(
        self, command_id: str, payload: CommandPayload, *, now: datetime, scope: Scope | None = None
    ) -> Commit | None:
        """Carry out a command, by default in the scope of the history, and what follows from it."""
        self.harness.now = now
        command = Command(command_id=command_id, scope=scope or self.scope, issued_at=now, order=payload)
        return await self._process(command.to_bytes())

    async def run_timer(self, *, now: datetime) -> None:
        """Have what has ended by `now` expired."""
        self.harness.now = now
        await self._sweep.sweep(now)
        while self._sweep.has_more:
            await self._sweep.sweep(now)

    async def _expire(self, command: Command) -> None:
        await self._process(command.to_bytes())

    async def decide(self, record: KafkaRecord) -> Commit | None:
        matched = await self.harness.stages.matched(record)
        return await self.harness.resolver(ReceivedEnvelope(matched), record)

    async def _process(self, value: bytes) -> Commit | None:
        now = self.harness.now
        record = KafkaRecord(
            topic=TOPIC,
            partition=self.number,
            offset=self._offset,
            key=self.scope.key,
            value=value,
            timestamp=now.timestamp(),
        )
        self._offset += 1
        commit = await self.decide(record)
        if commit is not None:
            logged = LogRecord(offset=len(self.commits), value=commit.to_bytes())
            await self.harness.projector.apply({self.number: [logged]})
            self.commits.append(commit)
        while self.harness.follow_ups:
            await self._process(self.harness.follow_ups.pop(0).to_bytes())
        return commit
