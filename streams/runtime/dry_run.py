"""Decides what a turn would do now: the stages' own functions in this process, on the tables as they are, read-only.

Postgres itself refuses every write of these connections.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mnemolog.projections.db.pools import open_pool
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.stored import ReplyKey, StoredReply
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.runtime.decision_stages import DecisionStages
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.settings import StreamsSettings

APPLICATION_NAME: Final = "mnemolog-dry-run"
POOL_SIZE: Final = 2


class NullReplyStore:
    """Stores no reply: each dry run asks anew."""

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:  # noqa: ARG002 - knows none
        return {}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        return list(replies)


class DryRun:
    """Decides turns without committing them. `settings` name the tables and the models.

    Building it may raise `ProviderConfigurationError`; `open` connects.
    """

    def __init__(self, settings: StreamsSettings, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._pool = open_pool(
            _read_only(settings.postgres or ""),
            min_size=0,
            max_size=POOL_SIZE,
            application_name=APPLICATION_NAME,
            statement_timeout=settings.postgres_statement_timeout,
        )
        self._models = StageModels(settings, NullReplyStore())
        self._models.build_for("resolve")
        self._stages = DecisionStages(self._pool, self._models, settings, clock=clock, reserves=False)

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._models.close()
        await self._pool.close()

    async def decide(self, turn: Turn) -> Commit:
        """The commit that `turn` would have, published now, if nothing of its owner were under way."""
        record = KafkaRecord(
            topic=CONVERSATION_TURNS.name,
            partition=0,
            offset=0,  # means nothing
            key=turn.scope.key,
            value=turn.to_bytes(),
            timestamp=self._clock().timestamp(),
        )
        return await self._stages.decide(record)


def _read_only(url: str) -> str:
    given = str(conninfo_to_dict(url).get("options") or "")
    return make_conninfo(url, options=f"{given} -c default_transaction_read_only=on".strip())
