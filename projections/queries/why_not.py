"""Why a turn's statements became no facts: read off its commit, and the texts of the facts that stood in their way."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.facts import fact_texts, last_commit
from mnemolog.projections.queries.trace import FactTexts, fact_ids_of_commit
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import (
    FactConfirmed,
    FactPending,
    FactSkipped,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.provenance import DroppedStatement, DropReason

MissingReason = (
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

_DROP_SENTENCES: Final[dict[DropReason, str]] = {
    "excerpt_not_found": "left out: the excerpt that should prove it does not occur in the turn",
    "invalid_fact": "left out: the model's reply did not state it in a valid form, re-prompts included",
    "near_duplicate": "left out: another statement of the same turn says nearly the same",
    "recalled": "left out: it only echoes memory that was in the prompt, which is no evidence",
    "below_importance": "left out: its importance is below what the policy keeps",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingStatement:
    """A statement that became no fact that is believed; without `text` it is about the turn as a whole.

    `because` says it in words. `fact_id` and `known` are the fact that stood in its way, `similarity` how near that
    was; for `pending_confirmation` the fact that waits.
    """

    text: str | None
    reason: MissingReason
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
    missing: tuple[MissingStatement, ...]


async def why_not(conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None) -> WhyNot:
    """Every statement of a turn that became no fact, and why. Raises as `queries.turn_status` does."""
    commit = await last_commit(conn, tenant, turn_id, user_id)
    if commit is None:
        waiting = MissingStatement(
            text=None, reason="not_decided_yet", because="the turn has no end yet: its stages work on it"
        )
        return WhyNot(turn_id=turn_id, status="pending", facts=0, missing=(waiting,))
    return missing_statements(commit, await fact_texts(conn, commit.scope, fact_ids_of_commit(commit)))


def missing_statements(commit: Commit, known: FactTexts) -> WhyNot:
    """Read it off a commit. Pure."""
    missing = tuple(_missing_parts(commit, known))
    brought = sum(event.new_fact is not None and not isinstance(event, FactPending) for event in commit.events)
    if commit.source_kind == "turn" and not (missing or brought):
        missing = (
            MissingStatement(text=None, reason="nothing_to_remember", because="the turn states nothing to remember"),
        )
    return WhyNot(turn_id=commit.source_id, status=commit.outcome, facts=brought, missing=missing)


def _missing_parts(commit: Commit, known: FactTexts) -> Iterator[MissingStatement]:
    if commit.outcome in ("rejected", "failed"):
        yield _missing_turn(commit)
    for step in commit.provenance.steps:
        for dropped in step.dropped:
            yield _dropped_statement(step.stage, dropped)
    for event in commit.events:
        if (one := _decided_statement(event, known)) is not None:
            yield one


def _missing_turn(commit: Commit) -> MissingStatement:
    """The turn as a whole came to nothing."""
    detail = ": ".join(part for part in (commit.reason, commit.detail) if part)
    if commit.limit is not None:
        because = f"refused for a limit, {commit.limit}: raise it and publish the turn again under its id"
        return MissingStatement(text=None, reason="limit", because=because)
    if commit.outcome == "rejected":
        return MissingStatement(text=None, reason="rejected", because=f"refused: {detail}")
    return MissingStatement(text=None, reason="failed", because=f"failed: {detail}")


def _dropped_statement(stage: str, dropped: DroppedStatement) -> MissingStatement:
    because = _DROP_SENTENCES[dropped.reason]
    if dropped.similarity is not None:
        because += f" (similarity {dropped.similarity:.3f})"
    return MissingStatement(
        text=dropped.text, reason=dropped.reason, because=because, stage=stage, similarity=dropped.similarity
    )


def _decided_statement(event: MemoryEvent, known: FactTexts) -> MissingStatement | None:
    """A statement that only met a known fact, or waits; None for an event that brought a fact, or had no words."""
    said, fact_id = event.words, event.subject_id
    if said is None or fact_id is None:
        return None
    quoted = f'"{known.get(fact_id, fact_id)}"'
    reason: MissingReason
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
    return MissingStatement(
        text=said.text,
        reason=reason,
        because=f"{because} ({event.decision.reason})",
        stage="resolve",
        similarity=near.get(fact_id),
        fact_id=fact_id,
        known=known.get(fact_id),
    )
