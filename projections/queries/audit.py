"""Checks the tables for lost turns: accepted = ended + in flight, and every log record is accounted for.

Lists turns that ended without an effect, too, and counts what the tables hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import orjson
from psycopg import AsyncConnection, IsolationLevel
from psycopg.rows import TupleRow

from mnemolog.projections.database import fetch_rows
from mnemolog.projections.errors import AmbiguousTurnError, check_id_text
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.projections.sql import queries
from mnemolog.schemas.turn import Turn

OVERDUE: Final = timedelta(minutes=15)
"""A turn that has been in flight for longer is waited for in vain."""
_REBUILD_ADVICE: Final = "rebuild the projections from the log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An error or a warning of the audit, and what to do about it."""

    severity: Literal["error", "warning"]
    what: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAudit:
    """One partition of the log in the tables; complete where each offset below `next_offset` has exactly one record."""

    partition: int
    next_offset: int
    records: int
    offsets: int
    beyond: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The counts at one instant: `accepted` = the sum of `ends` + `in_flight`. `ok` means no error was found.

    `unread` are, by stage, the records of `conversation_turns` that wait for it: they are not accepted yet. It is None
    where Kafka was not asked.
    """

    accepted: int
    ends: dict[str, int]
    in_flight: int
    oldest_in_flight: timedelta | None
    partitions: tuple[PartitionAudit, ...]
    findings: tuple[Finding, ...]
    unread: dict[str, int] | None = None

    @property
    def ok(self) -> bool:
        return all(finding.severity != "error" for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accounts:
    journaled: int
    unjournaled: int
    unjournaled_overdue: int
    in_flight: int
    overdue: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """Counts of rows: turns that were received, those without an end yet, and those whose end is failed or rejected."""

    turns: int
    in_flight: int
    last_turn_at: datetime | None
    active_facts: int
    pending_facts: int
    failed_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTurn:
    """A turn whose last end is failed or rejected. A record that named no scope has its position as `turn_id`.

    `can_retry` says that the same turn may have another end if it is published again, and that the journal has it.
    """

    turn_id: str
    status: Literal["failed", "rejected"]
    reason: str | None
    detail: str
    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    attempt: int
    published_at: datetime
    decided_at: datetime
    position: str
    can_retry: bool


async def audit(conn: AsyncConnection[TupleRow], *, now: datetime, overdue: timedelta = OVERDUE) -> Audit:
    """Compare the counts of all tenants in one snapshot. Reads whole tables; `conn` is in no transaction.

    A turn in flight for longer than `overdue` is an error.
    """
    before = conn.isolation_level
    await conn.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    try:
        async with conn.transaction():
            sql = queries("audit")
            (accounts,) = await fetch_rows(conn, _Accounts, sql["accounts"], {"overdue_before": now - overdue})
            ends: dict[str, int] = dict(await (await conn.execute(sql["ends"])).fetchall())
            partitions = tuple(await fetch_rows(conn, PartitionAudit, sql["partitions"], {}))
            (links,) = await fetch_rows(conn, dict, sql["broken_links"], {})
    finally:
        await conn.set_isolation_level(before)
    return Audit(
        accepted=accounts.journaled + accounts.unjournaled,
        ends=ends,
        in_flight=accounts.in_flight,
        oldest_in_flight=now - accounts.oldest if accounts.oldest else None,
        partitions=partitions,
        findings=(
            *_turn_findings(accounts, ends, overdue),
            *_log_findings(partitions),
            *(
                Finding(severity="error", what=f"{links[link]} {what}", advice=_REBUILD_ADVICE)
                for link, what in _BROKEN_LINKS.items()
                if links[link]
            ),
        ),
    )


@dataclass(frozen=True, slots=True)
class WorkerProblem:
    """A part of a worker that fails at the moment, such as the calls of a model, and what to do."""

    part: str
    problem: str

    @property
    def hinders(self) -> bool:
        """Whether turns wait for it. What goes on in another way has this in brackets: "chat m (fallback)"."""
        return not self.part.endswith(")")

    def __str__(self) -> str:
        return f"{self.part}: {self.problem}"


async def worker_problems(conn: AsyncConnection[TupleRow]) -> list[WorkerProblem]:
    """What fails in any worker, of the last 15 seconds."""
    return await fetch_rows(conn, WorkerProblem, queries("journal")["worker_problems"], {})


async def table_counts(conn: AsyncConnection[TupleRow]) -> TableCounts:
    (found,) = await fetch_rows(conn, TableCounts, queries("audit")["table_counts"], {})
    return found


async def failed_turns(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    *,
    limit: int,
    turn_id: str | None = None,
    reason: str | None = None,
    since: datetime | None = None,
) -> list[FailedTurn]:
    """The newest `limit` turns of a scope that ended failed or rejected and were not dropped, the newest first.

    Of this id, of one `reason` and with an end at or after `since`, where these are given.
    """
    query = read_query("audit", "failed_turns", scope=scope.parameters, row="c")
    given = {**scope.parameters, "limit": limit, "turn_id": turn_id, "reason": reason, "since": since}
    return await fetch_rows(conn, FailedTurn, query, given)


async def drop_turns(conn: AsyncConnection[TupleRow], turns: Sequence[FailedTurn], *, actor: str, why: str) -> None:
    """Note who gave these turns up, and why: they are listed no more, until another attempt of theirs fails."""
    columns = ("tenant", "user_id", "agent_id", "turn_id", "attempt")
    named = {column: [getattr(turn, column) or "" for turn in turns] for column in columns}
    await conn.execute(queries("audit")["drop_turns"], {**named, "actor": actor, "why": why})


async def unended_turns(
    conn: AsyncConnection[TupleRow], tenant: str, user_id: str | None = None, *, before: datetime, limit: int
) -> list[Turn]:
    """The oldest `limit` valid turns of a tenant that were published before a time and have no end."""
    named = {"tenant": tenant, "user_id": user_id, "before": before, "limit": limit}
    found = await (await conn.execute(queries("audit")["unended_turns"], named)).fetchall()
    return [Turn.model_validate_json(orjson.dumps(body)) for (body,) in found]


async def received_turn(
    conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None
) -> Turn | None:
    """A turn as it was first received; None where the journal has none, or what came was no valid turn.

    Raises `AmbiguousTurnError` where several owners of the tenant have one.
    """
    check_id_text(turn_id=turn_id)
    named: dict[str, Any] = {"tenant": tenant, "turn_id": turn_id, "user_id": user_id}
    found = await (await conn.execute(queries("audit")["received_turn"], named)).fetchall()
    if len(found) > 1:
        raise AmbiguousTurnError(turn_id, [owner for owner, _ in found])
    return Turn.model_validate_json(orjson.dumps(found[0][1])) if found else None


def _turn_findings(accounts: _Accounts, ends: dict[str, int], overdue: timedelta) -> Iterator[Finding]:
    accepted, ended = accounts.journaled + accounts.unjournaled, sum(ends.values())
    if accepted != ended + accounts.in_flight:
        what = f"{accepted} turns were accepted, but {ended} ended and {accounts.in_flight} are in flight"
        yield Finding(severity="error", what=what, advice=f"a turn has two ends or none: {_REBUILD_ADVICE}")
    if accounts.overdue:
        what = f"{accounts.overdue} turns have been in flight for more than {overdue}"
        advice = "check that every stage runs, its lag, and the dead letters; the turns go on when the stage does"
        yield Finding(severity="error", what=what, advice=advice)
    if accounts.unjournaled_overdue:
        what = f"{accounts.unjournaled_overdue} turns ended more than {overdue} ago and are not in the journal"
        advice = "check that the journal stage runs; turns older than the topic's retention stay without their text"
        yield Finding(severity="error", what=what, advice=advice)
    elif accounts.unjournaled:
        what = f"{accounts.unjournaled} turns ended before the journal had them"
        yield Finding(severity="warning", what=what, advice="the journal is behind: look again in a while")


def _log_findings(partitions: tuple[PartitionAudit, ...]) -> Iterator[Finding]:
    for one in partitions:
        place = f"partition {one.partition} of the log"
        below = one.offsets - one.beyond
        if below < one.next_offset:
            missing = one.next_offset - below
            what = f"{place}: {missing} of {one.next_offset} offsets have neither a commit nor a rejection"
            yield Finding(severity="error", what=what, advice=f"the tables have lost rows: {_REBUILD_ADVICE} in Kafka")
        if one.records > one.offsets:
            what = f"{place}: {one.records - one.offsets} offsets have both a commit and a rejection"
            yield Finding(severity="error", what=what, advice=_REBUILD_ADVICE)
        if one.beyond:
            what = f"{place}: {one.beyond} records lie at or beyond the next offset {one.next_offset}"
            yield Finding(
                severity="error", what=what, advice=f"someone moved projection_offsets back: {_REBUILD_ADVICE}"
            )


_BROKEN_LINKS: Final = {
    "events_without_commit": "events belong to no commit",
    "commits_without_events": "commits that brought facts have no event",
    "facts_without_event": "facts were made by no event",
    "events_without_fact": "events are about a fact that is not there",
    "pending_astray": "facts wait for a confirmation without a row that says so, or the other way round",
    "former_states_astray": "former states belong to no fact or no event",
    "undone_astray": "events were undone by no event",
}
