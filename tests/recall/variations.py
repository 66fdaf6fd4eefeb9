"""The searches that are compared, and what each finds for the questions of the dialogues."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mnemolog.projections.db.pools import Pool
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.queries.search import search
from mnemolog.schemas.vector import Vector
from tests.recall.measures import DEEPEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One way to search, by its name in the table; without the vector only words count."""

    name: str
    by_vector: bool = True


BASELINE: Final = Variation(name="lexical", by_vector=False)
DEFAULT: Final = Variation(name="hybrid, RRF (k = 10)")
VARIATIONS: Final = (BASELINE, DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question with its vector, whom it is asked about, and when."""

    text: str
    vector: Vector
    user_id: str
    at: datetime


async def sources_found(pool: Pool, questions: Sequence[AskedQuestion], variation: Variation) -> list[list[str]]:
    """The turns that brought the hits of each question, best first."""
    async with pool.connection() as connection:
        found = [
            await search(
                connection,
                ScopeFilter(tenant="default", user_id=asked.user_id),
                asked.text,
                asked.vector if variation.by_vector else None,
                limit=DEEPEST,
                at=asked.at,
            )
            for asked in questions
        ]
    return [[hit.fact.source_id for hit in hits] for hits in found]
