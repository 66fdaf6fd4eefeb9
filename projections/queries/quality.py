"""How often memory was overwritten, how often wrongly, and what is pending: counted from the tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows, fetch_value
from mnemolog.projections.queries.errors import check_interval
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ScopeFilter
from mnemolog.schemas.scope import SCOPE_FIELDS

ALL_TENANTS: Final[Mapping[str, str]] = dict.fromkeys(SCOPE_FIELDS, ANY_OR_NONE)
"""The parameters of a question about all tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteCounts:
    """The overwrites of one kind by a model with a prompt, and how many were undone, rejected or corrected."""

    model: str | None
    prompt_version: str | None
    event: str
    overwrites: int
    undone: int
    rejected: int
    corrected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOverwrites:
    """Overwrites held back for a confirmation; `overtaken` ones were deleted, undone or ended by something newer.

    `resolution_rate` is the share that a confirmation or a rejection has settled, None where nothing was held. `open`
    and `oldest_seconds` are of all that wait now, `median_seconds` of those settled is from being held to being
    settled.
    """

    held: int
    confirmed: int
    rejected: int
    overtaken: int
    open: int
    oldest_seconds: float
    median_seconds: float
    resolution_rate: float | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "resolution_rate", _share(self.confirmed + self.rejected, self.held))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionQuality:
    """The figures of an interval; `unresolved` is as of now.

    `wrong_overwrite_rate`: of all overwrites those later undone, rejected or corrected; None where there were none.
    """

    since: datetime
    until: datetime
    overwrites: tuple[OverwriteCounts, ...]
    held: HeldOverwrites
    unresolved: int
    stale: int
    wrong_overwrite_rate: float | None = field(init=False)

    def __post_init__(self) -> None:
        wrong = sum(one.undone + one.rejected + one.corrected for one in self.overwrites)
        object.__setattr__(self, "wrong_overwrite_rate", _share(wrong, sum(one.overwrites for one in self.overwrites)))


async def decision_quality(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter | None, since: datetime, until: datetime
) -> DecisionQuality:
    """The figures of `scope`, or of all tenants, for what was decided from `since` on and before `until`.

    Raises `QueryError` for an interval that is not valid.
    """
    check_interval(since, until)
    parameters = {**(scope.parameters if scope else ALL_TENANTS), "since": since, "until": until}
    (held,) = await fetch_rows(conn, HeldOverwrites, read_query("quality", "pending", row="p"), parameters)
    overwrites = await fetch_rows(conn, OverwriteCounts, read_query("quality", "overwrites", row="o"), parameters)
    return DecisionQuality(
        since=since,
        until=until,
        overwrites=tuple(overwrites),
        held=held,
        unresolved=await fetch_value(conn, read_query("quality", "unresolved"), parameters),
        stale=await fetch_value(conn, read_query("quality", "stale", row="e"), parameters),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
