"""What entities are to each other: the relations of a scope, with what holds of them now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import check_zones
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.entities.relations import ONE_AT_A_TIME, Strength, name_of_predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTimes:
    """What was known at one time to be true at another; None is now, and `true_at` is `believed_at` unless given."""

    believed_at: datetime | None = None
    true_at: datetime | None = None

    @property
    def parameters(self) -> dict[str, datetime | None]:
        """The times as parameters of a query."""
        return {"believed_at": self.believed_at, "true_at": self.true_at}

    def had_happened(self, at: datetime) -> bool:
        """Whether what was decided at a time was known."""
        return self.believed_at is None or at <= self.believed_at


NOW: Final = AskedTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRelation:
    """A relation of exactly one scope: the object is the subject's `predicate`.

    It holds (`is_active`) while its `evidence` does; `since` is when the first of it began to be true, `until` when one
    that holds no longer ended. A mirror was stated in the other direction. Contested are several that hold of a
    predicate that has one object at a time. `endings` are facts that say that it is over.
    """

    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    subject_id: UUID
    subject: str
    predicate: str
    object_id: UUID
    object: str
    is_active: bool
    is_mirror: bool
    is_contested: bool
    strength: Strength
    since: datetime | None
    until: datetime | None
    recorded_at: datetime
    evidence: list[UUID]
    endings: list[UUID]

    def __repr__(self) -> str:
        state = "" if self.is_active else ", is_active=False"
        return f"EntityRelation({self.subject!r} {self.predicate} {self.object!r}, strength={self.strength!r}{state})"


async def relations(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    *,
    subject_ids: Sequence[UUID] | None = None,
    predicate: str | None = None,
    all_versions: bool = False,
    mirrors: bool = False,
    as_of: AskedTimes = NOW,
) -> list[EntityRelation]:
    """The relations of a scope that hold, or all, the oldest first; with `mirrors` each in both directions.

    `subject_ids` and `predicate`, a word for one, say which. Entities are those of now, after all merges and splits;
    what was taken back since is left out. Raises `QueryError` for a time without a zone.
    """
    check_zones(**as_of.parameters)
    query = read_query("relations", "listed_relations", scope=scope.parameters, row="s")
    asked = {
        "single_valued": list(ONE_AT_A_TIME),
        "all_versions": all_versions,
        "mirrors": mirrors,
        "subject_ids": None if subject_ids is None else list(subject_ids),
        "predicate": None if predicate is None else name_of_predicate(predicate),
    }
    return await fetch_rows(conn, EntityRelation, query, {**scope.parameters, **asked, **as_of.parameters})
