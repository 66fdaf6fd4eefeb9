"""Every record of `conversation_turns` as it came in: nothing accepted is forgotten, whatever becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import orjson
from pydantic_core import to_json

from mnemolog.projections.db.pools import Pool, retry_while_unavailable
from mnemolog.projections.sql import queries
from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.scope import SCOPE_FIELDS, scope_columns
from mnemolog.schemas.turn import Turn

_SQL: Final = queries("journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One record: what the door said of it, where it lies, and the broker's time of it.

    `value` are its bytes; of a refused record they are kept where they are JSON.
    """

    parsed: Turn | Refusal
    topic: str
    partition: int
    offset: int
    published_at: datetime
    value: bytes | None = None


class Journal:
    """The table `turn_journal`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record(self, entries: Sequence[JournalEntry]) -> None:
        """Keep `entries`; one whose source is kept already changes nothing. Waits while Postgres is away."""
        if entries:
            await retry_while_unavailable(partial(self._record, entries), name="journal")

    async def _record(self, entries: Sequence[JournalEntry]) -> None:
        rows = [_row(entry) for entry in entries]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        async with self._pool.connection() as connection:
            await connection.execute(_SQL["record"], columns)


def _row(entry: JournalEntry) -> dict[str, Any]:
    verdict = entry.parsed
    owner, source_id = (
        (verdict.scope.owner, verdict.turn_id)
        if isinstance(verdict, Turn)
        else (verdict.scope.owner if verdict.scope else verdict.source_id, verdict.source_id)
    )
    scope = scope_columns(verdict.scope)
    return {
        "owner": owner,
        "source_id": source_id,
        **dict(zip(SCOPE_FIELDS, scope, strict=True)),
        "topic": entry.topic,
        "partition": entry.partition,
        "log_offset": entry.offset,
        "published_at": entry.published_at,
        **(_turn_columns(verdict) if isinstance(verdict, Turn) else _refusal_columns(verdict, entry.value)),
    }


def _turn_columns(turn: Turn) -> dict[str, Any]:
    return {
        "occurred_at": turn.occurred_at,
        "infer": turn.infer,
        "body": turn.model_dump_json(),
        "refusal": None,
        "detail": None,
    }


def _refusal_columns(refusal: Refusal, value: bytes | None) -> dict[str, Any]:
    return {
        "occurred_at": None,
        "infer": None,
        "body": _storable_json(value or b""),
        "refusal": refusal.reason,
        "detail": refusal.detail.replace("\x00", ""),
    }


def _storable_json(value: bytes) -> str | None:
    """The record as JSON that Postgres can hold, or None."""
    try:
        # Read and written again: huge numbers and repeated keys are gone then.
        text = to_json(orjson.loads(value)).decode()
    except (orjson.JSONDecodeError, ValueError):
        return None
    return None if "\\u0000" in text else text
