"""Builds the stages from a record to its commit; the worker, the dry run and tests share them. Needs no Kafka."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import cached_property
from typing import Final, TypeVar

from mnemolog.projections.database import Pool
from mnemolog.projections.stores.entities import EntityStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.turns import Journal, LimitReservations, ReplyStore
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import EmbeddedFacts, Envelope, ExtractedFacts, MatchedFacts
from mnemolog.schemas.turn import Overrides
from mnemolog.streams.commands.context import PublishCommand
from mnemolog.streams.commands.entities import EntityCommandHandler
from mnemolog.streams.commands.handler import CommandHandler
from mnemolog.streams.entities.linker import EntityLinker
from mnemolog.streams.entities.subjects import EntityCandidates
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import MEMORY_EVENTS
from mnemolog.streams.llm import ports
from mnemolog.streams.llm.background import TIE_HEADS
from mnemolog.streams.resolution.limits import LimitEnforcer
from mnemolog.streams.resolution.turn import LlmDecider, TurnDecider
from mnemolog.streams.resolution.verdicts import HeldOverwriteCloser
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.background import BackgroundReader
from mnemolog.streams.stages.effective_settings import EffectiveSettings
from mnemolog.streams.stages.embed import EmbedStage
from mnemolog.streams.stages.extract import ExtractStage, parse_source
from mnemolog.streams.stages.match import MatchStage
from mnemolog.streams.stages.processor import ReceivedEnvelope, StageInput, WaitUntilProjected, ended_envelope
from mnemolog.streams.stages.promote import Promoter
from mnemolog.streams.stages.resolve import CommandParts, ResolveStage, TurnParts
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder, SharedPolicies
from mnemolog.streams.summaries import DueSummaries, EntitySummariser
from mnemolog.streams.text.differences import USER_WORDS

MAX_COMMIT_BYTES: Final = MEMORY_EVENTS.max_message_bytes - 32 * 1024

I = TypeVar("I", bound=StageInput)  # noqa: E741 -- the usual name of an input
E = TypeVar("E", bound=Envelope)


async def do_nothing(*_: object) -> None:
    """For a resolver before which every commit is projected, or whose commits are shown and not sent."""


class DecisionStages:
    """`extract`, `embed`, `match` and `resolve` over one pool; each is built when it is first asked for.

    Without `reserves` no reservation is written for limits. What compares vectors may have a pool of its own,
    `matching`; `replies` keep what extractions were shown.
    """

    def __init__(
        self,
        pool: Pool,
        models: StageModels,
        settings: StreamsSettings,
        *,
        clock: Callable[[], datetime],
        matching: Pool | None = None,
        replies: ports.ReplyStore | None = None,
        reserves: bool = True,
    ) -> None:
        self._pool = pool
        self._models = models
        self._settings = settings
        self._clock = clock
        self._finder = SharedCandidateFinder(matching or pool, limit=settings.candidates)
        self._policies = SharedPolicies(pool)
        self._effective = EffectiveSettings(settings, self._policies)
        self._limits = LimitEnforcer(LimitReservations(pool, settings.price_table), reserves=reserves)
        self._backgrounds = BackgroundReader(
            Journal(pool),
            FactStore(pool, user_words=USER_WORDS),
            EntityStore(pool, ties=TIE_HEADS),
            replies or ReplyStore(pool),
        )

    @cached_property
    def extract(self) -> ExtractStage:
        return ExtractStage(
            self._models.chat,
            categories=self._settings.categories,
            entity_types=self._settings.entity_types,
            detect_mood=self._settings.detect_mood,
            rules_for=self._effective.rules_for,
            precheck=self._limits.precheck,
            backgrounds=self._backgrounds,
            clock=self._clock,
        )

    @cached_property
    def embed(self) -> EmbedStage:
        return EmbedStage(self._models.embedder, self._effective.thresholds_for)

    @cached_property
    def match(self) -> MatchStage:
        return MatchStage(self._finder, self._effective.thresholds_for, self._effective.rules_for)

    def build_resolver(
        self, wait_until_projected: WaitUntilProjected = do_nothing, publish: PublishCommand = do_nothing
    ) -> ResolveStage:
        """The resolver, which waits for earlier commits before it decides, and publishes what follows from one."""
        pool, embedding_model = self._pool, self._models.embedder.model
        facts, entities = FactStore(pool), EntityStore(pool)
        decider = TurnDecider(facts, LlmDecider(self._models.resolver, self._models.embedder))
        name_twin = self._effective.thresholds_for(embedding_model, Overrides()).name_twin
        linker = EntityLinker(entities, facts, name_twin)
        return ResolveStage(
            finder=self._finder,
            turns=TurnParts(
                match_stage=self.match,
                decider=decider,
                linker=linker,
                candidates=EntityCandidates(self._finder),
                asks_about_names=self._settings.ask_about_names and self._settings.provider != "offline",
            ),
            commands=CommandParts(
                handle=CommandHandler(
                    facts=facts,
                    entities=EntityCommandHandler(entities),
                    clock=self._clock,
                    max_commit_bytes=MAX_COMMIT_BYTES,
                ),
                promote=Promoter(
                    facts=facts,
                    linker=linker,
                    match_stage=self.match,
                    turn_decider=decider,
                    max_commit_bytes=MAX_COMMIT_BYTES // 2,
                ),
                summarise=EntitySummariser(entities, self._models.chat, self._limits.precheck),
                publish=publish,
                due_summaries=DueSummaries(entities, publish),
            ),
            close_lapsed=HeldOverwriteCloser(facts),
            limits=self._limits,
            settings=self._effective,
            embedding_model=embedding_model,
            wait_until_projected=wait_until_projected,
            forget_replies=ReplyStore(pool).forget,
            clock=self._clock,
        )

    async def close(self) -> None:
        for part in (self._backgrounds, self._finder, self._policies):
            await part.close()

    async def forget_replies(self, stage_input: StageInput) -> None:
        """Forget what models replied for a source, so that they are asked anew."""
        envelope = stage_input.envelope
        await ReplyStore(self._pool).forget(envelope.owner, envelope.source_id)

    async def decide(self, record: KafkaRecord) -> Commit:
        """The commit that a turn would have now, if nothing of its owner were under way; nothing is written."""
        source = parse_source(record, max_bytes=self._settings.max_turn_bytes)
        extracted = await _run(self.extract, ExtractedFacts, source, record)
        embedded = await _run(self.embed, EmbeddedFacts, ReceivedEnvelope(extracted), record)
        matched = await _run(self.match, MatchedFacts, ReceivedEnvelope(embedded), record)
        if matched.facts and not matched.scope_version:  # the candidates were too many for a record
            matched = await self.match.with_candidates(matched)
        return await self.build_resolver().decide(matched)


async def _run(
    work: Callable[[I, KafkaRecord], Awaitable[E]], output: type[E], stage_input: I, record: KafkaRecord
) -> E:
    """One stage's output, also where the source ends there."""
    try:
        return await work(stage_input, record)
    except SourceEndedError as error:
        return ended_envelope(output)(stage_input, error)
