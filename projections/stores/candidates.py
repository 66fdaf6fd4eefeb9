"""Finds candidates of new facts: similar known facts of the scope, or of the same key; and the status of a source."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, ClassVar, Final, LiteralString

from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed

from mnemolog.projections.db.pools import Pool
from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.policies import with_policies
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.policy import NO_POLICIES, StoredPolicies
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope, scope_columns
from mnemolog.schemas.stored import MAX_CANDIDATES_OF_KEY, CandidateQuery, EntityFactsQuery

CANDIDATE_COLUMNS: Final = (
    *("fact_id", "similarity", "text", "content_hash", "key", "value", "confidence", "true_from", "true_to"),
    *("valid_until", "category", "subject", "excerpt", "status", "authority", "unresolved", "single_valued"),
    *("action_hint", "event_time", "said_at", "challenged_by"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRequest:
    """What is asked for a turn: the candidates of exactly `scope` for each of `queries`, at least one.

    Facts that had ended by `at` are left out; `speaker` is who is said to be the user now.
    """

    scope: Scope
    queries: Sequence[CandidateQuery]
    at: datetime
    speaker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLists:
    """Per wanted fact its candidates, the nearest first, and the version of the scope they were found in.

    `user_names` are the names of the user that the scope knows, the speaker's among them where they are the first.
    """

    scope_version: int
    candidates: tuple[tuple[Candidate, ...], ...]
    user_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """The status of a source and of its scope.

    `attempt` counts the commits of the source; the last one was made of the record at `origin`, and may be followed by
    another where it is `retryable`. `scope_version` counts the commits of the scope with events or a speaker,
    `latest_end` is the latest time at which one of its facts ceased to be true, `policies` are those that hold for it.
    """

    scope_version: int
    attempt: int = 0
    retryable: bool = False
    origin: Origin | None = None
    latest_end: datetime | None = None
    policies: StoredPolicies = NO_POLICIES

    @property
    def committed(self) -> bool:
        return self.attempt > 0


def comparing_query(
    file: str, name: str, *, status: LiteralString, unresolved: LiteralString, said_at: LiteralString
) -> SQL:
    """A query that compares statements with facts, of which these are the columns that depend on what is asked."""
    parts = queries("candidates")
    candidate = parts["candidate"].format(status=SQL(status), unresolved=SQL(unresolved), said_at=SQL(said_at))
    query = queries(file)[name].format(
        candidate=candidate, **{name: parts[name] for name in ("asked", "distances", "is_near", "similarity")}
    )
    return SQL(query.as_string())


SourceQuery = tuple[str, str, Scope | None]
"""A source of which the status is asked: owner, source id and scope."""


class CandidateFinder(Store):
    """Looks up to `limit` nearest candidates for each new fact, and some of its key.

    `user_words` are subjects that say "the user", in small letters.
    """

    QUERIES: ClassVar[Mapping[str, SQL | Composed]] = {
        **queries("candidates"),
        "source_statuses": with_policies(queries("candidates")["source_statuses"]),
        "find_candidates": comparing_query(
            "candidates",
            "find_candidates",
            status="f.status",
            unresolved="f.unresolved",
            said_at="greatest(f.said_at, f.last_confirmed_at)",
        ),
        "facts_of_entities": comparing_query(
            "candidates",
            "facts_of_entities",
            status="f.status",
            unresolved="f.unresolved",
            said_at="greatest(f.said_at, f.last_confirmed_at)",
        ),
    }

    def __init__(self, pool: Pool, *, limit: int = 10, user_words: Collection[str] = ()) -> None:
        super().__init__(pool)
        self._options = {"user_words": list(user_words), "limit": limit, "limit_of_key": MAX_CANDIDATES_OF_KEY}

    async def find(self, request: CandidateRequest) -> CandidateLists:
        """The candidates of each query of a turn, in one round trip.

        A candidate is an active or pending fact with a cosine similarity of `min_similarity` or more to a vector of
        the same model, or with equal words, which count as 1, or with the wanted key. One of the latter whose vector
        cannot be compared has similarity 0.
        """
        return (await self.find_many([request]))[0]

    async def find_many(self, requests: Sequence[CandidateRequest]) -> list[CandidateLists]:
        """The candidates of each turn, in one round trip for all."""
        parameters = {**_request_columns(requests), **self._options}
        rows = await self._rows("find_candidates", parameters, is_shared=len(requests) > 1)
        by_turn = (list(rows_of_turn) for _, rows_of_turn in groupby(rows, itemgetter(0)))
        return [_candidate_lists(rows_of_turn) for rows_of_turn in by_turn]

    async def facts_of_entities(
        self, scope: Scope, requests: Sequence[EntityFactsQuery], *, at: datetime
    ) -> list[tuple[Candidate, ...]]:
        """Per request the newest active facts of its key in exactly `scope` that are about its entity, bounded.

        In one round trip. Facts that had ended by `at` are left out.
        """
        known = [fact_id for request in requests for fact_id in request.known]
        parameters = {
            **scope.columns,
            "entity_ids": [request.entity_id for request in requests],
            "keys": [request.key for request in requests],
            "vectors": [request.vector for request in requests],
            "models": [request.vector.model for request in requests],
            "known": known,
            "known_places": [place for place, request in enumerate(requests, 1) for _ in request.known],
            "at": at,
            "limit_of_key": MAX_CANDIDATES_OF_KEY,
        }
        found: list[list[Candidate]] = [[] for _ in requests]
        for place, *fields in await self._rows("facts_of_entities", parameters):
            told = dict(zip(CANDIDATE_COLUMNS, fields, strict=True))
            found[place - 1].append(Candidate(**told, subject_relation="same"))
        return [tuple(candidates) for candidates in found]

    async def source_status(self, owner: str, source_id: str, scope: Scope | None) -> SourceStatus:
        """The status of a source and of its scope, in one round trip."""
        return (await self.source_statuses([(owner, source_id, scope)]))[0]

    async def source_statuses(self, sources: Sequence[SourceQuery]) -> list[SourceStatus]:
        """The status of each source and of its scope, in one round trip for all."""
        owners, source_ids, scopes = zip(*sources, strict=True)
        columns = zip(SCOPE_FIELDS, zip(*map(scope_columns, scopes), strict=True), strict=True)
        parameters = {"owner": owners, "source_id": source_ids, **dict(columns)}
        lists = {name: list(values) for name, values in parameters.items()}
        return [_source_status(row) for row in await self._rows("source_statuses", lists)]


def _request_columns(requests: Sequence[CandidateRequest]) -> dict[str, Any]:
    """The turns, each with the places of its queries among those of all."""
    last_places = list(accumulate(len(request.queries) for request in requests))
    columns = zip(SCOPE_FIELDS, zip(*(scope_columns(request.scope) for request in requests), strict=True), strict=True)
    return {
        **query_parameters([query for request in requests for query in request.queries]),
        **{name: list(values) for name, values in columns},
        "at": [request.at for request in requests],
        "speaker": [request.speaker for request in requests],
        "first_place": [1, *(place + 1 for place in last_places[:-1])],
        "last_place": last_places,
    }


def _candidate_lists(rows: Sequence[TupleRow]) -> CandidateLists:
    """What the rows of one turn say; a query without candidates has one row."""
    found: dict[int, list[Candidate]] = {}
    for _, _, _, place, *fields in rows:
        candidates = found.setdefault(place, [])
        if fields[0] is not None:
            candidates.append(Candidate(**dict(zip(CANDIDATE_COLUMNS, fields, strict=True))))
    _, version, user_names, *_ = rows[0]
    return CandidateLists(
        scope_version=version, candidates=tuple(map(tuple, found.values())), user_names=tuple(user_names)
    )


def _source_status(row: TupleRow) -> SourceStatus:
    version, attempt, retryable, topic, partition, offset, last_end, *policies = row
    return SourceStatus(
        scope_version=version,
        attempt=attempt,
        retryable=retryable,
        origin=Origin(topic=topic, partition=partition, offset=offset) if attempt else None,
        latest_end=last_end,
        policies=StoredPolicies.from_json(*policies),
    )


def query_parameters(queries: Sequence[CandidateQuery]) -> dict[str, Any]:
    """The parameters of the table `asked`, which has a row for each query."""
    return {
        "vectors": [item.vector for item in queries],
        "models": [item.vector.model for item in queries],
        "content_hashes": [item.content_hash for item in queries],
        "keys": [item.key for item in queries],
        "subjects": [item.subject for item in queries],
        "floors": [item.min_similarity for item in queries],
    }
