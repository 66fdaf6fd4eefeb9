"""Decides what a turn would do now: the stages' own functions in this process, on the tables as they are, read-only.

Postgres itself refuses every write of these connections.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mnemolog.projections.database import open_pool
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.stored import ReplyKey, StoredReply
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.settings import StreamsSettings

REPORT_SECONDS: Final = 3.0
"""A call to a model usually takes less; who waits for longer is told what for."""


class NullReplyStore:
    """Stores no reply: each dry run asks anew."""

    async def get_many(self, keys: Sequence[ReplyKey]) -> Mapping[ReplyKey, tuple[StoredReply, ...]]:  # noqa: ARG002 - knows none
        return {}

    async def put_many(self, replies: Sequence[StoredReply]) -> list[StoredReply]:
        return list(replies)

    async def paid(self, owner: str, source_id: str, stage: str, position: str) -> Sequence[StoredReply]:  # noqa: ARG002 - knows none
        return ()


class DryRun:
    """Decides turns without committing them. `settings` name the tables and the models.

    Building it may raise `ProviderConfigurationError`; `open` connects.
    """

    def __init__(self, settings: StreamsSettings, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._calls_server = "openai" in (settings.provider, settings.embedding_provider)
        self._server = settings.base_url or "OpenAI"
        self._problems: dict[str, str] = {}
        url = settings.postgres or ""
        options = f"{conninfo_to_dict(url).get('options') or ''} -c default_transaction_read_only=on".strip()
        self._pool = open_pool(
            make_conninfo(url, options=options),
            min_size=0,
            max_size=2,
            application_name="mnemolog-dry-run",
            statement_timeout=settings.postgres_statement_timeout,
        )
        replies = NullReplyStore()
        self._models = StageModels(settings, replies, self._problems)
        self._models.build_for("resolve")
        stores = Stores.of_pool(self._pool, settings, replies=replies)
        self._stages = DecisionStages(stores, self._models, settings, clock=clock, reserves=False)

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._stages.close()
        await self._models.close()
        await self._pool.close()

    @property
    def waits_for(self) -> str:
        """What a dry run that takes long waits for, and why."""
        if self._problems:
            return f"the model's server ({self._server}): {'; '.join(self._problems.values())}"
        return f"a reply of the model's server ({self._server})" if self._calls_server else "Postgres"

    async def decide(self, turn: Turn, on_wait: Callable[[str], None] | None = None) -> Commit:
        """The commit that `turn` would have, published now, if nothing of its owner were under way.

        `on_wait` is told what it waits for, after `REPORT_SECONDS` and again where that has changed.
        """
        record = KafkaRecord(
            topic=CONVERSATION_TURNS.name,
            partition=0,
            offset=0,  # means nothing
            key=turn.scope.key,
            value=turn.to_bytes(),
            timestamp=self._clock().timestamp(),
        )

        async def report() -> None:
            said = ""
            while on_wait is not None:
                await asyncio.sleep(REPORT_SECONDS)
                if (words := self.waits_for) != said:
                    on_wait(words)
                    said = words

        reporting = asyncio.create_task(report())
        try:
            return await self._stages.decide(record)
        finally:
            reporting.cancel()
            with suppress(asyncio.CancelledError):
                await reporting
