"""Why a turn's statements became no facts: read off its commit, and the texts of the facts that stood in their way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries import texts, turn_commit
from mnemolog.projections.traces import Texts, statement_of, subject_of, weighed_facts
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import (
    FactConfirmed,
    FactPending,
    FactSkipped,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
    new_fact,
)
from mnemolog.schemas.provenance import Dropped, DropReason

Reason = (
    DropReason
    | Literal[
        "duplicate",
        "known_already",
        "confirmed_pending",
        "rejected_pending",
        "pending_confirmation",
        "nothing_to_remember",
        "limit",
        "rejected",
        "failed",
        "not_decided_yet",
    ]
)

_OMITTED: Final[dict[DropReason, str]] = {
    "excerpt_not_found": "left out: the excerpt that should prove it does not occur in the turn",
    "near_duplicate": "left out: another statement of the same turn says nearly the same",
    "recalled": "left out: it only echoes memory that was in the prompt, which is no evidence",
    "below_importance": "left out: its importance is below what the policy keeps",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A statement that became no fact that is believed; without `text` it is about the turn as a whole.

    `because` says it in words. `fact_id` and `known` are the fact that stood in its way, `similarity` how near that
    was; for `pending_confirmation` the fact that waits.
    """

    text: str | None
    reason: Reason
    because: str
    stage: str | None = None
    similarity: float | None = None
    fact_id: UUID | None = None
    known: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """What a turn did not bring. `status` and `facts` tell how it ended and how many facts it did bring."""

    turn_id: str
    status: str
    facts: int
    missing: tuple[Missing, ...]


async def why_not(conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None) -> WhyNot:
    """Every statement of a turn that became no fact, and why. Raises as `queries.turn_status` does."""
    commit = await turn_commit(conn, tenant, turn_id, user_id)
    if commit is None:
        waiting = Missing(text=None, reason="not_decided_yet", because="the turn has no end yet: its stages work on it")
        return WhyNot(turn_id=turn_id, status="pending", facts=0, missing=(waiting,))
    return told(commit, await texts(conn, commit.scope, weighed_facts(commit)))


def told(commit: Commit, known: Texts) -> WhyNot:
    """Read it off a commit. Pure."""
    missing = tuple(_missing(commit, known))
    brought = sum(new_fact(event) is not None and not isinstance(event, FactPending) for event in commit.events)
    if commit.source_kind == "turn" and not (missing or brought):
        missing = (Missing(text=None, reason="nothing_to_remember", because="the turn states nothing to remember"),)
    return WhyNot(turn_id=commit.source_id, status=commit.outcome, facts=brought, missing=missing)


def _missing(commit: Commit, known: Texts) -> Iterator[Missing]:
    if commit.outcome in ("rejected", "failed"):
        yield _ended(commit)
    for step in commit.provenance.steps:
        for dropped in step.dropped:
            yield _omitted(step.stage, dropped)
    for event in commit.events:
        if (one := _decided(event, known)) is not None:
            yield one


def _ended(commit: Commit) -> Missing:
    """The turn as a whole came to nothing."""
    detail = ": ".join(part for part in (commit.reason, commit.detail) if part)
    if commit.limit is not None:
        because = f"refused for a limit, {commit.limit}: raise it and publish the turn again under its id"
        return Missing(text=None, reason="limit", because=because)
    if commit.outcome == "rejected":
        return Missing(text=None, reason="rejected", because=f"refused: {detail}")
    return Missing(text=None, reason="failed", because=f"failed: {detail}")


def _omitted(stage: str, dropped: Dropped) -> Missing:
    because = _OMITTED[dropped.reason]
    if dropped.similarity is not None:
        because += f" (similarity {dropped.similarity:.3f})"
    return Missing(
        text=dropped.text, reason=dropped.reason, because=because, stage=stage, similarity=dropped.similarity
    )


def _decided(event: MemoryEvent, known: Texts) -> Missing | None:
    """A statement that only met a known fact, or waits; None for an event that brought a fact, or had no words."""
    said, fact_id = statement_of(event), subject_of(event)
    if said is None or fact_id is None:
        return None
    quoted = f'"{known.get(fact_id, fact_id)}"'
    reason: Reason
    match event:
        case FactSkipped():
            reason, because = "duplicate", f"skipped as a duplicate of {quoted}"
        case FactConfirmed():
            reason, because = "known_already", f"confirms what is known already: {quoted}"
        case PendingConfirmed():
            reason, because = "confirmed_pending", f"confirms what waited for a confirmation: {quoted}"
        case PendingRejected():
            reason, because = "rejected_pending", f"speaks against what waited for a confirmation: {quoted}"
        case FactPending():
            reason, because = "pending_confirmation", f"waits for a confirmation, held by the guard {event.guard}"
        case _:
            return None
    near = {one.fact_id: one.similarity for one in event.decision.candidates}
    return Missing(
        text=said.text,
        reason=reason,
        because=f"{because} ({event.decision.reason})",
        stage="resolve",
        similarity=near.get(fact_id),
        fact_id=fact_id,
        known=known.get(fact_id),
    )
