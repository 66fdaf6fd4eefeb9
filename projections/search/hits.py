"""What a search found: hits with the reasons for their places."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self
from uuid import UUID

from mnemolog.projections.queries.results import Fact

SearchMode = Literal["hybrid", "lexical"]
LeftOutReason = Literal["below_threshold", "outside_period", "same_matter", "over_top_k", "other_state"]
"""`other_state` are facts with a word of the question that are in no state that was asked for, or did not hold then."""
SHOWN: Final = 5
"""How many ids are told of what was left out for a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Why a hit has its rank: `total` = (the sum of the parts) times `prior`.

    A rank is the place by one signal alone; it is there with the fusion `rrf` and with `ranks`. `similarity` is the
    cosine, -1..1; `text_score`, 0..1, is the share of the question's words that the fact has, where a word weighs the
    more, the fewer facts have it; `neighbours_part` is for words that were said just before or after it alone. A part
    is its weight / (k + rank) with the fusion `rrf`, and its share of all weights times a number of 0 to 1 with
    `weighted`. `prior` is what importance and confidence make of the sum, about 1.
    """

    mode: SearchMode
    total: float
    vector_rank: int | None
    similarity: float | None
    vector_part: float
    text_rank: int | None
    text_score: float | None
    text_part: float
    names_part: float = 0.0
    recency_part: float = 0.0
    times_part: float = 0.0
    neighbours_part: float = 0.0
    prior: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A fact that was found, with its score.

    `neighbours` are the facts that were asked for with it: what was said just before and after it, in that order.
    `messages` are those of the turn that it came from, with `explain`; None for a fact of a command.
    """

    fact: Fact
    score: Score
    neighbours: tuple[Fact, ...] = ()
    messages: Sequence[Mapping[str, Any]] | None = None

    def __repr__(self) -> str:
        near = "" if self.score.similarity is None else f", similarity={self.score.similarity:.2f}"
        return f"Hit({self.fact.text!r}, status={self.fact.status!r}{near}, fact_id='{self.fact.fact_id}')"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutHits:
    """How many facts were left out for a reason, and the ids of the best five of them."""

    facts: int
    first: tuple[UUID, ...]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        return cls(facts=found["facts"], first=tuple(map(UUID, found["first"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Hits, best first. `below_threshold` counts the facts that only their low similarity kept out.

    `left_out` has, where it was asked for, by reason what else is no hit.
    """

    hits: tuple[Hit, ...] = ()
    below_threshold: int = 0
    left_out: Mapping[LeftOutReason, LeftOutHits] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]
