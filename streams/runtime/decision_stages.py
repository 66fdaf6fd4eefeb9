"""Builds the stages from a record to its commit; the worker, the dry run and tests share them. Needs no Kafka."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, Self, TypeVar

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What decisions read. `replies` keep what extractions were shown; `forget_replies` takes an owner and a source."""

    finder: SharedCandidateFinder
    policies: SharedPolicies
    limits: LimitReservations
    journal: Journal
    facts: FactStore
    entities: EntityStore
    replies: ports.ReplyStore
    forget_replies: Callable[[str, str], Awaitable[None]]

    @classmethod
    def of_pool(
        cls,
        pool: Pool,
        settings: StreamsSettings,
        *,
        matching: Pool | None = None,
        replies: ports.ReplyStore | None = None,
    ) -> Self:
        """Those over Postgres. What compares vectors may have a pool of its own, `matching`."""
        stored = ReplyStore(pool)
        return cls(
            finder=SharedCandidateFinder(matching or pool, limit=settings.candidates),
            policies=SharedPolicies(pool),
            limits=LimitReservations(pool, settings.price_table),
            journal=Journal(pool),
            facts=FactStore(pool, user_words=USER_WORDS),
            entities=EntityStore(pool, ties=TIE_HEADS),
            replies=replies or stored,
            forget_replies=stored.forget,
        )


class DecisionStages:
    """`extract`, `embed`, `match` and `resolve` over the same stores; each is built when it is first asked for.

    Without `reserves` no reservation is written for limits.
    """

    def __init__(
        self,
        stores: Stores,
        models: StageModels,
        settings: StreamsSettings,
        *,
        clock: Callable[[], datetime],
        reserves: bool = True,
    ) -> None:
        self._stores = stores
        self._models = models
        self._settings = settings
        self._clock = clock
        self._effective = EffectiveSettings(settings, stores.policies)
        self._limits = LimitEnforcer(stores.limits, reserves=reserves)
        self._backgrounds = BackgroundReader(stores.journal, stores.facts, stores.entities, stores.replies)

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
        return MatchStage(self._stores.finder, self._effective.thresholds_for, self._effective.rules_for)

    def build_resolver(
        self, wait_until_projected: WaitUntilProjected = do_nothing, publish: PublishCommand = do_nothing
    ) -> ResolveStage:
        """The resolver, which waits for earlier commits before it decides, and publishes what follows from one."""
        embedding_model, stores = self._models.embedder.model, self._stores
        facts, entities = stores.facts, stores.entities
        decider = TurnDecider(facts, LlmDecider(self._models.resolver, self._models.embedder))
        name_twin = self._effective.thresholds_for(embedding_model, Overrides()).name_twin
        linker = EntityLinker(entities, facts, name_twin)
        return ResolveStage(
            finder=stores.finder,
            turns=TurnParts(
                match_stage=self.match,
                decider=decider,
                linker=linker,
                candidates=EntityCandidates(stores.finder),
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
            forget_replies=stores.forget_replies,
            clock=self._clock,
        )

    async def close(self) -> None:
        for part in (self._backgrounds, self._stores.finder, self._stores.policies):
            await part.close()

    async def forget_replies(self, stage_input: StageInput) -> None:
        """Forget what models replied for a source, so that they are asked anew."""
        envelope = stage_input.envelope
        await self._stores.forget_replies(envelope.owner, envelope.source_id)

    async def matched(self, record: KafkaRecord) -> MatchedFacts:
        """What the stages before the resolver make of a record, one after another."""
        source = parse_source(record, max_bytes=self._settings.max_turn_bytes)
        extracted = await _run(self.extract, ExtractedFacts, source, record)
        embedded = await _run(self.embed, EmbeddedFacts, ReceivedEnvelope(extracted), record)
        return await _run(self.match, MatchedFacts, ReceivedEnvelope(embedded), record)

    async def decide(self, record: KafkaRecord) -> Commit:
        """The commit that a turn would have now, if nothing of its owner were under way; nothing is written."""
        matched = await self.matched(record)
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
