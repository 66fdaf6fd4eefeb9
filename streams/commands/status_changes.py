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
from mnemolog.schemas.stored import PendingCase, StoredFact
from mnemolog.streams.commands.context import (
    CommandContext,
    CommandRefusedError,
    Events,
    StoredFacts,
    is_open,
    open_fault,
    raise_for_faults,
)
from mnemolog.streams.ends import has_ended


def delete(context: CommandContext, payload: Delete, facts: StoredFacts) -> Events:
    """Each fact is retracted with all that took its place up to the current version: so none of them comes back.

    The versions of a fact share one event, the current one first, so that each fact can be undone by itself.
    """
    versions = {fact_id: _versions_since(fact_id, facts) for fact_id in payload.fact_ids}
    current = {fact_id: found[-1] for fact_id, found in versions.items() if found}
    raise_for_faults(open_fault(context, fact_id, current) for fact_id in payload.fact_ids)
    deleted: dict[UUID, dict[UUID, StoredFact]] = {}
    for found in versions.values():
        believed = (stored for stored in reversed(found) if stored.is_open or has_ended(stored))
        deleted.setdefault(found[-1].fact_id, {}).update((stored.fact_id, stored) for stored in believed)
    return tuple(
        FactRetracted(
            **context.event_fields(ordinal, context.decision("person", "deleted it", stored.values())),
            targets=tuple(stored),
            ended_at=None,
        )
        for ordinal, stored in enumerate(deleted.values())
    )


def _versions_since(fact_id: UUID, facts: StoredFacts) -> list[StoredFact]:
    """The fact, and what took its place one after the other, up to the current version."""
    found: dict[UUID, StoredFact] = {}
    next_id: UUID | None = fact_id
    while next_id is not None and next_id not in found and (stored := facts.get(next_id)) is not None:
        found[next_id] = stored
        next_id = None if stored.is_open else stored.state.superseded_by
    return list(found.values())


def delete_all(context: CommandContext, fact_ids: Sequence[UUID], facts: StoredFacts) -> Events:
    """All these facts are retracted, up to a hundred in one event: one commit has to hold them, and their undo."""
    before = [facts[fact_id] for fact_id in fact_ids] if len(fact_ids) <= MAX_ITEMS else []
    decision = context.decision("person", f"deleted all {len(fact_ids)} of them", before)
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
        decision = context.decision("person", "confirmed it", [facts[known] for known in (fact_id, *targets)])
        fields = context.event_fields(ordinal, decision.model_copy(update={"shown": beside}))
        if case is None:
            events.append(FactConfirmed(**fields, target=fact_id, statement=None))
            continue
        fields |= {"action": case.action, "ended_at": case.ended_at, "unresolved": bool(beside)}
        events.append(PendingConfirmed(**fields, target=fact_id, targets=targets))
        ended.update(targets)
    return tuple(events)


def reject(context: CommandContext, payload: Reject, facts: StoredFacts) -> Events:
    raise_for_faults(open_fault(context, fact_id, facts) for fact_id in payload.fact_ids)
    active = (fact_id for fact_id in payload.fact_ids if facts[fact_id].state.status != "pending_confirmation")
    raise_for_faults(
        ("not_pending", f"{fact_id} is active, not pending: delete it, or undo what added it") for fact_id in active
    )
    return tuple(
        PendingRejected(
            **context.event_fields(ordinal, context.decision("person", "rejected it", [facts[fact_id]])), target=fact_id
        )
        for ordinal, fact_id in enumerate(dict.fromkeys(payload.fact_ids))
    )


def set_policy(context: CommandContext, payload: SetPolicy) -> Events:
    whole = tenant_scope(context.scope.tenant)
    if payload.level == "tenant" and context.scope != whole:
        detail = f"a policy of a whole tenant is set in the scope of its agent {whole.agent_id}, without a user"
        raise CommandRefusedError("invalid_command", detail)
    decision = context.decision("person", f"set the policy of the {payload.level}")
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
