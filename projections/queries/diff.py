"""What changed between two times: in what was believed, or in what was true as it is known now."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, get_args
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import fetch_rows, fetch_value
from mnemolog.projections.errors import QueryError, check_interval
from mnemolog.projections.queries.facts import facts_as_of
from mnemolog.projections.queries.results import Axis, Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.schemas.facts import OPEN_STATUSES, FactStatus

ChangeKind = Literal[
    "added",
    "replaced",
    "contradicted",
    "expired",
    "retracted",
    "merged",
    "extended",
    "related",
    "confirmed",
    "corrected",
    "pending",
    "rejected",
    "resolved",
    "undone",
    "reopened",
    "end_moved",
]
CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = get_args(ChangeKind)

_RESOLUTION: Final = timedelta(microseconds=1)
_KINDS: Final[dict[str, ChangeKind]] = {kind: kind for kind in CHANGE_KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFact:
    """A fact that a change ended or touched."""

    fact_id: UUID
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change: `fact_id` and `text` are the new fact, or the one it is about; `old` are those it ended or touched.

    `at` is when it was decided, or on the axis of truth when it became true. `event` is the event behind it. `stale`
    says that a target was no longer as the decision saw it and was left as it was, `undone` that the decision has
    been undone since. An undo is a change for each fact that holds again, where none does for each that was taken
    back; `status` is what that fact is from then on, and None where a change is no undo.
    """

    at: datetime
    event: str
    fact_id: UUID | None
    text: str | None
    old: tuple[ChangedFact, ...]
    reason: str
    decided_by: str
    stale: bool = False
    undone: bool = False
    status: FactStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The changes of an interval by kind, each in the order of time.

    `reopened` are facts whose end was taken back because what had ended them, in `old`, is disbelieved, `end_moved`
    those that end at another time now.

    A confirmed or resolved decision is of the kind of what it did. `gained` and `lost` compare the ends of the
    interval: what is believed just before `until` to be so then, and was not just before `since`; and the other way
    round. So they agree with the changes, which are those from `since` on and before `until`.
    """

    since: datetime
    until: datetime
    axis: Axis
    added: tuple[Change, ...] = ()
    replaced: tuple[Change, ...] = ()
    contradicted: tuple[Change, ...] = ()
    expired: tuple[Change, ...] = ()
    retracted: tuple[Change, ...] = ()
    merged: tuple[Change, ...] = ()
    extended: tuple[Change, ...] = ()
    related: tuple[Change, ...] = ()
    confirmed: tuple[Change, ...] = ()
    corrected: tuple[Change, ...] = ()
    pending: tuple[Change, ...] = ()
    rejected: tuple[Change, ...] = ()
    resolved: tuple[Change, ...] = ()
    undone: tuple[Change, ...] = ()
    reopened: tuple[Change, ...] = ()
    end_moved: tuple[Change, ...] = ()
    skipped: int = 0
    gained: tuple[Fact, ...] = ()
    lost: tuple[Fact, ...] = ()

    @property
    def in_order(self) -> list[tuple[ChangeKind, Change]]:
        changes = [(kind, change) for kind in CHANGE_KINDS for change in getattr(self, kind)]
        return sorted(changes, key=lambda change: change[1].at)

    def __repr__(self) -> str:
        """The interval, and the changes in the order of time, a line for each."""
        lines = [f"Diff ({self.axis}) from {self.since.isoformat()} to {self.until.isoformat()}:"]
        for kind, one in self.in_order:
            lines.append(f"  {kind}: {one.text or ', '.join(old.text for old in one.old)}")
        return "\n".join(lines) if len(lines) > 1 else f"{lines[0]} no change"


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurningPoint:
    fact_id: UUID
    text: str
    true_from: datetime
    ends_at: datetime | None
    told_by: str | None
    action: str | None
    begun_by: str | None
    begun_because: str | None
    decided_by: str | None
    reason: str | None
    newer_id: UUID | None
    newer_text: str | None


_Changes = list[tuple[ChangeKind, Change]]


async def diff(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, since: datetime, until: datetime, *, axis: Axis = "believed"
) -> Diff:
    """What changed from `since` on and before `until`.

    On the axis `believed` these are decisions by the time at which they were made; on the axis `true` what became
    true or ceased to be so, as it is known now, by the time at which it did. Raises `QueryError` where that is no
    interval or no axis.
    """
    check_interval(since, until)
    if axis not in get_args(Axis):
        raise QueryError(f"axis is {axis!r}: choose one of {', '.join(get_args(Axis))}")
    parameters = {**scope.parameters, "since": since, "until": until}
    start, end = _just_before(since), _just_before(until)
    if axis == "true":
        turning = await fetch_rows(
            conn, _TurningPoint, read_query("history", "turning_points", scope=scope.parameters), parameters
        )
        changes, skipped = _truth_changes(turning, since, until), 0
    else:
        events = await fetch_rows(
            conn, dict, read_query("history", "changes", scope=scope.parameters, row="e"), parameters
        )
        changes = [change for row in events for change in _belief_changes(row)]
        skipped = await fetch_value(
            conn, read_query("history", "count_skipped", scope=scope.parameters, row="e"), parameters
        )
    return Diff(
        since=since,
        until=until,
        axis=axis,
        **{kind: tuple(change for of, change in changes if of == kind) for kind in CHANGE_KINDS},
        skipped=skipped,
        gained=tuple(await facts_as_of(conn, scope, believed_at=end, true_at=end, unknown_at=start)),
        lost=tuple(await facts_as_of(conn, scope, believed_at=start, true_at=start, unknown_at=end)),
    )


def _just_before(moment: datetime) -> datetime:
    """A microsecond earlier, which is what Postgres and Python tell times apart by."""
    earliest = datetime.min.replace(tzinfo=moment.tzinfo)
    return moment - min(_RESOLUTION, moment - earliest)


def _kind(event: str, action: str | None) -> ChangeKind:
    """The past tense in the name of an event; of the action of a decision that was confirmed or resolved."""
    if event not in ("pending_confirmed", "conflict_resolved") and (kind := _KINDS.get(event.partition("_")[2])):
        return kind
    return _KINDS.get(f"{(action or '').removesuffix('e')}ed", "resolved")


def _belief_changes(row: dict[str, Any]) -> Iterator[tuple[ChangeKind, Change]]:
    """The change of one event, or those of an undo."""
    kind, reverted, moved = _kind(row["event"], row.pop("action")), row.pop("reverted"), row.pop("moved")
    for one in moved:
        about = {"fact_id": UUID(one["fact_id"]), "text": one["text"], "old": _changed([one["ender"]])}
        is_open = one["ended_at"] is None
        yield "reopened" if is_open else "end_moved", Change(**row | about | {"status": "active" if is_open else None})
    if row["event"] == "fact_skipped":
        return
    if not reverted:
        yield kind, Change(**row | {"old": _changed(row["old"])})
        return
    held = [one for one in reverted if one["status"] in OPEN_STATUSES]
    ended = [one for one in reverted if one["status"] not in OPEN_STATUSES]
    for one in held or ended:
        about = {"fact_id": UUID(one["fact_id"]), "text": one["text"], "status": one["status"]}
        yield kind, Change(**row | about | {"old": _changed(ended) if held else ()})


def _changed(facts: Iterable[dict[str, Any]]) -> tuple[ChangedFact, ...]:
    return tuple(ChangedFact(fact_id=UUID(one["fact_id"]), text=one["text"]) for one in facts)


def _truth_changes(rows: Sequence[_TurningPoint], since: datetime, until: datetime) -> _Changes:
    """The ends of facts with what replaced them, and the starts of facts without a predecessor, in order of time."""
    changes: _Changes = []
    newer_ids = set()
    for row in rows:
        if row.ends_at is None or not since <= row.ends_at < until:
            continue
        newer_ids.add(row.newer_id)
        # Without an event of its own the end is that of late news, replaced by the newer fact, or of a term.
        kind: ChangeKind = "replaced" if row.newer_id else "expired"
        if row.told_by is not None:
            kind = _kind(row.told_by, row.action)
            if kind == "replaced" and row.newer_id is None:  # by a fact that is no longer believed
                kind = "retracted"
        ended = Change(
            at=row.ends_at,
            event=row.told_by or ("fact_added" if row.newer_id else "fact_expired"),
            fact_id=row.newer_id,
            text=row.newer_text,
            old=(ChangedFact(fact_id=row.fact_id, text=row.text),),
            reason=row.reason or "",
            decided_by=row.decided_by or "",
        )
        changes.append((kind, ended))
    for row in rows:
        if since <= row.true_from < until and row.fact_id not in newer_ids:
            begun = Change(
                at=row.true_from,
                event="fact_added",
                fact_id=row.fact_id,
                text=row.text,
                old=(),
                reason=row.begun_because or "",
                decided_by=row.begun_by or "",
            )
            changes.append(("added", begun))
    return sorted(changes, key=lambda change: change[1].at)
