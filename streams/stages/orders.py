"""Orders that name facts and bring none: pure functions from an order and its facts to events, or to a refusal.

An order is carried out as a whole or not at all, and touches facts of exactly its scope only.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from mnemolog.projections.known import PendingCase, StoredFact
from mnemolog.schemas.command import MAX_ITEMS, Confirm, Delete, Expire, Reject, SetPolicy, tenant_scope
from mnemolog.schemas.events import (
    FactConfirmed,
    FactExpired,
    FactRetracted,
    PendingConfirmed,
    PendingRejected,
    PolicySet,
)
from mnemolog.streams.stages.given import Events, Facts, Given
from mnemolog.streams.stages.refusals import CommandRefusedError, is_open, open_fault, pending_fault, refuse_faults


def delete(given: Given, order: Delete, facts: Facts) -> Events:
    """These facts leave what is believed; one event each, so that each can be taken back by itself."""
    refuse_faults(open_fault(given, fact_id, facts) for fact_id in order.fact_ids)
    wanted = [facts[fact_id] for fact_id in dict.fromkeys(order.fact_ids)]
    return tuple(
        FactRetracted(
            **given.head(ordinal, given.decision("application", "deleted it", [stored])),
            targets=(stored.fact_id,),
            ended_at=None,
        )
        for ordinal, stored in enumerate(wanted)
    )


def delete_all(given: Given, fact_ids: Sequence[UUID], facts: Facts) -> Events:
    """All of these leave what is believed, some hundred an event: one commit has to hold them, and their undo."""
    told = [facts[fact_id] for fact_id in fact_ids] if len(fact_ids) <= MAX_ITEMS else []
    decision = given.decision("application", f"deleted all {len(fact_ids)} of them", told)
    shares = [tuple(fact_ids[start : start + MAX_ITEMS]) for start in range(0, len(fact_ids), MAX_ITEMS)]
    return tuple(
        FactRetracted(**given.head(ordinal, decision), targets=share, ended_at=None)
        for ordinal, share in enumerate(shares)
    )


def confirm(given: Given, order: Confirm, facts: Facts, cases: Mapping[UUID, PendingCase]) -> Events:
    """Pending facts stand and do what they were held back from; active ones are confirmed."""
    refuse_faults(open_fault(given, fact_id, facts) for fact_id in order.fact_ids)
    _refuse_opposed(order, cases)
    made: list[PendingConfirmed | FactConfirmed] = []
    ended: set[UUID] = set()
    for ordinal, fact_id in enumerate(dict.fromkeys(order.fact_ids)):
        if case := cases.get(fact_id):
            targets = tuple(held for held in case.targets if held not in ended and is_open(given, held, facts))
            made.append(_pending_confirmed(given, ordinal, facts, case, targets))
            ended.update(targets)
        else:
            made.append(_confirmed(given, ordinal, facts[fact_id]))
    return tuple(made)


def reject(given: Given, order: Reject, facts: Facts) -> Events:
    """Pending facts are closed."""
    refuse_faults(pending_fault(given, fact_id, facts) for fact_id in order.fact_ids)
    return tuple(
        PendingRejected(**given.head(ordinal, given.decision("human", "rejected it", [facts[fact_id]])), target=fact_id)
        for ordinal, fact_id in enumerate(dict.fromkeys(order.fact_ids))
    )


def set_policy(given: Given, order: SetPolicy) -> Events:
    """A policy takes the place of the one that held at its level."""
    whole = tenant_scope(given.scope.tenant)
    if order.level == "tenant" and given.scope != whole:
        detail = f"a policy of a whole tenant is set in the scope of its agent {whole.agent_id}, without a user"
        raise CommandRefusedError("invalid_command", detail)
    decision = given.decision("human", f"set the policy of the {order.level}")
    return (PolicySet(**given.head(0, decision), level=order.level, policy=order.policy),)


def expire(given: Given, order: Expire, facts: Facts) -> Events:
    """The facts whose end has come are closed; whatever else is named is left alone."""
    due = [
        (stored, stored.ends_at)
        for fact_id in dict.fromkeys(order.fact_ids)
        if (stored := facts.get(fact_id)) is not None and given.is_ours(stored) and stored.standing.status == "active"
    ]
    passed = [(stored, ends_at) for stored, ends_at in due if ends_at is not None and ends_at <= given.now]
    return tuple(
        FactExpired(
            **given.head(ordinal, given.decision("timer", "found that its end has come", [stored])),
            targets=(stored.fact_id,),
            ended_at=ends_at,
        )
        for ordinal, (stored, ends_at) in enumerate(passed)
    )


def _refuse_opposed(order: Confirm, cases: Mapping[UUID, PendingCase]) -> None:
    """Raise `CommandRefusedError` where one fact to be confirmed would be ended by another one."""
    opposed = [
        f"{fact_id} is one that {case.fact_id} would end"
        for case in cases.values()
        for fact_id in dict.fromkeys(order.fact_ids)
        if fact_id in case.targets and fact_id != case.fact_id
    ]
    if opposed:
        raise CommandRefusedError("invalid_command", f"{'; '.join(opposed)}: confirm the one that stands")


def _pending_confirmed(
    given: Given, ordinal: int, facts: Facts, case: PendingCase, targets: tuple[UUID, ...]
) -> PendingConfirmed:
    decision = given.decision("human", "confirmed it", [facts[fact_id] for fact_id in (case.fact_id, *targets)])
    return PendingConfirmed(
        **given.head(ordinal, decision),
        target=case.fact_id,
        targets=targets,
        action=case.action,
        ended_at=case.ended_at,
    )


def _confirmed(given: Given, ordinal: int, stored: StoredFact) -> FactConfirmed:
    decision = given.decision("human", "confirmed it", [stored])
    return FactConfirmed(**given.head(ordinal, decision), target=stored.fact_id, statement=None)
