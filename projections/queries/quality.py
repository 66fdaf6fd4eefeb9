"""How often memory was overwritten, how often wrongly, and what is pending: counted from the tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows, fetch_value
from mnemolog.projections.queries.costs import CostFigures, cost_figures
from mnemolog.projections.queries.errors import check_interval
from mnemolog.projections.queries.fact_rows import ANY_OR_NONE, read_query
from mnemolog.projections.queries.feedback import FeedbackFigures, feedback_figures
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.costs.prices import NO_PRICES, PriceTable
from mnemolog.schemas.scope import SCOPE_FIELDS

ALL_TENANTS: Final[Mapping[str, str]] = dict.fromkeys(SCOPE_FIELDS, ANY_OR_NONE)
"""The parameters of a question about all tenants."""

_RESULTS: Final = ("kept", "undone", "rejected", "corrected", "open", "overtaken")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteCounts:
    """The overwrites of one kind that `by` proposed, where that is a model with its prompt, and what became of them.

    `carried_out` of them ended a known fact, also if that was taken back. Each has one result: `kept`, `undone`,
    `rejected`, `corrected`, `open` (held back and not settled) or `overtaken` (held back, and settled without a
    decision on it).
    """

    by: str
    model: str | None
    prompt_version: str | None
    event: str
    overwrites: int
    carried_out: int
    kept: int
    undone: int
    rejected: int
    corrected: int
    open: int
    overtaken: int

    @property
    def results(self) -> dict[str, int]:
        """How many of them have each result."""
        return {result: getattr(self, result) for result in _RESULTS}

    @property
    def wrong(self) -> int:
        return self.undone + self.rejected + self.corrected


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
    """The figures of an interval; `unresolved` is as of now, `feedback` is about searches and contexts.

    `costs` are those of whole days.

    `overwrite_rate`: the overwrites that models proposed and that were carried out, divided by `decisions`, which are
    all decisions on statements (events of commands and of the timer are none). `wrong_overwrite_rate`: of the
    overwrites that models proposed, those undone, rejected or corrected, divided by those and the ones that were kept;
    open and overtaken ones count on neither side. Each is None where it would be divided by 0.
    """

    since: datetime
    until: datetime
    overwrites: tuple[OverwriteCounts, ...]
    decisions: int
    held: HeldOverwrites
    unresolved: int
    stale: int
    feedback: FeedbackFigures = field(default_factory=FeedbackFigures)
    costs: CostFigures = field(default_factory=CostFigures)
    overwrite_rate: float | None = field(init=False)
    wrong_overwrite_rate: float | None = field(init=False)

    def __post_init__(self) -> None:
        proposed = [one for one in self.overwrites if one.by == "model"]
        wrong, kept = sum(one.wrong for one in proposed), sum(one.kept for one in proposed)
        carried_out = sum(one.carried_out for one in proposed)
        object.__setattr__(self, "overwrite_rate", _share(carried_out, self.decisions))
        object.__setattr__(self, "wrong_overwrite_rate", _share(wrong, wrong + kept))


async def decision_quality(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter | None,
    since: datetime,
    until: datetime,
    *,
    prices: PriceTable = NO_PRICES,
) -> DecisionQuality:
    """The figures of `scope`, or of all tenants, for what was decided from `since` on and before `until`.

    Raises `QueryError` for an interval that is not valid.
    """
    check_interval(since, until)
    ids = scope.parameters if scope else ALL_TENANTS
    parameters = {**ids, "since": since, "until": until}
    overwrites, held, unresolved = await _counts(conn, ids, parameters)
    return DecisionQuality(
        since=since,
        until=until,
        overwrites=overwrites,
        decisions=await fetch_value(conn, read_query("quality", "decisions", scope=ids, row="e"), parameters),
        held=held,
        unresolved=unresolved,
        stale=await fetch_value(conn, read_query("quality", "stale", scope=ids, row="e"), parameters),
        feedback=await feedback_figures(conn, ids, parameters),
        costs=await cost_figures(conn, ids, since, until, prices),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCounts:
    """The figures of `decision_quality` that are counted without reading every event of the interval."""

    overwrites: tuple[OverwriteCounts, ...]
    held: HeldOverwrites
    unresolved: int
    feedback: FeedbackFigures


async def quality_counts(conn: AsyncConnection[TupleRow], since: datetime, until: datetime) -> QualityCounts:
    """The figures of all tenants for what was decided from `since` on and before `until`."""
    parameters = {**ALL_TENANTS, "since": since, "until": until}
    overwrites, held, unresolved = await _counts(conn, ALL_TENANTS, parameters)
    feedback = await feedback_figures(conn, ALL_TENANTS, parameters)
    return QualityCounts(overwrites=overwrites, held=held, unresolved=unresolved, feedback=feedback)


async def _counts(
    conn: AsyncConnection[TupleRow], ids: Mapping[str, str], parameters: Mapping[str, Any]
) -> tuple[tuple[OverwriteCounts, ...], HeldOverwrites, int]:
    (held,) = await fetch_rows(conn, HeldOverwrites, read_query("quality", "pending", scope=ids, row="p"), parameters)
    overwrites = await fetch_rows(
        conn, OverwriteCounts, read_query("quality", "overwrites", scope=ids, row="o"), parameters
    )
    return tuple(overwrites), held, await fetch_value(conn, read_query("quality", "unresolved", scope=ids), parameters)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
