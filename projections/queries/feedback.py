"""Which facts that feedback names as used had been shown: counted from the log's commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.fact_rows import read_query

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


async def feedback_figures(
    conn: AsyncConnection[TupleRow], ids: Mapping[str, str], parameters: Mapping[str, Any]
) -> FeedbackFigures:
    """The figures of the scopes of `ids`, for feedback from `since` on and before `until`."""
    query = read_query("feedback", "used_at_rank", scope=ids, row="c")
    used: dict[int, int] = dict(await (await conn.execute(query, parameters)).fetchall())
    return FeedbackFigures(missed=used.pop(0, 0), used_at_rank=used)
