"""What a turn would do now: the stages' own functions in this process, on the tables as they are; nothing is written.

Postgres itself is told to refuse every write of these connections.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mnemolog.projections.known import KnownFacts
from mnemolog.projections.limits import Reservations
from mnemolog.projections.matching import Matcher
from mnemolog.projections.past import PastReader
from mnemolog.projections.policies import Policies
from mnemolog.projections.pools import open_pool
from mnemolog.projections.replies import Key, Replies, StoredReply
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import End, MatchedFacts
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.turn import Turn
from mnemolog.streams.models import Models
from mnemolog.streams.records import Record
from mnemolog.streams.settings import StreamsSettings, default_rules
from mnemolog.streams.stages.commanding import Commanding
from mnemolog.streams.stages.embed import Embedding, finish_embed
from mnemolog.streams.stages.errors import TurnEndedError
from mnemolog.streams.stages.extract import Extractor, finish_extract, read_source
from mnemolog.streams.stages.freshness import Freshness
from mnemolog.streams.stages.limiting import Limiting
from mnemolog.streams.stages.match import Matching, finish_match
from mnemolog.streams.stages.reading import Received
from mnemolog.streams.stages.resolve import Resolver
from mnemolog.streams.standards import Standards
from mnemolog.streams.topics import CONVERSATION_TURNS, MEMORY_COMMANDS
from mnemolog.streams.watermark import Watermark

NAME: Final = "mnemolog-dry-run"
POOL_SIZE: Final = 2

G = TypeVar("G")
W = TypeVar("W")


class Unrecorded(Replies):
    """Keeps no reply and knows none: each dry run asks anew."""

    def __init__(self) -> None:
        """Needs no table."""

    async def get_many(self, keys: Sequence[Key]) -> Mapping[Key, tuple[StoredReply, ...]]:  # noqa: ARG002 - knows none
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
            application_name=NAME,
            statement_timeout=settings.postgres_statement_timeout,
        )
        self._models = Models(settings, Unrecorded())
        self._standards = Standards(settings, Policies(self._pool))
        self._matcher = Matcher(self._pool, limit=settings.candidates)
        self._limiting = Limiting(Reservations(self._pool), reserves=False)
        self._extract = Extractor(
            self._models.chat,
            categories=settings.categories,
            rules_for=self._standards.rules_for,
            precheck=self._limiting.precheck,
        )
        self._embed = Embedding(self._models.embedder, self._standards.thresholds_for)
        self._match = Matching(self._matcher, self._standards.thresholds_for, self._standards.rules_for)
        self._resolve = self._resolver()

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._models.close()
        await self._pool.close()

    async def decide(self, turn: Turn) -> Commit:
        """The commit that `turn` would have, published now, if nothing of its owner were under way."""
        record = _record(turn, self._clock())
        admitted = read_source(record, max_bytes=self._settings.max_turn_bytes, commands=MEMORY_COMMANDS.name)
        extracted = await worked(self._extract, finish_extract, admitted, record)
        embedded = await worked(self._embed, finish_embed, Received(extracted), record)
        matched = await worked(self._match, finish_match, Received(embedded), record)
        return await self._resolve.decide(await self._looked_again(matched))

    def _resolver(self) -> Resolver:
        """The resolver, of which only `decide` is asked: that waits for nothing, so it is told of no log."""
        known = KnownFacts(self._pool)
        return Resolver(
            matcher=self._matcher,
            matching=self._match,
            model=self._models.chat,
            embedder=self._models.embedder,
            freshness=Freshness(Watermark(_nowhere), _empty, lambda: 0),
            thresholds_for=self._standards.thresholds_for,
            configured=default_rules(self._settings),
            rules_for=self._standards.rules_for,
            limiting=self._limiting,
            commanding=Commanding(known=known, past=PastReader(self._pool, known), clock=self._clock),
            lookups=known,
            clock=self._clock,
        )

    async def _looked_again(self, matched: MatchedFacts) -> MatchedFacts:
        """With the candidates that were too much for a record, as the resolver would find them."""
        if matched.scope is None or matched.scope_version:
            return matched
        facts, version = await self._match.matched(matched, matched.scope, matched.facts)
        return matched.model_copy(update={"facts": facts, "scope_version": version})


async def _nowhere() -> Mapping[int, int]:
    return {}


async def _empty(_partition: int) -> int:
    return 0


async def worked(
    work: Callable[[G, Record], Awaitable[W]], finish: Callable[[G, End, Step | None], W], given: G, record: Record
) -> W:
    """One stage's output, also where the turn ends there."""
    try:
        return await work(given, record)
    except TurnEndedError as error:
        return finish(given, error.end, error.step)


def _record(turn: Turn, now: datetime) -> Record:
    """The turn as it would lie in the log, but at no offset of it."""
    return Record(
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
