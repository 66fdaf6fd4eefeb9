"""Turns that a search found, as people said them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

TurnStatus = Literal["facts", "no_facts", "failed", "rejected"]
"""How a turn ended. One that is on its way is never found."""
SHOWN_STATUSES: Final[tuple[TurnStatus, ...]] = ("facts", "no_facts", "failed")
LeftOutTurns = Literal["not_shown", "outside_period", "over_top_k"]
"""`not_shown` are turns that would be hits, but have no end yet or another one, or something of them was taken back
since: behind the last hit nobody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnScore:
    """Why a turn has its place: `total` is the sum of the parts, which are those of a fact without a vector.

    `text_score`, 0..1, is the share of the question's words that people said in the turn, where a word weighs the
    more, the fewer turns have it; `neighbours_part` is for words that were said just before or after it alone.
    """

    total: float
    text_score: float
    text_part: float
    names_part: float
    recency_part: float
    times_part: float
    neighbours_part: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit:
    """A turn that was found. A dimension of the scope that is not set is None.

    `excerpt` is what was said around the words of the question, in the message that has most of them, and `speaker` who
    said it, where a name was given; a message of up to 400 characters is whole. `fact_ids` are the facts that came from
    the turn, none where nothing was extracted. `status` is how it ended: `facts`, `no_facts`, `failed` or `rejected`.
    """

    turn_id: str
    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    speaker: str | None
    excerpt: str
    occurred_at: datetime
    status: TurnStatus
    fact_ids: tuple[UUID, ...]
    metadata: Mapping[str, Any]
    score: TurnScore

    def __repr__(self) -> str:
        return f"TurnHit({self.excerpt!r}, speaker={self.speaker!r}, turn_id={self.turn_id!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFindings:
    """Turns, best first. `left_out` has, where it was asked for, how many other turns with a word of it are no hits."""

    turns: tuple[TurnHit, ...] = ()
    left_out: Mapping[LeftOutTurns, int] = field(default_factory=dict)
