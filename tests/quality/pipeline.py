"""The pipeline's own functions one after another in this process: all stages but Kafka, over a real Postgres."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Final

from mnemolog.projections.known import KnownFacts
from mnemolog.projections.limits import Reservations
from mnemolog.projections.matching import Matcher
from mnemolog.projections.past import PastReader
from mnemolog.projections.policies import Policies
from mnemolog.projections.pools import Pool, open_pool
from mnemolog.projections.projector import LogRecord, Projector
from mnemolog.projections.replies import Replies
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.turn import Turn
from mnemolog.streams.dry_run import worked
from mnemolog.streams.providers.base import ChatModel, Embedder
from mnemolog.streams.recording import ChatRecorder, EmbeddingRecorder
from mnemolog.streams.records import Record
from mnemolog.streams.settings import StreamsSettings, default_rules
from mnemolog.streams.stages.commanding import Commanding
from mnemolog.streams.stages.embed import Embedding, finish_embed
from mnemolog.streams.stages.extract import Extractor, finish_extract, read_source
from mnemolog.streams.stages.limiting import Limiting
from mnemolog.streams.stages.match import Matching, finish_match
from mnemolog.streams.stages.reading import Received
from mnemolog.streams.stages.resolve import Resolver
from mnemolog.streams.standards import Standards
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
