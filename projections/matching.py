"""What is known near a new fact, in exactly its scope; and how far a scope has come."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from projections.pools import Pool, persistently
from projections.sql import queries
from projections.state import scope_columns
from schemas.facts import Candidate
from schemas.scope import DIMENSIONS, Scope
from schemas.vector import Vector

Query = tuple[Vector, str]
"""A new fact's vector and content hash."""

_SQL: Final = queries("matching")
_CANDIDATE: Final = ("fact_id", "similarity", "text", "content_hash", "key", "value", "confidence", "true_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Per query its candidates, the nearest first, and the version of the scope they were found in."""

    scope_version: int
    candidates: tuple[tuple[Candidate, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a source has its commit, and how many commits with events its scope has seen."""

    committed: bool
    scope_version: int


class Matcher:
    """Looks up to `limit` candidates for each new fact. Every call waits while Postgres is away."""

    def __init__(self, pool: Pool, *, limit: int = 10) -> None:
        self._pool = pool
        self._limit = limit

    async def match(self, scope: Scope, wanted: Sequence[Query], *, floor: float, at: datetime) -> Matches:
        """The nearest active facts of exactly `scope` for each of `wanted`, at least one, in one round trip.

        A candidate has a cosine similarity of `floor` or more to a vector of the same model, or equal words,
        which count as 1. Facts that had ended by `at` are none.
        """
        parameters = {
            **_columns(scope),
            "vectors": [vector for vector, _ in wanted],
            "models": [vector.model for vector, _ in wanted],
            "content_hashes": [content_hash for _, content_hash in wanted],
            "floor": floor,
            "at": at,
            "limit": self._limit,
        }
        rows = await persistently(partial(self._rows, "match", parameters), name="match")
        candidates: list[list[Candidate]] = [[] for _ in wanted]
        for _, place, *fields in rows:
            if fields[0] is not None:
                candidates[place - 1].append(Candidate(**dict(zip(_CANDIDATE, fields, strict=True))))
        return Matches(scope_version=rows[0][0], candidates=tuple(map(tuple, candidates)))

    async def standing(self, owner: str, source_id: str, scope: Scope | None) -> Standing:
        """How a source and its scope stand, in one round trip."""
        parameters = {"owner": owner, "source_id": source_id, **_columns(scope)}
        ((committed, version),) = await persistently(partial(self._rows, "standing", parameters), name="standing")
        return Standing(committed=committed, scope_version=version)

    async def _rows(self, name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_SQL[name], parameters, binary=True)
            return await cursor.fetchall()


def _columns(scope: Scope | None) -> dict[str, str]:
    return dict(zip(DIMENSIONS, scope_columns(scope), strict=True))
