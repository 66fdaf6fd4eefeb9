"""Which facts that were shown were used: counted from the feedback that the log has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.fact_rows import read_query

RECALL_AT: Final = (1, 5, 10, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankUse:
    """How many facts were shown at a rank, from 1, and how many of them were used."""

    rank: int
    shown: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackFigures:
    """What feedback says of searches and contexts: the use of each rank, and `missed`, which were used and not shown.

    `recall_at` is, for 1, 5, 10 and 20, the share of all used facts that was shown within the first so many; None
    where no fact was used.
    """

    ranks: tuple[RankUse, ...] = ()
    missed: int = 0
    shown: int = field(init=False)
    used: int = field(init=False)
    recall_at: dict[int, float | None] = field(init=False)

    def __post_init__(self) -> None:
        used = self.missed + sum(one.used for one in self.ranks)
        object.__setattr__(self, "shown", sum(one.shown for one in self.ranks))
        object.__setattr__(self, "used", used)
        found = {k: sum(one.used for one in self.ranks if one.rank <= k) for k in RECALL_AT}
        object.__setattr__(self, "recall_at", {k: number / used if used else None for k, number in found.items()})


async def feedback_figures(
    conn: AsyncConnection[TupleRow], ids: Mapping[str, str], parameters: Mapping[str, Any]
) -> FeedbackFigures:
    """The figures of the scopes of `ids`, for feedback from `since` on and before `until`."""
    rows = await fetch_rows(conn, RankUse, read_query("feedback", "ranks", scope=ids, row="c"), parameters)
    return FeedbackFigures(
        ranks=tuple(row for row in rows if row.rank), missed=sum(row.used for row in rows if not row.rank)
    )
