"""How a turn or a command ended and what it did, read from its last commit."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from itertools import chain
from typing import Any, Final, Literal, get_args
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.errors import AmbiguousTurnError, QueryError, UnknownTurnError, check_unicode
from mnemolog.projections.queries import results, trace
from mnemolog.projections.sql import queries
from mnemolog.schemas import events
from mnemolog.schemas.base import known_sum
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.costs import NO_PRICES, PriceTable, usages_of
from mnemolog.schemas.entity_events import EntityRegistered, FactLinked
from mnemolog.schemas.provenance import DropReason, OmissionReason, Step
from mnemolog.schemas.scope import Scope

Effect = Literal["added", "updated", "unchanged", "deleted", "held"]
"""What becomes of a fact, as the fields of a result have it."""


async def turn_status(
    conn: AsyncConnection[TupleRow],
    tenant: str,
    turn_id: str,
    user_id: str | None = None,
    agent_id: str | None = None,
    *,
    prices: PriceTable = NO_PRICES,
    verbose: bool = False,
) -> results.Result:
    """How a turn or a command ended, or that it is pending; `verbose` adds its trace.

    Turns of one id are told apart by their user, or by the agent of a scope without a user.

    Of a turn that was published again the last end counts. A record that was not a valid turn is found by its
    position, topic/partition/offset. Raises `UnknownTurnError` where neither journal nor log has the turn,
    `AmbiguousTurnError` where several owners of the tenant have one.
    """
    commit = await last_commit(conn, tenant, turn_id, user_id, agent_id)
    if commit is None:
        return results.Result(turn_id=turn_id, status="pending")
    commit = await trace.with_shown_reasons(conn, commit)
    if not verbose:
        return write_result(commit, None, prices)
    texts = await fact_texts(conn, commit.scope, trace.fact_ids_of_commit(commit))
    return write_result(commit, texts, prices, await trace.entity_names(conn, commit))


async def last_commit(
    conn: AsyncConnection[TupleRow],
    tenant: str,
    turn_id: str,
    user_id: str | None = None,
    agent_id: str | None = None,
) -> Commit | None:
    """The last commit of a turn or a command; None while it has none. Raises as `turn_status` does."""
    for given in (tenant, turn_id, user_id or ""):
        check_unicode(given)
    if "\x00" in tenant + turn_id:
        raise QueryError("an id holds U+0000, which no stored id can")
    parameters = {"tenant": tenant, "turn_id": turn_id, **_whose(user_id, agent_id)}
    ends = await (await conn.execute(queries("facts")["turn"], parameters)).fetchall()
    match ends:
        case []:
            raise UnknownTurnError(tenant, turn_id)
        case [(_, record)]:
            return None if record is None else Commit.from_bytes(record)
        case _:
            raise AmbiguousTurnError(turn_id, [owner for owner, _ in ends])


async def first_messages(
    conn: AsyncConnection[TupleRow],
    tenant: str,
    turn_id: str,
    user_id: str | None = None,
    agent_id: str | None = None,
) -> list[dict[str, Any]] | None:
    """The messages of the first turn that had this id, from the journal; None where it does not have exactly one."""
    parameters = {"tenant": tenant, "turn_id": turn_id, **_whose(user_id, agent_id)}
    found = await (await conn.execute(queries("journal")["first_messages"], parameters)).fetchall()
    return found[0][0] if len(found) == 1 else None


def _whose(user_id: str | None, agent_id: str | None) -> dict[str, str | None]:
    """A scope that has a user is that of the user, whatever its agent is."""
    return {"user_id": user_id, "agent_id": agent_id if user_id is None else None}


async def fact_texts(conn: AsyncConnection[TupleRow], scope: Scope | None, fact_ids: Iterable[UUID]) -> dict[UUID, str]:
    """What these facts say, as far as they are of exactly `scope`."""
    if scope is None:
        return {}
    named = {**scope.columns, "fact_ids": list(fact_ids)}
    return dict(await (await conn.execute(queries("facts")["texts"], named)).fetchall())


def write_result(
    commit: Commit,
    texts: trace.FactTexts | None = None,
    prices: PriceTable = NO_PRICES,
    names: trace.EntityNames = trace.NO_NAMES,
) -> results.Result:
    """Read from a commit what its turn or command did and cost; with `texts`, its trace with `names` as well. Pure."""
    steps = commit.provenance.steps
    decisions = [event.decision for event in commit.events]
    success = commit.outcome in results.SUCCESSFUL
    day = commit.published_at.astimezone(UTC).date()
    stages = _stages(steps, prices, day)
    # What facts say, as far as their events have it: those that were ended, and new ones.
    known = {one.fact_id: one.text for decision in decisions for one in decision.before}
    known |= {one.fact_id: one.text for event in commit.events if (one := event.new_fact) is not None} | dict(
        texts or {}
    )
    effects = [ids_by_effect(event) for event in commit.events]

    def facts(effect: Effect) -> tuple[results.FactRef, ...]:
        """The facts with this effect, each once."""
        ids = dict.fromkeys(chain.from_iterable(one.get(effect, ()) for one in effects))
        return tuple(results.FactRef(fact_id=one, text=known.get(one)) for one in ids)

    return results.Result(
        turn_id=commit.source_id,
        status=commit.outcome,
        error=None if success else end_detail(commit) or commit.outcome,
        limit=commit.limit,
        source_kind=commit.source_kind,
        order=commit.order.kind if commit.order else None,
        actor=commit.actor,
        attempt=commit.attempt,
        position=commit.origin.position,
        changes=tuple(map(_change_of, commit.events)),
        added=facts("added"),
        updated=facts("updated"),
        unchanged=facts("unchanged"),
        deleted=facts("deleted"),
        held=facts("held"),
        entities=_entities(commit),
        skipped=sum(isinstance(event, events.FactSkipped) for event in commit.events),
        conflicts=sum(one.verdict is not None or bool(one.shown) for one in decisions),
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        tokens=_tokens(steps),
        cost=prices.cost(usages_of(steps, day)),
        milliseconds={stage.stage: stage.milliseconds for stage in stages},
        duration_ms=(commit.decided_at - commit.published_at).total_seconds() * 1000,
        stages=stages,
        trace=None if texts is None else trace.build_trace(commit, texts, names),
        tenant=commit.scope.tenant if commit.scope else None,
        user_id=commit.scope.user_id if commit.scope else None,
        notes=_notes(commit, success=success),
        agent_id=commit.scope.agent_id if commit.scope else None,
    )


def _change_of(event: events.MemoryEvent) -> results.FactChange:
    shown = event.new_fact or event.words or next(iter(event.decision.before), None)
    match event:
        case events.DecisionUndone():
            action: str | None = event.undone_event
        case events.FactPending() | events.PendingConfirmed() | events.ConflictResolved():
            action = event.action
        case _:
            action = None
    return results.FactChange(
        fact_id=event.subject_id,
        text=shown.text if shown else None,
        event=event.event,
        targets=event.affected_ids,
        reason=event.decision.reason,
        action=action,
        unresolved=isinstance(event, events.FactAdded) and event.unresolved,
        needs_human=isinstance(event, events.FactPending) and event.needs_human,
    )


def ids_by_effect(event: events.MemoryEvent) -> dict[Effect, tuple[UUID, ...]]:
    """The facts that an event changes, or that wait because of it, by what becomes of them."""
    effects: dict[Effect, tuple[UUID, ...]] = {}
    match event:
        case events.RestoringEvent():
            effects["updated"] = tuple(one.fact_id for one in event.reversals if one.before is not None)
            effects["deleted"] = tuple(one.fact_id for one in event.reversals if one.before is None)
        case events.FactPending():
            effects["held"] = (event.fact.fact_id,)
        case events.FactSkipped() | events.FactConfirmed():
            effects["unchanged"] = event.affected_ids
        case events.PendingRejected():
            effects["unchanged"], effects["deleted"] = event.affected_ids, event.ended_ids
        case events.ConflictResolved(action="keep_both"):
            effects["unchanged"] = (event.target,)
        case events.ConflictResolved(action="keep_old"):
            effects["deleted"] = event.ended_ids
        case _:
            effects["added"] = (
                event.successor_ids if isinstance(event, events.PendingConfirmed) or event.new_fact else ()
            )
            if event.overwrite is not None:
                effects["updated" if event.overwrite in ("merge", "replace") else "deleted"] = event.affected_ids
    return effects


def _entities(commit: Commit) -> tuple[results.NamedEntity, ...]:
    """The entities that facts name, each once, under the first name that was said."""
    new = {event.entity_id: event.name for event in commit.entity_events if isinstance(event, EntityRegistered)}
    linked: dict[UUID, str | None] = {}
    for event in commit.entity_events:
        for link in event.links if isinstance(event, FactLinked) else ():
            linked[link.entity_id] = linked.get(link.entity_id) or link.name
    return tuple(
        results.NamedEntity(entity_id=one, name=name or new.get(one), is_new=one in new)
        for one, name in (dict.fromkeys(new) | linked).items()
    )


def _notes(commit: Commit, *, success: bool) -> tuple[str, ...]:
    """What a command that was carried out says of itself; what was unread or changed in a turn; what its names mean."""
    steps = commit.provenance.steps
    notes = [commit.detail] if success and commit.detail else []
    if unread := sum(dropped.reason == "too_long" for step in steps for dropped in step.dropped):
        notes.append(f"{results.counted(unread, 'part')} of the text left unread, it is too long: publish it in parts")
    notes += [note for step in steps for note in step.notes]
    for asked in (answered for step in steps for answered in step.answered_names):
        known = "a known entity" if len(asked.twins) == 1 else f"one of {len(asked.twins)} known entities"
        answer = "is another one, or nobody can tell" if asked.entity_id is None else f"is {asked.entity_id}"
        notes.append(f'"{asked.name}" may mean {known}; the model was asked, and it {answer}: {asked.reason}')
    return tuple(notes)


def end_detail(commit: Commit) -> str:
    """Why a source was rejected or failed."""
    return ": ".join(part for part in (commit.reason, commit.detail) if part)


def _stages(steps: Sequence[Step], prices: PriceTable, day: date) -> tuple[results.StageCost, ...]:
    """The costs by stage, in the order in which the stages came."""
    by_stage: dict[str, list[Step]] = {}
    for step in steps:
        by_stage.setdefault(step.stage, []).append(step)
    return tuple(
        results.StageCost(
            stage=stage,
            milliseconds=sum(step.milliseconds for step in its),
            llm_calls=sum(step.llm_calls for step in its),
            embedding_calls=sum(step.embedding_calls for step in its),
            tokens=_tokens(its),
            reprompts=sum(step.reprompts for step in its),
            models=_distinct(step.model for step in its),
            prompt_versions=_distinct(name for step in its for name in (step.prompt_version, step.instructions)),
            cost=prices.cost(usages_of(its, day)),
        )
        for stage, its in by_stage.items()
    )


def _tokens(steps: Sequence[Step]) -> results.Tokens:
    return results.Tokens(
        input=sum(step.input_tokens for step in steps),
        output=sum(step.output_tokens for step in steps),
        cached=known_sum(step.cached_tokens for step in steps),
    )


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


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
    status: results.Status
    facts: int
    missing: tuple[MissingStatement, ...]
    names: tuple[trace.TracedName, ...] = ()
    shared_calls: tuple[trace.TracedCall, ...] = ()


async def why_not(conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None) -> WhyNot:
    """Every statement of a turn that became no fact, and why. Raises as `turn_status` does."""
    commit = await last_commit(conn, tenant, turn_id, user_id)
    if commit is None:
        waiting = MissingStatement(text=None, reason="not_decided_yet")
        return WhyNot(turn_id=turn_id, status="pending", facts=0, missing=(waiting,))
    rows = await conn.execute(queries("journal")["user_messages"], {"owner": commit.owner, "source_id": turn_id})
    said = [content for (content,) in await rows.fetchall()]
    found = missing_statements(commit, await fact_texts(conn, commit.scope, trace.fact_ids_of_commit(commit)), said)
    return replace(found, names=trace.traced_names(commit, await trace.entity_names(conn, commit)))


def missing_statements(commit: Commit, known: trace.FactTexts, said: Sequence[str] = ()) -> WhyNot:
    """Read the statements from a commit, and those of the sentences that the user `said` that it took nothing from."""
    missing = (*_missing_parts(commit, known), *_not_taken(commit, said))
    brought = sum(event.new_fact is not None and not isinstance(event, events.FactPending) for event in commit.events)
    if commit.source_kind == "turn" and not (missing or brought):
        missing = (MissingStatement(text=None, reason="nothing_to_remember"),)
    return WhyNot(
        turn_id=commit.source_id,
        status=commit.outcome,
        facts=brought,
        missing=missing,
        shared_calls=trace.shared_calls(commit),
    )


def _missing_parts(commit: Commit, known: trace.FactTexts) -> Iterator[MissingStatement]:
    if commit.limit is not None:
        yield MissingStatement(text=None, reason="limit", detail=str(commit.limit))
    elif commit.outcome in ("rejected", "failed"):
        yield MissingStatement(text=None, reason=commit.outcome, detail=end_detail(commit))
    for step in commit.provenance.steps:
        for dropped in step.dropped:
            yield MissingStatement(
                text=dropped.text,
                reason=dropped.reason,
                stage=step.stage,
                similarity=dropped.similarity,
                detail=dropped.detail or None,
            )
    for event in commit.events:  # those with words that added no active fact
        statement, fact_id, reason = event.words, event.subject_id, _REASON_OF_EVENT.get(event.event)
        if statement is None or fact_id is None or reason is None:
            continue
        near = {one.fact_id: one.similarity for one in event.decision.candidates}
        yield MissingStatement(
            text=statement.text,
            reason=reason,
            stage="resolve",
            similarity=near.get(fact_id),
            fact_id=fact_id,
            known=known.get(fact_id),
            guard=event.guard if isinstance(event, events.FactPending) else None,
            detail=event.decision.reason,
        )


def _not_taken(commit: Commit, said: Sequence[str]) -> Iterator[MissingStatement]:
    """The user's sentences that nothing quotes, unless the extraction itself has listed what it left out."""
    dropped = [one for step in commit.provenance.steps for one in step.dropped]
    if commit.outcome not in ("stored", "nothing_stored") or any(one.reason in _OMISSIONS for one in dropped):
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


_REASON_OF_EVENT: Final[dict[str, MissingReason]] = {
    "fact_skipped": "duplicate",
    "fact_confirmed": "known_already",
    "pending_confirmed": "confirmed_pending",
    "pending_rejected": "rejected_pending",
    "fact_pending": "pending_confirmation",
}
