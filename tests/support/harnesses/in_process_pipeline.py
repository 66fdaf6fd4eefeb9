"""The pipeline's own functions one after another in this process: all stages but Kafka, over a real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.stores.turns import ReplyStore
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.ports import ChatModel, Embedder
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores
from mnemolog.streams.settings import StreamsSettings

TOPIC: Final = "conversation_turns"
_POOL: Final = 8
_KNOWN_TIMEOUT: Final = 60.0  # or a busy machine extracts some turns blind, and figures are another run's
_now: ContextVar[datetime] = ContextVar("now")


class InProcessPipeline:
    """Takes one turn at a time of each owner to its end in the tables; turns of different owners at once."""

    def __init__(self, settings: StreamsSettings, pool: Pool, models: Any) -> None:
        self.pool = pool
        self._stages = DecisionStages(Stores.of_pool(pool, settings), models, settings, clock=_now.get)
        self._projector = Projector(pool)
        self._projecting = asyncio.Lock()
        self._waiting: dict[int, list[LogRecord]] = {}

    async def close(self) -> None:
        await self._stages.close()

    async def process_turn(self, turn: Turn | Command, *, partition: int, offset: int, now: datetime) -> Commit:
        """Carry a turn, or a command, to its commit, decided at `now`, and into the tables.

        An owner's turns have a partition of their own, and their offsets there are consecutive.
        """
        _now.set(now)
        record = KafkaRecord(
            topic=TOPIC,
            partition=partition,
            offset=offset,
            key=turn.scope.key,
            value=turn.to_bytes(),
            timestamp=now.timestamp(),
        )
        commit = await self._stages.decide(record)
        self._waiting.setdefault(partition, []).append(LogRecord(offset=offset, value=commit.to_bytes()))
        async with self._projecting:  # what waits meanwhile is projected together, as by a stage
            batch, self._waiting = self._waiting, {}
            if batch:
                await self._projector.apply(batch)
        return commit


@dataclass(frozen=True, slots=True)
class _Models:
    chat: CachedChatModel
    embedder: CachedEmbedder

    @property
    def resolver(self) -> CachedChatModel:
        return self.chat


@asynccontextmanager
async def in_process_pipeline(
    settings: StreamsSettings, chat: ChatModel, embedder: Embedder
) -> AsyncIterator[InProcessPipeline]:
    """A pipeline over the migrated database of `settings` that asks these models; it closes them.

    Its connections are those of a worker: each plans a statement once.

    It waits up to 60 s for known facts, so that a busy machine asks the same prompts.
    """
    settings = settings.model_copy(update={"known_timeout": _KNOWN_TIMEOUT})
    assert settings.postgres is not None
    async with open_pool(
        settings.postgres, min_size=1, max_size=_POOL, application_name="quality", autocommit=True, looks_up=True
    ) as pool:
        replies = ReplyStore(pool)
        chats = CachedChatModel(chat, replies)
        embeddings = CachedEmbedder(
            embedder,
            replies,
            max_texts=settings.embedding_batch,
            max_wait=settings.embedding_linger,
            max_concurrent=settings.embedding_concurrency,
        )
        pipeline = InProcessPipeline(settings, pool, _Models(chats, embeddings))
        try:
            yield pipeline
        finally:
            await pipeline.close()
            await chats.close()
            await embeddings.close()
