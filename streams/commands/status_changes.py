"""Commands without a new text: delete, delete_all, confirm, reject, set_policy and expire, from facts to events.

A command is carried out as a whole or refused, and changes facts of exactly its scope only.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from mnemolog.schemas.command import MAX_ITEMS, Confirm, Delete, Expire, Reject, SetPolicy, tenant_scope
from mnemolog.schemas.events import (
    FactConfirmed,
    FactExpired,
    FactRetracted,
    PendingConfirmed,
    PendingRejected,
    PolicySet,
)
from mnemolog.schemas.stored import PendingCase
from mnemolog.streams.commands.context import (
    CommandContext,
    CommandRefusedError,
    Events,
    StoredFacts,
    is_open,
    open_fault,
    pending_fault,
    raise_for_faults,
)


def delete(context: CommandContext, payload: Delete, facts: StoredFacts) -> Events:
    """The facts are retracted; one event each, so that each can be undone by itself."""
    raise_for_faults(open_fault(context, fact_id, facts) for fact_id in payload.fact_ids)
    wanted = {facts[fact_id].fact_id: facts[fact_id] for fact_id in payload.fact_ids}
    return tuple(
        FactRetracted(
            **context.event_fields(ordinal, context.decision("application", "deleted it", [stored])),
            targets=(stored.fact_id,),
            ended_at=None,
        )
        for ordinal, stored in enumerate(wanted.values())
    )


def delete_all(context: CommandContext, fact_ids: Sequence[UUID], facts: StoredFacts) -> Events:
    """All these facts are retracted, up to a hundred in one event: one commit has to hold them, and their undo."""
    before = [facts[fact_id] for fact_id in fact_ids] if len(fact_ids) <= MAX_ITEMS else []
    decision = context.decision("application", f"deleted all {len(fact_ids)} of them", before)
    shares = [tuple(fact_ids[start : start + MAX_ITEMS]) for start in range(0, len(fact_ids), MAX_ITEMS)]
    return tuple(
        FactRetracted(**context.event_fields(ordinal, decision), targets=share, ended_at=None)
        for ordinal, share in enumerate(shares)
    )


def confirm(context: CommandContext, payload: Confirm, facts: StoredFacts, cases: Mapping[UUID, PendingCase]) -> Events:
    """Pending facts become active and end their targets; active facts are confirmed.

    A pending fact is unresolved beside the successor that a target has got since, by a merge or a correction.
    """
    raise_for_faults(open_fault(context, fact_id, facts) for fact_id in payload.fact_ids)
    opposed = [
        f"{fact_id} is one that {case.fact_id} would end"
        for case in cases.values()
        for fact_id in dict.fromkeys(payload.fact_ids)
        if fact_id in case.targets and fact_id != case.fact_id
    ]
    if opposed:
        raise CommandRefusedError("invalid_command", f"{'; '.join(opposed)}: confirm one of them")
    events: list[PendingConfirmed | FactConfirmed] = []
    ended: set[UUID] = set()
    for ordinal, fact_id in enumerate(dict.fromkeys(payload.fact_ids)):
        case = cases.get(fact_id)
        is_left = (target for target in case.targets if target not in ended) if case else ()
        targets = tuple(target for target in is_left if is_open(context, target, facts))
        beside = tuple(known for known in case.successors if known not in ended) if case else ()
        decision = context.decision("human", "confirmed it", [facts[known] for known in (fact_id, *targets)])
        fields = context.event_fields(ordinal, decision.model_copy(update={"shown": beside}))
        if case is None:
            events.append(FactConfirmed(**fields, target=fact_id, statement=None))
            continue
        fields |= {"action": case.action, "ended_at": case.ended_at, "unresolved": bool(beside)}
        events.append(PendingConfirmed(**fields, target=fact_id, targets=targets))
        ended.update(targets)
    return tuple(events)


def reject(context: CommandContext, payload: Reject, facts: StoredFacts) -> Events:
    """Pending facts are rejected."""
    raise_for_faults(pending_fault(context, fact_id, facts) for fact_id in payload.fact_ids)
    return tuple(
        PendingRejected(
            **context.event_fields(ordinal, context.decision("human", "rejected it", [facts[fact_id]])), target=fact_id
        )
        for ordinal, fact_id in enumerate(dict.fromkeys(payload.fact_ids))
    )


def set_policy(context: CommandContext, payload: SetPolicy) -> Events:
    """The policy replaces the one of its level."""
    whole = tenant_scope(context.scope.tenant)
    if payload.level == "tenant" and context.scope != whole:
        detail = f"a policy of a whole tenant is set in the scope of its agent {whole.agent_id}, without a user"
        raise CommandRefusedError("invalid_command", detail)
    decision = context.decision("human", f"set the policy of the {payload.level}")
    return (PolicySet(**context.event_fields(0, decision), level=payload.level, policy=payload.policy),)


def expire(context: CommandContext, payload: Expire, facts: StoredFacts) -> Events:
    """The active and pending facts whose end has passed expire; other named facts stay as they are."""
    events: list[FactExpired] = []
    for fact_id in dict.fromkeys(payload.fact_ids):
        stored = facts.get(fact_id)
        if stored is None or not context.owns(stored) or not stored.is_open:
            continue
        if stored.ends_at is not None and stored.ends_at <= context.now:
            fields = context.event_fields(len(events), context.decision("timer", "found its end reached", [stored]))
            events.append(FactExpired(**fields, targets=(fact_id,), ended_at=stored.ends_at))
    return tuple(events)
