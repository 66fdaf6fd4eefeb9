"""How a turn or a command ended and what it did, read from its last commit."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date
from itertools import chain
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.errors import AmbiguousTurnError, QueryError, UnknownTurnError, check_unicode
from mnemolog.projections.queries.results import EventResult, StageCost, Tokens, WriteResult
from mnemolog.projections.queries.shown_reasons import with_shown_reasons
from mnemolog.projections.queries.turns.trace import FactTexts, build_trace, fact_ids_of_commit
from mnemolog.projections.queries.turns.traced_names import NO_NAMES, EntityNames, entity_names
from mnemolog.projections.sql import queries
from mnemolog.schemas.base import known_sum
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.costs.prices import NO_PRICES, PriceTable, usages_of
from mnemolog.schemas.entities.events import AnyEntityEvent, EntityRegistered, FactLinked
from mnemolog.schemas.entities.model import AnsweredName
from mnemolog.schemas.events import (
    ConflictResolved,
    DecisionUndone,
    FactAdded,
    FactConfirmed,
    FactPending,
    FactSkipped,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
)
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope

_CONFLICT_DECIDERS: Final = ("model", "fallback")
_SUCCESS_OUTCOMES: Final = ("facts", "no_facts", "done")


async def turn_status(
    conn: AsyncConnection[TupleRow],
    tenant: str,
    turn_id: str,
    user_id: str | None = None,
    agent_id: str | None = None,
    *,
    prices: PriceTable = NO_PRICES,
    verbose: bool = False,
) -> WriteResult:
    """How a turn or a command ended, or that it is pending; `verbose` adds its trace.

    Turns of one id are told apart by their user, or by the agent of a scope without a user.

    Of a turn that was published again the last end counts. A record that was not a valid turn is found by its
    position, topic/partition/offset. Raises `UnknownTurnError` where neither journal nor log has the turn,
    `AmbiguousTurnError` where several owners of the tenant have one.
    """
    commit = await last_commit(conn, tenant, turn_id, user_id, agent_id)
    if commit is None:
        return WriteResult(turn_id=turn_id, status="pending")
    commit = await with_shown_reasons(conn, commit)
    if not verbose:
        return write_result(commit, None, prices)
    texts = await fact_texts(conn, commit.scope, fact_ids_of_commit(commit))
    return write_result(commit, texts, prices, await entity_names(conn, commit))


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
    texts: FactTexts | None = None,
    prices: PriceTable = NO_PRICES,
    names: EntityNames = NO_NAMES,
) -> WriteResult:
    """Read from a commit what its turn or command did and cost; with `texts`, its trace with `names` as well. Pure."""
    events, steps = commit.events, commit.provenance.steps
    decisions = [event.decision for event in events]
    success = commit.outcome in _SUCCESS_OUTCOMES
    day = commit.published_at.astimezone(UTC).date()
    stages = _stages(steps, prices, day)
    return WriteResult(
        turn_id=commit.source_id,
        status=commit.outcome,
        success=success,
        error=None if success else end_detail(commit) or commit.outcome,
        limit=commit.limit,
        source_kind=commit.source_kind,
        order=commit.order.kind if commit.order else None,
        actor=commit.actor,
        attempt=commit.attempt,
        position=commit.origin.position,
        memories=tuple(map(_memory_of, events)),
        skipped=sum(isinstance(event, FactSkipped) for event in events),
        conflicts=sum(one.by in _CONFLICT_DECIDERS or one.verdict is not None for one in decisions),
        facts_added=_count(map(_added_ids, events)),
        facts_updated=_count(map(_updated_ids, events)),
        facts_unchanged=_count(map(_unchanged_ids, events)),
        facts_deleted=_count(map(_deleted_ids, events)),
        facts_pending=sum(isinstance(event, FactPending) for event in events),
        entities_resolved=_count(map(_linked_ids, commit.entity_events)),
        entities_added=sum(isinstance(event, EntityRegistered) for event in commit.entity_events),
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        tokens=_tokens(steps),
        cost=prices.cost(usages_of(steps, day)),
        milliseconds={stage.stage: stage.milliseconds for stage in stages},
        duration_ms=(commit.decided_at - commit.published_at).total_seconds() * 1000,
        stages=stages,
        trace=None if texts is None else build_trace(commit, texts, names),
        tenant=commit.scope.tenant if commit.scope else None,
        user_id=commit.scope.user_id if commit.scope else None,
        notes=_notes(commit, success=success),
        agent_id=commit.scope.agent_id if commit.scope else None,
    )


def _memory_of(event: MemoryEvent) -> EventResult:
    shown = event.new_fact or event.words or next(iter(event.decision.before), None)
    return EventResult(
        fact_id=event.subject_id,
        text=shown.text if shown else None,
        event=event.event,
        targets=event.affected_ids,
        reason=event.decision.reason,
        action=_action(event),
        unresolved=isinstance(event, FactAdded) and event.unresolved,
        needs_human=isinstance(event, FactPending) and event.needs_human,
    )


def _action(event: MemoryEvent) -> str | None:
    match event:
        case DecisionUndone():
            return event.undone_event
        case FactPending() | PendingConfirmed() | ConflictResolved():
            return event.action
        case _:
            return None


def _added_ids(event: MemoryEvent) -> tuple[UUID, ...]:
    """The facts that are active from now on."""
    match event:
        case FactPending():
            return ()
        case PendingConfirmed():
            return (event.target,)
        case _:
            return (event.new_fact.fact_id,) if event.new_fact else ()


def _updated_ids(event: MemoryEvent) -> tuple[UUID, ...]:
    if isinstance(event, DecisionUndone):
        return tuple(one.fact_id for one in event.reversals if one.before is not None)
    return event.affected_ids if event.overwrite in ("merge", "replace") else ()


def _unchanged_ids(event: MemoryEvent) -> tuple[UUID, ...]:
    match event:
        case FactSkipped() | FactConfirmed() | PendingRejected():
            return event.affected_ids
        case ConflictResolved(action="keep_both"):
            return (event.target,)
        case _:
            return ()


def _deleted_ids(event: MemoryEvent) -> tuple[UUID, ...]:
    match event:
        case DecisionUndone():
            return tuple(one.fact_id for one in event.reversals if one.before is None)
        case PendingRejected() | ConflictResolved(action="keep_old"):
            return event.ended_ids
        case _:
            return event.affected_ids if event.overwrite in ("contradict", "retract", "expire") else ()


def _linked_ids(event: AnyEntityEvent) -> tuple[UUID, ...]:
    """The entities that a fact names."""
    return tuple(link.entity_id for link in event.links) if isinstance(event, FactLinked) else ()


def _count(ids: Iterable[tuple[UUID, ...]]) -> int:
    """How many facts or entities these are, each once."""
    return len(set(chain.from_iterable(ids)))


def _notes(commit: Commit, *, success: bool) -> tuple[str, ...]:
    """What a command that was carried out says of itself; what was changed in a turn, and whom its names mean."""
    said = (commit.detail,) if success and commit.detail else ()
    steps = commit.provenance.steps
    notes = (note for step in steps for note in step.notes)
    return (*said, *notes, *(_name_note(asked) for step in steps for asked in step.answered_names))


def _name_note(asked: AnsweredName) -> str:
    """Whom the model took a name for."""
    known = "a known entity" if len(asked.twins) == 1 else f"one of {len(asked.twins)} known entities"
    answer = "is another one, or nobody can tell" if asked.entity_id is None else f"is {asked.entity_id}"
    return f'"{asked.name}" may mean {known}; the model was asked, and it {answer}: {asked.reason}'


def end_detail(commit: Commit) -> str:
    """Why a source was rejected or failed."""
    return ": ".join(part for part in (commit.reason, commit.detail) if part)


def _stages(steps: Sequence[Step], prices: PriceTable, day: date) -> tuple[StageCost, ...]:
    """The costs by stage, in the order in which the stages came."""
    names = dict.fromkeys(step.stage for step in steps)
    return tuple(_stage(name, [step for step in steps if step.stage == name], prices, day) for name in names)


def _stage(name: str, steps: Sequence[Step], prices: PriceTable, day: date) -> StageCost:
    return StageCost(
        stage=name,
        milliseconds=sum(step.milliseconds for step in steps),
        llm_calls=sum(step.llm_calls for step in steps),
        embedding_calls=sum(step.embedding_calls for step in steps),
        tokens=_tokens(steps),
        reprompts=sum(step.reprompts for step in steps),
        models=_distinct(step.model for step in steps),
        prompt_versions=_distinct(name for step in steps for name in (step.prompt_version, step.instructions)),
        cost=prices.cost(usages_of(steps, day)),
    )


def _tokens(steps: Iterable[Step]) -> Tokens:
    steps = tuple(steps)
    return Tokens(
        input=sum(step.input_tokens for step in steps),
        output=sum(step.output_tokens for step in steps),
        cached=known_sum(step.cached_tokens for step in steps),
    )


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))
