"""What a turn would do now: the stages' own functions in this process, on the tables as they are; nothing is written.

Postgres itself is told to refuse every write of these connections.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mnemolog.projections.db.pools import open_pool
from mnemolog.projections.stores.candidates import CandidateFinder
from mnemolog.projections.stores.event_history import EventHistoryStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.limits import LimitReservations
from mnemolog.projections.stores.policies import PolicyStore
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import End, MatchedFacts
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.replies import ReplyKey, StoredReply
from mnemolog.schemas.turn import Turn
from mnemolog.streams.commands.handler import CommandHandler
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.resolution.limits import LimitEnforcer
from mnemolog.streams.runtime.effective_settings import EffectiveSettings
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from mnemolog.streams.runtime.watermark import Watermark
from mnemolog.streams.settings import StreamsSettings, default_rules
from mnemolog.streams.stages.embed import EmbedStage, finish_embed
from mnemolog.streams.stages.errors import SourceEndedError
from mnemolog.streams.stages.extract import ExtractStage, finish_extract, parse_source
from mnemolog.streams.stages.match import MatchStage, finish_match
from mnemolog.streams.stages.received import ReceivedEnvelope
from mnemolog.streams.stages.resolve import ResolveStage

APPLICATION_NAME: Final = "mnemolog-dry-run"
POOL_SIZE: Final = 2

G = TypeVar("G")
W = TypeVar("W")


class NullReplyStore(ReplyStore):
    """Keeps no reply and knows none: each dry run asks anew."""

    def __init__(self) -> None:
        """Needs no table."""

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:  # noqa: ARG002 - knows none
        return {}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        return list(replies)


class DryRun:
    """Decides turns without committing them. `settings` name the tables and the models.

    Building it may raise `ProviderConfigurationError`; `open` connects.
    """

    def __init__(self, settings: StreamsSettings, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._settings = settings
        self._clock = clock
        self._pool = open_pool(
            _read_only(settings.postgres or ""),
            min_size=0,
            max_size=POOL_SIZE,
            application_name=APPLICATION_NAME,
            statement_timeout=settings.postgres_statement_timeout,
        )
        self._models = StageModels(settings, NullReplyStore())
        self._effective_settings = EffectiveSettings(settings, PolicyStore(self._pool))
        self._matcher = CandidateFinder(self._pool, limit=settings.candidates)
        self._limits = LimitEnforcer(LimitReservations(self._pool), reserves=False)
        self._extract = ExtractStage(
            self._models.chat,
            categories=settings.categories,
            rules_for=self._effective_settings.rules_for,
            precheck=self._limits.precheck,
        )
        self._embed = EmbedStage(self._models.embedder, self._effective_settings.thresholds_for)
        self._match = MatchStage(
            self._matcher, self._effective_settings.thresholds_for, self._effective_settings.rules_for
        )
        self._resolve = self._resolver()

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._models.close()
        await self._pool.close()

    async def decide(self, turn: Turn) -> Commit:
        """The commit that `turn` would have, published now, if nothing of its owner were under way."""
        record = _record(turn, self._clock())
        admitted = parse_source(record, max_bytes=self._settings.max_turn_bytes)
        extracted = await run_stage(self._extract, finish_extract, admitted, record)
        embedded = await run_stage(self._embed, finish_embed, ReceivedEnvelope(extracted), record)
        matched = await run_stage(self._match, finish_match, ReceivedEnvelope(embedded), record)
        return await self._resolve.decide(await self._with_candidates(matched))

    def _resolver(self) -> ResolveStage:
        """The resolver, of which only `decide` is asked: that waits for nothing, so it is told of no log."""
        known = FactStore(self._pool)
        return ResolveStage(
            matcher=self._matcher,
            match_stage=self._match,
            model=self._models.chat,
            embedder=self._models.embedder,
            read_your_writes=ReadYourWrites(Watermark(_no_offsets), _zero_offset, lambda: 0),
            thresholds_for=self._effective_settings.thresholds_for,
            default_rules=default_rules(self._settings),
            rules_for=self._effective_settings.rules_for,
            limits=self._limits,
            handle_command=CommandHandler(
                known=known, event_history=EventHistoryStore(self._pool, known), clock=self._clock
            ),
            lookups=known,
            clock=self._clock,
        )

    async def _with_candidates(self, matched: MatchedFacts) -> MatchedFacts:
        """With the candidates that were too much for a record, as the resolver would find them."""
        if matched.scope is None or matched.scope_version:
            return matched
        facts, version = await self._match.find_candidates(matched, matched.scope, matched.facts)
        return matched.model_copy(update={"facts": facts, "scope_version": version})


async def _no_offsets() -> Mapping[int, int]:
    return {}


async def _zero_offset(_partition: int) -> int:
    return 0


async def run_stage(
    work: Callable[[G, KafkaRecord], Awaitable[W]],
    finish: Callable[[G, End, Step | None], W],
    stage_input: G,
    record: KafkaRecord,
) -> W:
    """One stage's output, also where the turn ends there."""
    try:
        return await work(stage_input, record)
    except SourceEndedError as error:
        return finish(stage_input, error.end, error.step)


def _record(turn: Turn, now: datetime) -> KafkaRecord:
    """The turn as it would lie in the log, but at no offset of it."""
    return KafkaRecord(
        topic=CONVERSATION_TURNS.name,
        partition=0,
        offset=0,
        key=turn.scope.key,
        value=turn.to_bytes(),
        timestamp=now.timestamp(),
    )


def _read_only(url: str) -> str:
    given = str(conninfo_to_dict(url).get("options") or "")
    return make_conninfo(url, options=f"{given} -c default_transaction_read_only=on".strip())
