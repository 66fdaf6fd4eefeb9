"""Writes every record of `conversation_turns` to the table `turn_journal` before anything else happens to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
import psycopg
from pydantic_core import to_json

from mnemolog.projections.db.faults import fault_of
from mnemolog.projections.db.store import Store
from mnemolog.projections.logs import get_logger
from mnemolog.projections.sql import queries
from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.scope import SCOPE_FIELDS, scope_columns
from mnemolog.schemas.turn import Turn

_SQL: Final = queries("journal")
_WITHOUT_BODY: Final = {"body": None, "detail": "Postgres cannot hold the body of this record"}
log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One record: the turn or the refusal in it, its position in the topic, and the broker's time of it.

    `value` are its bytes; of a refused record they are kept where they are JSON.
    """

    parsed: Turn | Refusal
    topic: str
    partition: int
    offset: int
    published_at: datetime
    value: bytes | None = None


class Journal(Store):
    """The table `turn_journal`."""

    async def record(self, entries: Sequence[JournalEntry]) -> None:
        """Keep `entries`; one whose source is kept already changes nothing.

        One whose body the table cannot hold is kept without it, and the others of its batch as they are.
        """
        if not entries:
            return
        try:
            await self._insert([_row(entry) for entry in entries])
        except psycopg.Error as error:
            if fault_of(error) != "record":
                raise
            if len(entries) == 1:
                log.warning("body_not_storable", topic=entries[0].topic, offset=entries[0].offset)
                await self._insert([_row(entries[0]) | _WITHOUT_BODY])
                return
            middle = len(entries) // 2
            await self.record(entries[:middle])
            await self.record(entries[middle:])

    async def _insert(self, rows: Sequence[dict[str, Any]]) -> None:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        await self._run("journal", lambda connection: connection.execute(_SQL["record"], columns))


def _row(entry: JournalEntry) -> dict[str, Any]:
    parsed = entry.parsed
    source_id = parsed.turn_id if isinstance(parsed, Turn) else parsed.source_id
    return {
        "owner": parsed.scope.owner if parsed.scope else source_id,
        "source_id": source_id,
        **dict(zip(SCOPE_FIELDS, scope_columns(parsed.scope), strict=True)),
        "topic": entry.topic,
        "partition": entry.partition,
        "log_offset": entry.offset,
        "published_at": entry.published_at,
        **(_turn_columns(parsed) if isinstance(parsed, Turn) else _refusal_columns(parsed, entry.value)),
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
