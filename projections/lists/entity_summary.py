"""The summary of an entity that is shown: the newest one whose facts are all believed."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.results import brief_repr
from mnemolog.projections.sql import queries
from mnemolog.schemas.entities.model import SummaryLanguage


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySummary:
    """A text that a model wrote from the facts `fact_ids`, or that the offline rules made of them (`model`).

    `version` counts the summaries of the entity, `left_out` the facts for which there was no room, and `changed` the
    facts that have ended or are new since: with any the summary is stale. It is no evidence of anything.
    """

    event_id: UUID
    source_id: str
    version: int
    summary: str
    language: SummaryLanguage
    model: str
    prompt_version: str
    fact_ids: list[UUID]
    left_out: int
    input_tokens: int
    output_tokens: int
    written_at: datetime
    changed: int

    @property
    def is_stale(self) -> bool:
        return self.changed > 0

    def __repr__(self) -> str:
        return brief_repr(self, "summary", "version", "changed", "model")


async def summary_of(conn: AsyncConnection[TupleRow], entity_id: UUID) -> EntitySummary | None:
    """The summary of an entity; None where none was written, or none is valid any more."""
    found = await fetch_rows(conn, EntitySummary, queries("summaries")["summary_of_entity"], {"entity_id": entity_id})
    return found[0] if found else None
