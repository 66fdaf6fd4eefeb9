"""What a search found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mnemolog.projections.queries.results import counted
from mnemolog.projections.search.hits import SHOWN, Hit, LeftOutHits, LeftOutReason, SearchMode
from mnemolog.projections.search.turn_hits import LeftOutTurns, TurnHit


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, best first; it can be used as a sequence of them. `mode` is lexical where the query could not be embedded.

    `notice` says why, and where there is no hit, why there is none and where facts of the same user or agent are.
    `threshold` is the cosine that a fact without a word in common needed, `below_threshold` how many facts it
    kept out. With `explain`, the result is `explained` and `left_out` says by reason what else is no hit.
    Where turns were included, `turns` are the best of them, best first, and `left_out_turns` says by reason how many
    others with a word of the query are none.
    """

    hits: tuple[Hit, ...]
    mode: SearchMode
    notice: str | None = None
    threshold: float = 0.0
    below_threshold: int = 0
    left_out: Mapping[LeftOutReason, LeftOutHits] = field(default_factory=dict)
    turns: tuple[TurnHit, ...] = ()
    left_out_turns: Mapping[LeftOutTurns, int] = field(default_factory=dict)
    explained: bool = False

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def __repr__(self) -> str:
        """Each hit in a line; the id of a fact is what `explain` and `delete` take."""
        found = [
            f"  {number}. {hit.fact.text}{_mark(hit)} ({hit.fact.fact_id})" for number, hit in enumerate(self, start=1)
        ]
        notice = [f"  {self.notice}"] if self.notice else []
        turns = [f"  {counted(len(self.turns), 'turn')}:"] if self.turns else []
        turns += [f"  {number}. {one.excerpt} ({one.turn_id})" for number, one in enumerate(self.turns, start=1)]
        return "\n".join([f"SearchResult, {self.mode}, {counted(len(found), 'hit')}:", *found, *turns, *notice])


def with_cut(left_out: Mapping[LeftOutReason, LeftOutHits], cut: Sequence[Hit]) -> dict[LeftOutReason, LeftOutHits]:
    """What is left out with the hits that are cut off behind `top_k`: these are the best of those beyond it."""
    before = left_out.get("over_top_k", LeftOutHits(facts=0, first=()))
    if not cut:
        return {**left_out}
    first = (*(hit.fact.fact_id for hit in cut), *before.first)[:SHOWN]
    return {**left_out, "over_top_k": LeftOutHits(facts=before.facts + len(cut), first=first)}


def _mark(hit: Hit) -> str:
    return "" if hit.fact.status == "active" else f" [{hit.fact.status}]"
