"""The pipeline's own functions one after another in this process: all stages but Kafka, over a real Postgres."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Final

from projections.known import KnownFacts
from projections.limits import Reservations
from projections.matching import Matcher
from projections.past import PastReader
from projections.policies import Policies
from projections.pools import Pool, open_pool
from projections.projector import LogRecord, Projector
from projections.replies import Replies
from schemas.commit import Commit
from schemas.turn import Turn
from streams.dry_run import worked
from streams.providers.base import ChatModel, Embedder
from streams.recording import ChatRecorder, EmbeddingRecorder
from streams.records import Record
from streams.settings import StreamsSettings, default_rules
from streams.stages.commanding import Commanding
from streams.stages.embed import Embedding, finish_embed
from streams.stages.extract import Extractor, finish_extract, read_source
from streams.stages.limiting import Limiting
from streams.stages.match import Matching, finish_match
from streams.stages.reading import Received
from streams.stages.resolve import Resolver
from streams.standards import Standards
from tests.resolving import AlwaysFresh

TOPIC: Final = "conversation_turns"
_POOL: Final = 8
_now: ContextVar[datetime] = ContextVar("now")


class Pipeline:
    """Takes one turn at a time of each owner to its end in the tables; turns of different owners at once."""

    def __init__(self, settings: StreamsSettings, pool: Pool, chat: ChatRecorder, embedder: EmbeddingRecorder) -> None:
        matcher = Matcher(pool, limit=settings.candidates)
        standards = Standards(settings, Policies(pool))
        limiting = Limiting(Reservations(pool))
        matching = Matching(matcher, standards.thresholds_for, standards.rules_for)
        self.pool = pool
        self._max_bytes = settings.max_turn_bytes
        self._extract = Extractor(
            chat,
            categories=settings.categories,
            rules_for=standards.rules_for,
            precheck=limiting.precheck,
        )
        self._embed = Embedding(embedder, standards.thresholds_for)
        self._match = matching
        known = KnownFacts(pool)
        self._resolver = Resolver(
            matcher=matcher,
            matching=matching,
            model=chat,
            embedder=embedder,
            freshness=AlwaysFresh(),
            thresholds_for=standards.thresholds_for,
            configured=default_rules(settings),
            rules_for=standards.rules_for,
            limiting=limiting,
            commanding=Commanding(known=known, past=PastReader(pool, known), clock=_now.get),
            lookups=known,
            clock=_now.get,
        )
        self._projector = Projector(pool)

    async def take(self, turn: Turn, *, partition: int, offset: int, now: datetime) -> Commit:
        """Carry a turn to its commit, decided at `now`, and into the tables.

        An owner's turns have a partition of their own, and their offsets there are consecutive.
        """
        _now.set(now)
        record = Record(
            topic=TOPIC,
            partition=partition,
            offset=offset,
            key=turn.scope.key,
            value=turn.to_bytes(),
            timestamp=now.timestamp(),
        )
        commit = await self._decided(record)
        await self._projector.apply(partition, [LogRecord(offset=offset, value=commit.to_bytes())])
        return commit

    async def _decided(self, record: Record) -> Commit:
        admitted = read_source(record, max_bytes=self._max_bytes, commands="")
        extracted = await worked(self._extract, finish_extract, admitted, record)
        embedded = await worked(self._embed, finish_embed, Received(extracted), record)
        matched = await worked(self._match, finish_match, Received(embedded), record)
        return await self._resolver.decide(matched)


@asynccontextmanager
async def pipeline(settings: StreamsSettings, chat: ChatModel, embedder: Embedder) -> AsyncIterator[Pipeline]:
    """A pipeline over the migrated database of `settings` that asks these models; it closes them."""
    assert settings.postgres is not None
    async with open_pool(settings.postgres, min_size=1, max_size=_POOL, application_name="quality") as pool:
        replies = Replies(pool)
        chats = ChatRecorder(chat, replies)
        embeddings = EmbeddingRecorder(
            embedder,
            replies,
            max_texts=settings.embedding_batch,
            linger=settings.embedding_linger,
            max_concurrent=settings.embedding_concurrency,
        )
        try:
            yield Pipeline(settings, pool, chats, embeddings)
        finally:
            await chats.close()
            await embeddings.close()
