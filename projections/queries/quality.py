"""How often memory was overwritten, how often wrongly, what is pending, and what models cost.

Counted from the tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import fetch_rows, fetch_value
from mnemolog.projections.errors import check_interval
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ScopeFilter, read_query
from mnemolog.schemas.costs import NO_COST, NO_PRICES, Cost, ModelUsage, PriceTable
from mnemolog.schemas.scope import SCOPE_FIELDS

RECALL_AT: Final = (1, 5, 10, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackFigures:
    """The facts that feedback names as used, by the rank from 1 at which a search or a context showed them.

    `missed` were used and not shown. `recall_at` is, for 1, 5, 10 and 20, the share of all used facts that was shown
    within the first so many; None where no fact was used.
    """

    used_at_rank: Mapping[int, int] = field(default_factory=dict)
    missed: int = 0
    used: int = field(init=False)
    recall_at: dict[int, float | None] = field(init=False)

    def __post_init__(self) -> None:
        used = self.missed + sum(self.used_at_rank.values())
        found = {k: sum(number for rank, number in self.used_at_rank.items() if rank <= k) for k in RECALL_AT}
        object.__setattr__(self, "used", used)
        object.__setattr__(self, "recall_at", {k: number / used if used else None for k, number in found.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """The tokens that a model took, and the money for them; `cached_tokens` are a part of `input_tokens`."""

    model: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """Of the turns and commands published on the days from `first` to `last` (UTC), both included.

    `turns` are those that have ended, each once; `per_thousand_turns` is None where there is none, or where a price is
    unknown.
    """

    first: date | None = None
    last: date | None = None
    turns: int = 0
    total: Cost = NO_COST
    models: tuple[ModelCost, ...] = ()
    per_thousand_turns: Cost | None = field(init=False)

    def __post_init__(self) -> None:
        is_known = self.turns and self.total.amount is not None
        object.__setattr__(self, "per_thousand_turns", self.total.share(1000, self.turns) if is_known else None)


async def cost_figures(
    conn: AsyncConnection[TupleRow], ids: Mapping[str, str], since: datetime, until: datetime, prices: PriceTable
) -> CostFigures:
    """The figures of the scopes of `ids` for the days that an interval touches."""
    first = since.astimezone(UTC).date()
    last = max(first, (until.astimezone(UTC) - timedelta(microseconds=1)).date())
    asked = {**ids, "first": first, "last": last}
    is_whole_tenant = all(value == ANY_OR_NONE for name, value in ids.items() if name != "tenant")
    rows = {"rows": "of_tenants" if is_whole_tenant else "of_scopes"}
    usages = await fetch_rows(conn, ModelUsage, read_query("quality", "usage", scope=ids, row="u", parts=rows), asked)
    by_model: dict[str, list[ModelUsage]] = {}
    for usage in usages:
        by_model.setdefault(usage.model, []).append(usage)
    ((turns,),) = await (await conn.execute(read_query("quality", "turns", scope=ids, row="c"), asked)).fetchall()
    return CostFigures(
        first=first,
        last=last,
        turns=turns,
        total=prices.cost(usages),
        models=tuple(
            ModelCost(
                model=model,
                input_tokens=sum(usage.input_tokens for usage in of_model),
                cached_tokens=sum(usage.cached_tokens for usage in of_model),
                output_tokens=sum(usage.output_tokens for usage in of_model),
                cost=prices.cost(of_model),
            )
            for model, of_model in by_model.items()
        ),
    )


ALL_TENANTS: Final[Mapping[str, str]] = dict.fromkeys(SCOPE_FIELDS, ANY_OR_NONE)
"""The parameters of a question about all tenants."""


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
        return {
            result: getattr(self, result) for result in ("kept", "undone", "rejected", "corrected", "open", "overtaken")
        }

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

    `overwrite_rate`: the overwrites that models and rules proposed and that were carried out, divided by `decisions`,
    which are all decisions of models and rules. `wrong_overwrite_rate`: of the overwrites that they proposed, those
    undone, rejected or corrected, divided by those and the ones that were kept; open and overtaken ones count on
    neither side. Each is None where it would be divided by 0.
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
        proposed = [one for one in self.overwrites if one.by in ("model", "rule")]
        wrong, kept = sum(one.wrong for one in proposed), sum(one.kept for one in proposed)
        carried_out = sum(one.carried_out for one in proposed)
        object.__setattr__(self, "overwrite_rate", _share(carried_out, self.decisions))
        object.__setattr__(self, "wrong_overwrite_rate", _share(wrong, wrong + kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCounts:
    """The figures of `decision_quality` that are counted without reading every event of the interval."""

    overwrites: tuple[OverwriteCounts, ...]
    held: HeldOverwrites
    unresolved: int
    feedback: FeedbackFigures


async def quality_counts(
    conn: AsyncConnection[TupleRow], since: datetime, until: datetime, ids: Mapping[str, str] = ALL_TENANTS
) -> QualityCounts:
    """The figures of the scopes of `ids` for what was decided from `since` on and before `until`."""
    parameters = {**ids, "since": since, "until": until}
    (held,) = await fetch_rows(conn, HeldOverwrites, read_query("quality", "pending", scope=ids, row="p"), parameters)
    overwrites = read_query("quality", "overwrites", scope=ids, row="o")
    ranks = await conn.execute(read_query("quality", "used_at_rank", scope=ids, row="c"), parameters)
    used: dict[int, int] = dict(await ranks.fetchall())
    return QualityCounts(
        overwrites=tuple(await fetch_rows(conn, OverwriteCounts, overwrites, parameters)),
        held=held,
        unresolved=await fetch_value(conn, read_query("quality", "unresolved", scope=ids), parameters),
        feedback=FeedbackFigures(missed=used.pop(0, 0), used_at_rank=used),
    )


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
    counts = await quality_counts(conn, since, until, ids)
    return DecisionQuality(
        since=since,
        until=until,
        overwrites=counts.overwrites,
        decisions=await fetch_value(conn, read_query("quality", "decisions", scope=ids, row="e"), parameters),
        held=counts.held,
        unresolved=counts.unresolved,
        stale=await fetch_value(conn, read_query("quality", "stale", scope=ids, row="e"), parameters),
        feedback=counts.feedback,
        costs=await cost_figures(conn, ids, since, until, prices),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
