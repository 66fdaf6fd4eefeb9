"""The pipeline's own functions one after another in this process: all stages but Kafka, over a real Postgres."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Final

from mnemolog.projections.db.pools import Pool, open_pool
from mnemolog.projections.stores.candidates import CandidateFinder
from mnemolog.projections.stores.event_history import EventHistoryStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.limits import LimitReservations
from mnemolog.projections.stores.policies import PolicyStore
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.turn import Turn
from mnemolog.streams.commands.handler import CommandHandler
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.ports import ChatModel, Embedder
from mnemolog.streams.resolution.limits import LimitEnforcer
from mnemolog.streams.runtime.dry_run import run_stage
from mnemolog.streams.runtime.effective_settings import EffectiveSettings
from mnemolog.streams.settings import StreamsSettings, default_rules
from mnemolog.streams.stages.embed import EmbedStage, finish_embed
from mnemolog.streams.stages.extract import ExtractStage, finish_extract, parse_source
from mnemolog.streams.stages.match import MatchStage, finish_match
from mnemolog.streams.stages.received import ReceivedEnvelope
from mnemolog.streams.stages.resolve import ResolveStage
from tests.support.harnesses.resolver_harness import NoProjectionWait

TOPIC: Final = "conversation_turns"
_POOL: Final = 8
_now: ContextVar[datetime] = ContextVar("now")


class InProcessPipeline:
    """Takes one turn at a time of each owner to its end in the tables; turns of different owners at once."""

    def __init__(self, settings: StreamsSettings, pool: Pool, chat: CachedChatModel, embedder: CachedEmbedder) -> None:
        matcher = CandidateFinder(pool, limit=settings.candidates)
        standards = EffectiveSettings(settings, PolicyStore(pool))
        limiting = LimitEnforcer(LimitReservations(pool))
        matching = MatchStage(matcher, standards.thresholds_for, standards.rules_for)
        self.pool = pool
        self._max_bytes = settings.max_turn_bytes
        self._extract = ExtractStage(
            chat,
            categories=settings.categories,
            rules_for=standards.rules_for,
            precheck=limiting.precheck,
        )
        self._embed = EmbedStage(embedder, standards.thresholds_for)
        self._match = matching
        known = FactStore(pool)
        self._resolver = ResolveStage(
            matcher=matcher,
            match_stage=matching,
            model=chat,
            embedder=embedder,
            read_your_writes=NoProjectionWait(),
            thresholds_for=standards.thresholds_for,
            default_rules=default_rules(settings),
            rules_for=standards.rules_for,
            limits=limiting,
            handle_command=CommandHandler(known=known, event_history=EventHistoryStore(pool, known), clock=_now.get),
            lookups=known,
            clock=_now.get,
        )
        self._projector = Projector(pool)

    async def process_turn(self, turn: Turn, *, partition: int, offset: int, now: datetime) -> Commit:
        """Carry a turn to its commit, decided at `now`, and into the tables.

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
        commit = await self._decided(record)
        await self._projector.apply(partition, [LogRecord(offset=offset, value=commit.to_bytes())])
        return commit

    async def _decided(self, record: KafkaRecord) -> Commit:
        admitted = parse_source(record, max_bytes=self._max_bytes)
        extracted = await run_stage(self._extract, finish_extract, admitted, record)
        embedded = await run_stage(self._embed, finish_embed, ReceivedEnvelope(extracted), record)
        matched = await run_stage(self._match, finish_match, ReceivedEnvelope(embedded), record)
        return await self._resolver.decide(matched)


@asynccontextmanager
async def in_process_pipeline(
    settings: StreamsSettings, chat: ChatModel, embedder: Embedder
) -> AsyncIterator[InProcessPipeline]:
    """A pipeline over the migrated database of `settings` that asks these models; it closes them."""
    assert settings.postgres is not None
    async with open_pool(settings.postgres, min_size=1, max_size=_POOL, application_name="quality") as pool:
        replies = ReplyStore(pool)
        chats = CachedChatModel(chat, replies)
        embeddings = CachedEmbedder(
            embedder,
            replies,
            max_texts=settings.embedding_batch,
            max_wait=settings.embedding_linger,
            max_concurrent=settings.embedding_concurrency,
        )
        try:
            yield InProcessPipeline(settings, pool, chats, embeddings)
        finally:
            await chats.close()
            await embeddings.close()
