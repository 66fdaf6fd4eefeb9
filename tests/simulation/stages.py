"""A simulated worker: its stages, with the project's own wiring and supervisor; servers and models are simulated."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, cast

from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores.turns import Journal
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import ExtractedFacts, MatchedFacts
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.facts import CATEGORIES, ExtractedFact
from mnemolog.schemas.policy import EffectivePolicy, LimitHit
from mnemolog.schemas.provenance import Stage, Step, Thresholds
from mnemolog.schemas.stored import NO_BACKGROUND, Background
from mnemolog.streams.commands.context import PublishCommand
from mnemolog.streams.commands.handler import CommandResult
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.errors import SourceEndedError
from mnemolog.streams.kafka.app import StageApp
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import MEMORY_EVENTS
from mnemolog.streams.kafka.window import KeyedWindow
from mnemolog.streams.llm.cached_models import CachedChatModel, CachedEmbedder
from mnemolog.streams.llm.calls import CallRetrier
from mnemolog.streams.llm.ports import PromptRefusedError, RequestSource
from mnemolog.streams.llm.shared_prompt import CallTurn
from mnemolog.streams.resolution.turn import LlmDecider, PreparedTurn, TurnDecider
from mnemolog.streams.runtime.read_your_writes import Watermark
from mnemolog.streams.runtime.supervisor import run_stages
from mnemolog.streams.runtime.worker import SharedResources, StageFactory
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.effective_settings import EffectiveSettings
from mnemolog.streams.stages.embed import EmbedStage
from mnemolog.streams.stages.extract import ParsedSource
from mnemolog.streams.stages.match import MatchStage
from mnemolog.streams.stages.processor import StageInput, WaitUntilProjected, next_envelope
from mnemolog.streams.stages.resolve import CommandParts, ResolveStage, TurnParts
from mnemolog.streams.stages.shared_calls import CallSharer, TurnQuestions, WaitingTurns
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder
from tests.simulation.loop import SimulatedLoop
from tests.simulation.servers.broker import START_TIME, Broker, SimulatedLog
from tests.simulation.servers.models import (
    EXTRACT_SECONDS,
    RETRY,
    ModelServer,
    SimulatedChat,
    SimulatedEmbedder,
    StoredReplies,
    fact_text,
)
from tests.simulation.servers.postgres import Postgres
from tests.simulation.workload import PARTITIONS, Workload


class _NoBackgrounds:
    """Turns are shown nothing: the question of a turn is the same at each delivery."""

    def remember(self, *_: object) -> None: ...

    def forget(self, *_: object) -> None: ...

    async def background_of(self, *_: object) -> Background:
        return NO_BACKGROUND

    async def read_background(self, *_: object) -> tuple[Background, None]:
        return NO_BACKGROUND, None


class SharedExtractions:
    """Asks for the extraction of a turn, together with turns that wait."""

    def __init__(self, model: CachedChatModel, world: Any) -> None:
        self._model = model
        self._sharer = CallSharer(model, TurnQuestions(cast("Any", _NoBackgrounds()), CATEGORIES, ()), world.now)
        turns = 1 + world.load.seed % 2 * 3
        self._rules = EffectivePolicy(call_turns=turns, call_linger=world.load.seed % 3 * 0.2)

    async def ask(self, placed: CallTurn, waiting_turns: WaitingTurns) -> None:
        """Ask; the reply has to be about this very turn."""
        question = await self._sharer.question_of(placed, self._rules, waiting_turns)
        asked = question.asked
        reply = await self._model.for_source(asked.source, asked.prompt)(asked.prompt, 0)
        said = [fact["excerpt"] for fact in json.loads(reply.text)["facts"]]
        if said != [placed.turn.messages[0].content]:
            raise SourceEndedError("wrong_part", f"{placed.turn.turn_id} got the reply {said}")


_SPENT: Final = LimitHit(name="active_facts", level="scope", count=2, limit=1)


class AskedDecider(TurnDecider):
    """Asks about the conflicts of raw turns too: a hot owner has nothing but these."""

    async def prepare(
        self,
        envelope: MatchedFacts,
        rules: EffectivePolicy,
        thresholds: Thresholds,
        *,
        is_late: bool,
        now: datetime,
        named: TurnEntities | None = None,
    ) -> PreparedTurn:
        asked = envelope.model_copy(update={"infer": True})
        return await super().prepare(asked, rules, thresholds, is_late=is_late, now=now, named=named)


class TurnLimits:
    """Turns of odd numbers are rejected once they are decided."""

    async def exceeded_limit(self, envelope: MatchedFacts, *_: object, **__: object) -> LimitHit | None:
        if envelope.source_kind == "command":
            return None
        return _SPENT if int(envelope.source_id.removeprefix("s")) % 2 else None


SESSION_SECONDS: Final = 5.0
DRAIN_SECONDS: Final = 4.0
WATERMARK_SECONDS: Final = 0.05  # the real interval of 5 ms would take most of a run

Builder = Callable[[], StageApp]


@dataclass(frozen=True, kw_only=True)
class World:
    """What all workers share."""

    loop: SimulatedLoop
    load: Workload
    broker: Broker
    postgres: Postgres
    server: ModelServer
    replies: StoredReplies

    def settings(self) -> StreamsSettings:
        return _settings(self.load.max_in_flight, self.load.max_pending, chain=self.load.is_chained)

    def now(self) -> datetime:
        return datetime.fromtimestamp(START_TIME + self.loop.time(), UTC)


def stage_builders(process: str, world: World) -> Mapping[Stage, Builder]:
    """A way to build each stage of one process."""
    load = world.load
    factory = StageFactory(world.settings(), _shared_resources(world), load.stages)
    return {stage: _over_the_broker(factory.builder(stage), process, world.broker) for stage in factory.app_stages}


def _over_the_broker(build: Builder, process: str, broker: Broker) -> Builder:
    lives = 0

    def build_again() -> StageApp:
        nonlocal lives
        lives += 1
        app = build()
        app.__dict__.update(broker=broker, check_start=None, member_name=f"{process}/{app.stage}/{lives}")
        if isinstance(app.window, KeyedWindow):
            app.window.reread = broker.reread
        for window in app.window.chain:
            window._clock = broker.loop.time
        return app

    return build_again


@cache  # reading the environment takes longer than building a stage
def _settings(max_in_flight: int, max_pending: int, *, chain: bool) -> StreamsSettings:
    return StreamsSettings(
        kafka="nowhere:1",
        partitions=PARTITIONS,
        provider="openai",  # the rules of the offline one share no calls
        chain=chain,
        session_timeout=SESSION_SECONDS,
        drain_grace=DRAIN_SECONDS,
        max_in_flight=max_in_flight,
        max_pending=max_pending,
    )


def _shared_resources(world: World) -> SharedResources:
    pool: Any = world.postgres
    projector = Projector(pool, clock=world.now)
    parts: dict[str, Any] = {
        "journal": Journal(pool),
        "stages": SimulatedStages(world),
        "projector": projector,
        "models": _NoModels(),
        "kafka_log": SimulatedLog(world.broker, MEMORY_EVENTS.name),
        "table_log": TableLogSource(pool),
        "watermark": Watermark(projector.next_offsets, WATERMARK_SECONDS),
    }
    return SharedResources(**parts)


class _NoModels:
    def build_for(self, stage: Stage) -> None:
        """Nothing is to be built."""


class SimulatedExtract:
    """`extract`: what a turn tells follows from its number, once the model has replied."""

    def __init__(self, world: World, shared: SharedExtractions, embedder: CachedEmbedder) -> None:
        self._world = world
        self._shared = shared
        self._embedder = embedder

    async def __call__(self, source: ParsedSource, _record: KafkaRecord, waiting_turns: WaitingTurns) -> ExtractedFacts:
        envelope = source.envelope
        if envelope.source_kind == "command":
            await asyncio.sleep(0.002)
            return next_envelope(ExtractedFacts, envelope)
        kind = str(envelope.metadata["kind"])
        text = fact_text(self._world.load.seed, kind, int(envelope.source_id.removeprefix("s")))
        facts = (ExtractedFact(text=text, search_text=text, excerpt=text),)
        if kind == "raw":
            await asyncio.sleep(0.002)
            return next_envelope(ExtractedFacts, envelope, facts=facts)
        try:
            assert source.placed is not None
            await self._shared.ask(source.placed, waiting_turns)
            if self._world.server.is_useless():
                raise SourceEndedError("invalid_reply", "nonsense", possibly_systemic=True)
            if "embed" not in self._world.load.stages:
                asking = RequestSource(owner=envelope.owner, source_id=envelope.source_id, stage="embed")
                await self._embedder.embed(asking, (text,))
        except PromptRefusedError as error:
            raise SourceEndedError(error.reason, error.detail) from error
        step = Step(stage="extract", milliseconds=0, model="simulated")
        return next_envelope(ExtractedFacts, envelope, facts=facts, steps=(step,))


class SimulatedStages:
    """The stages as `DecisionStages` gives them."""

    def __init__(self, world: World) -> None:
        self._world = world
        uniform = world.loop.random.uniform
        retrier = CallRetrier(RETRY, name="chat", probe=self._probe, uniform=uniform)
        self._chat = CachedChatModel(SimulatedChat(world.server, retrier), world.replies)
        embedder = SimulatedEmbedder(world.server, uniform)
        self._embedder = CachedEmbedder(embedder, world.replies, max_texts=8, max_wait=0.01, max_concurrent=2)
        self._finder = SharedCandidateFinder(cast("Any", world.postgres), limit=10)
        self._effective = EffectiveSettings(world.settings(), cast("Any", None))
        self.extract = SimulatedExtract(world, SharedExtractions(self._chat, world), self._embedder)
        self.embed = EmbedStage(self._embedder, self._effective.thresholds_for)
        self.match = MatchStage(self._finder, self._effective.thresholds_for, self._effective.rules_for)

    def build_resolver(self, wait_until_projected: WaitUntilProjected, publish: PublishCommand) -> ResolveStage:
        any_part: dict[str, Any] = {
            "finder": self._finder,
            "turns": TurnParts(
                match_stage=self.match,
                decider=AskedDecider(cast("Any", _NoEntities()), LlmDecider(self._chat, self._embedder)),
                linker=cast("Any", _NoEntities()),
                candidates=cast("Any", _NoEntities()),
                asks_about_names=False,
            ),
            "commands": CommandParts(
                handle=_done,
                promote=cast("Any", None),
                summarise=cast("Any", None),
                publish=publish,
                due_summaries=cast("Any", _nothing_due),
            ),
            "close_lapsed": _unchanged,
            "limits": TurnLimits(),
        }
        return ResolveStage(
            **any_part,
            settings=self._effective,
            embedding_model=self._embedder.model,
            wait_until_projected=wait_until_projected,
            forget_replies=self._world.replies.forget,
            clock=self._world.now,
        )

    async def forget_replies(self, stage_input: StageInput) -> None:
        """As `DecisionStages`."""
        envelope = stage_input.envelope
        await self._world.replies.forget(envelope.owner, envelope.source_id)

    async def _probe(self) -> object:
        return await self._world.server.call(None, EXTRACT_SECONDS) or "ready"


class _NoEntities:
    """Facts name nobody."""

    async def subjects_of(self, *_: object) -> tuple[()]:
        return ()

    async def find(self, *_: object) -> None:
        return None

    async def add(self, turn: MatchedFacts, *_: object) -> MatchedFacts:
        return turn

    async def events_of(self, *_: object) -> tuple[()]:
        return ()


async def _unchanged(_envelope: MatchedFacts, events: Sequence[MemoryEvent], _now: datetime) -> tuple[MemoryEvent, ...]:
    return tuple(events)


async def _done(_envelope: MatchedFacts, _rules: EffectivePolicy) -> CommandResult:
    return CommandResult(outcome="done")


async def _nothing_due(_commit: Commit, _rules: EffectivePolicy) -> None:
    """No entity is summarised."""


class SimulatedWorker:
    """A process."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.stop = asyncio.Event()
        self._world = world

    async def run(self) -> None:
        """Run until `stop` is set, as the real worker does."""
        builders = stage_builders(self.name, self._world)
        last = [build for stage, build in builders.items() if stage == "project"]
        first = [build for stage, build in builders.items() if stage != "project"]
        await run_stages(first, self.stop, last=last)
