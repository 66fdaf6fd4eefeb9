"""The tables of the simulated Postgres, and what the statements that the simulation needs do to them."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import CANDIDATE_COLUMNS, CandidateFinder
from mnemolog.projections.write.fold import FoldState
from mnemolog.projections.write.row_writer import STATEMENTS
from mnemolog.projections.write.rows import Changes, CommitRow, FactRow, RejectionRow, TimedFactState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import Candidate
from mnemolog.schemas.scope import SCOPE_FIELDS, ScopeColumns
from mnemolog.schemas.vector import Vector

Rows = Sequence[tuple[Any, ...]]
Statement = Callable[["Tables", Mapping[str, Any], str], Rows]


@dataclass(frozen=True, kw_only=True)
class StatusRead:
    """When a process asked for the status of a source, and how far the log was in the tables then."""

    at: float
    process: str
    source_id: str
    is_committed: bool
    next_offsets: Mapping[int, int]


@dataclass(frozen=True, kw_only=True)
class JournalRow:
    """A row of the journal: when it was written, and of which record."""

    at: float
    partition: int
    offset: int


@dataclass
class Tables:
    """What is committed."""

    clock: Callable[[], float]
    next_offsets: dict[int, int] = field(default_factory=dict)
    moves: list[tuple[float, int, int]] = field(default_factory=list)
    state: FoldState = field(default_factory=FoldState)
    facts: list[FactRow] = field(default_factory=list)
    commits: list[CommitRow] = field(default_factory=list)
    rejections: list[RejectionRow] = field(default_factory=list)
    records: dict[tuple[int, int], bytes] = field(default_factory=dict)
    scope_versions: dict[ScopeColumns, int] = field(default_factory=dict)
    journal: dict[tuple[str, str], JournalRow] = field(default_factory=dict)
    status_reads: list[StatusRead] = field(default_factory=list)
    connections: int = 0

    def count_connection(self) -> int:
        self.connections += 1
        return self.connections

    def apply(self, changes: Changes) -> None:
        self.state.advance(changes)
        self.facts += changes.facts
        self.commits += changes.commits
        self.rejections += changes.rejections
        self.records |= {_place(row): row.record for row in changes.commits}
        self.records |= {_place(row): row.record or b"" for row in changes.rejections if row.item == 0}
        for step in changes.scope_increments:
            self.scope_versions[step.scope] = self.scope_versions.get(step.scope, 0) + step.commits

    def move(self, offsets: Mapping[int, int]) -> None:
        for partition, offset in offsets.items():
            self.next_offsets[partition] = offset
            self.moves.append((self.clock(), partition, offset))

    def places(self) -> Counter[tuple[int, int]]:
        """How often each record of the log is here, applied or rejected."""
        return Counter([*map(_place, self.commits), *(_place(row) for row in self.rejections if row.item == 0)])

    def last_commit(self, owner: str, source_id: str) -> Commit | None:
        found = (row.commit for row in reversed(self.commits))
        return next((one for one in found if (one.owner, one.source_id) == (owner, source_id)), None)


def _place(row: CommitRow | RejectionRow) -> tuple[int, int]:
    return (row.position.partition, row.position.offset)


def _next_offsets(tables: Tables, _: Mapping[str, Any], __: str) -> Rows:
    return sorted(tables.next_offsets.items())


def _applied(tables: Tables, asked: Mapping[str, Any], _: str) -> Rows:
    sources = zip(asked["owners"], asked["source_ids"], strict=True)
    known = ((source, tables.state.applied.get(source)) for source in dict.fromkeys(sources))
    return [(*source, last.number, last.retryable) for source, last in known if last]


def _known_facts(tables: Tables, asked: Mapping[str, Any], _: str) -> Rows:
    known = (tables.state.facts[one] for one in asked["fact_ids"] if one in tables.state.facts)
    return [
        (one.fact_id, *one.scope, *(getattr(one.state, name) for name in TimedFactState.__slots__)) for one in known
    ]


def _changed_records(tables: Tables, asked: Mapping[str, Any], _: str) -> Rows:
    pairs = zip(asked["offsets"], asked["records"], strict=True)
    return [(offset,) for offset, record in pairs if tables.records.get((asked["partition"], offset)) != record][:1]


def _log_page(tables: Tables, asked: Mapping[str, Any], _: str) -> Rows:
    offsets = range(asked["start"], asked["stop"])
    found = ((offset, tables.records.get((asked["partition"], offset))) for offset in offsets)
    return [row for row in found if row[1] is not None][: asked["page"]]


def _record(tables: Tables, asked: Mapping[str, Any], _: str) -> Rows:
    names = ("owner", "source_id", "partition", "log_offset")
    for owner, source_id, partition, offset in zip(*(asked[name] for name in names), strict=True):
        row = JournalRow(at=tables.clock(), partition=partition, offset=offset)
        tables.journal.setdefault((owner, source_id), row)
    return []


def _source_statuses(tables: Tables, asked: Mapping[str, Any], process: str) -> Rows:
    return [
        _source_status(tables, dict(zip(asked, row, strict=True)), process) for row in zip(*asked.values(), strict=True)
    ]


def _source_status(tables: Tables, asked: Mapping[str, Any], process: str) -> tuple[Any, ...]:
    last = tables.last_commit(asked["owner"], asked["source_id"])
    read = StatusRead(
        at=tables.clock(),
        process=process,
        source_id=asked["source_id"],
        is_committed=last is not None,
        next_offsets=dict(tables.next_offsets),
    )
    tables.status_reads.append(read)
    version = tables.scope_versions.get(_scope(asked), 0)
    if last is None:
        return (version, 0, False, None, None, None, None, (), None, None)
    origin = last.origin
    return (version, last.attempt, last.retryable, origin.topic, origin.partition, origin.offset, None, (), None, None)


def _find_candidates(tables: Tables, asked: Mapping[str, Any], _: str) -> Rows:
    names = (*SCOPE_FIELDS, "first_place", "last_place")
    turns = zip(*(asked[name] for name in names), strict=True)
    return [
        row
        for number, turn in enumerate(turns, start=1)
        for row in _candidates_of_turn(tables, number, dict(zip(names, turn, strict=True)), asked)
    ]


def _candidates_of_turn(
    tables: Tables, number: int, turn: Mapping[str, Any], asked: Mapping[str, Any]
) -> Iterator[tuple[Any, ...]]:
    scope = _scope(turn)
    head: tuple[int, int, list[str]] = (number, tables.scope_versions.get(scope, 0), [])
    known = [
        row
        for row in tables.facts
        if (fact := tables.state.facts[row.fact.fact_id]).scope == scope and fact.state.status == "active"
    ]
    for place in range(turn["first_place"], turn["last_place"] + 1):
        vector, floor = asked["vectors"][place - 1], asked["floors"][place - 1]
        near = (one for one in (_candidate(tables, row, vector) for row in known) if one.similarity >= floor)
        nearest = sorted(near, key=lambda one: (-one.similarity, one.fact_id))[: asked["limit"]]
        found = [tuple(getattr(one, name) for name in CANDIDATE_COLUMNS) for one in nearest]
        yield from ((*head, place, *columns) for columns in found or [(None,) * len(CANDIDATE_COLUMNS)])


def _candidate(tables: Tables, row: FactRow, vector: Vector) -> Candidate:
    fact, state = row.fact, tables.state.facts[row.fact.fact_id].state
    return Candidate(
        fact_id=fact.fact_id,
        similarity=_similarity(fact.vector.values, vector.values),
        text=fact.text,
        content_hash=fact.content_hash,
        confidence=state.confidence,
        true_from=state.true_from,
        said_at=fact.said_at or row.commit.occurred_at,
        excerpt=fact.excerpt,
        category=fact.category,
        authority=fact.authority,
    )


def _similarity(one: Sequence[float], other: Sequence[float]) -> float:
    product = math.fsum(left * right for left, right in zip(one, other, strict=True))
    return max(-1.0, min(1.0, product / (math.hypot(*one) * math.hypot(*other))))


def _scope(asked: Mapping[str, Any]) -> ScopeColumns:
    tenant, user, agent, app, run = (asked[name] for name in SCOPE_FIELDS)
    return (tenant, user, agent, app, run)


_DONE_BY: Final[Sequence[tuple[Mapping[str, object], Mapping[str, Statement]]]] = (
    (
        STATEMENTS,
        {
            "next_offsets": _next_offsets,
            "applied": _applied,
            "known_facts": _known_facts,
            "changed_records": _changed_records,
        },
    ),
    (queries("rebuild"), {"log_page": _log_page}),
    (queries("journal"), {"record": _record}),
    (CandidateFinder.QUERIES, {"source_statuses": _source_statuses, "find_candidates": _find_candidates}),
)
_STATEMENTS: Final = {id(asked[name]): statement for asked, named in _DONE_BY for name, statement in named.items()}


def statement_of(query: object) -> Statement:
    """What a statement does. Raises `KeyError` for one that is not simulated."""
    return _STATEMENTS[id(query)]
