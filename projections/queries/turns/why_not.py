"""Why statements of a turn were not stored as facts, read from its commit."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.results import Status
from mnemolog.projections.queries.turns.trace import FactTexts, TracedCall, fact_ids_of_commit, shared_calls
from mnemolog.projections.queries.turns.traced_names import TracedName, entity_names, traced_names
from mnemolog.projections.queries.turns.write_result import end_detail, fact_texts, last_commit
from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactPending, MemoryEvent
from mnemolog.schemas.provenance import DropReason, OmissionReason

_SENTENCE: Final = re.compile(r"(?:[^.!?\u3002\uff01\uff1f\n]|[.!?](?=[^\s.!?]))+[.!?\u3002\uff01\uff1f]*")
_UNSPACED: Final = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
"""Thai, Lao, Japanese, Chinese and Korean: the end of a word is not seen, so each character counts as one."""
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_OMISSIONS: Final = frozenset(get_args(OmissionReason))
MissingReason = (
    DropReason
    | Literal[
        "duplicate",
        "known_already",
        "confirmed_pending",
        "rejected_pending",
        "pending_confirmation",
        "not_taken",
        "nothing_to_remember",
        "limit",
        "rejected",
        "failed",
        "not_decided_yet",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingStatement:
    """A statement that became no fact that is believed; without `text` it is about the turn as a whole.

    `fact_id` and `known` are the known fact that prevented it, `similarity` how near that was; for
    `pending_confirmation` the pending fact, and `guard` why it is held. `detail` is the reason of the decision or of
    the end of the turn. `because` says all of it in words: the client adds them.
    """

    text: str | None
    reason: MissingReason
    because: str = ""
    stage: str | None = None
    similarity: float | None = None
    fact_id: UUID | None = None
    known: str | None = None
    guard: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """The statements of a turn that were not stored; `facts` counts those that were.

    `names` are those that were read in it, with the entity that each means, or why it was left out.
    `shared_calls` are the calls of the turn that other turns shared.
    """

    turn_id: str
    status: Status
    facts: int
    missing: tuple[MissingStatement, ...]
    names: tuple[TracedName, ...] = ()
    shared_calls: tuple[TracedCall, ...] = ()


async def why_not(conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None) -> WhyNot:
    """Every statement of a turn that became no fact, and why. Raises as `turn_status` does."""
    commit = await last_commit(conn, tenant, turn_id, user_id)
    if commit is None:
        waiting = MissingStatement(text=None, reason="not_decided_yet")
        return WhyNot(turn_id=turn_id, status="pending", facts=0, missing=(waiting,))
    rows = await conn.execute(queries("journal")["user_messages"], {"owner": commit.owner, "source_id": turn_id})
    said = [content for (content,) in await rows.fetchall()]
    found = missing_statements(commit, await fact_texts(conn, commit.scope, fact_ids_of_commit(commit)), said)
    return replace(found, names=traced_names(commit, await entity_names(conn, commit)))


def missing_statements(commit: Commit, known: FactTexts, said: Sequence[str] = ()) -> WhyNot:
    """Read the statements from a commit, and those of the sentences that the user `said` that it took nothing from."""
    missing = (*_missing_parts(commit, known), *_not_taken(commit, said))
    brought = sum(event.new_fact is not None and not isinstance(event, FactPending) for event in commit.events)
    if commit.source_kind == "turn" and not (missing or brought):
        missing = (MissingStatement(text=None, reason="nothing_to_remember"),)
    return WhyNot(
        turn_id=commit.source_id,
        status=commit.outcome,
        facts=brought,
        missing=missing,
        shared_calls=shared_calls(commit),
    )


def _missing_parts(commit: Commit, known: FactTexts) -> Iterator[MissingStatement]:
    if commit.limit is not None:
        yield MissingStatement(text=None, reason="limit", detail=str(commit.limit))
    elif commit.outcome in ("rejected", "failed"):
        yield MissingStatement(text=None, reason=commit.outcome, detail=end_detail(commit))
    for step in commit.provenance.steps:
        for dropped in step.dropped:
            yield MissingStatement(
                text=dropped.text, reason=dropped.reason, stage=step.stage, similarity=dropped.similarity
            )
    for event in commit.events:
        if (one := _decided_statement(event, known)) is not None:
            yield one


def _not_taken(commit: Commit, said: Sequence[str]) -> Iterator[MissingStatement]:
    """The user's sentences that nothing quotes, unless the extraction itself has listed what it left out."""
    dropped = [one for step in commit.provenance.steps for one in step.dropped]
    if commit.outcome not in ("facts", "no_facts") or any(one.reason in _OMISSIONS for one in dropped):
        return
    excerpts = [one.excerpt for one in dropped] + [event.words.excerpt for event in commit.events if event.words]
    read = [words for text in excerpts if (words := _words(text)).strip()]
    for sentence in (found for content in said for found in _SENTENCE.findall(content)):
        words = _words(sentence)
        if words.strip() and not any(words in one or one in words for one in read):
            yield MissingStatement(text=sentence.strip(), reason="not_taken", stage="extract")


def _words(text: str) -> str:
    """What two texts are compared by, with spaces around each word: quotes and signs differ where one is quoted."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _decided_statement(event: MemoryEvent, known: FactTexts) -> MissingStatement | None:
    """A statement that added no active fact; None for an event that added one, or that has no words."""
    statement, fact_id, reason = event.words, event.subject_id, _REASON_OF_EVENT.get(event.event)
    if statement is None or fact_id is None or reason is None:
        return None
    near = {one.fact_id: one.similarity for one in event.decision.candidates}
    return MissingStatement(
        text=statement.text,
        reason=reason,
        stage="resolve",
        similarity=near.get(fact_id),
        fact_id=fact_id,
        known=known.get(fact_id),
        guard=event.guard if isinstance(event, FactPending) else None,
        detail=event.decision.reason,
    )


_REASON_OF_EVENT: Final[dict[str, MissingReason]] = {
    "fact_skipped": "duplicate",
    "fact_confirmed": "known_already",
    "pending_confirmed": "confirmed_pending",
    "pending_rejected": "rejected_pending",
    "fact_pending": "pending_confirmation",
}
