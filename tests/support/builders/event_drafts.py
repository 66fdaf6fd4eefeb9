"""Events in few words, without ids and times: those follow from the place that a commit gives them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from mnemolog.schemas.events import (
    ConflictResolved,
    DecisionUndone,
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactCorrected,
    FactExpired,
    FactExtended,
    FactPending,
    FactReplaced,
    FactRetracted,
    FactSkipped,
    FactsMerged,
    FactsRelated,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
    PolicySet,
)
from mnemolog.schemas.facts import Reversal, Statement
from mnemolog.schemas.ids import event_id
from mnemolog.schemas.policy import Level, Policy
from tests.support.builders.values import EventPlace, decision, new_fact, weighed_candidate

Draft = Callable[[EventPlace], MemoryEvent]


def added(
    text: str,
    *,
    unresolved: bool = False,
    ended_at: datetime | None = None,
    ended_by: UUID | None = None,
    reason: str = "nothing like it is known",
    **fields: Any,
) -> Draft:
    """With `ended_at` and `ended_by` a late statement about a closed value."""

    def draft(place: EventPlace) -> MemoryEvent:
        return FactAdded(
            **_event_fields(place, reason),
            fact=new_fact(place, text, **fields),
            unresolved=unresolved,
            ended_at=ended_at,
            ended_by=ended_by,
        )

    return draft


def skipped(
    target: UUID, text: str = "the same again", *, true_from: datetime | None = None, reason: str = "equal words"
) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return FactSkipped(
            **_event_fields(place, reason, target),
            target=target,
            statement=Statement(text=text, excerpt=text),
            true_from=true_from,
        )

    return draft


def confirmed(target: UUID, text: str = "the same in other words", *, reason: str = "known already") -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        statement = Statement(text=text, excerpt=text)
        return FactConfirmed(**_event_fields(place, reason, target), target=target, statement=statement)

    return draft


def merged(text: str, *targets: UUID, reason: str = "both are true", **fields: Any) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return FactsMerged(
            **_event_fields(place, reason, *targets),
            targets=targets,
            statement=Statement(text=text, excerpt=text),
            fact=new_fact(place, text, **fields),
        )

    return draft


def replaced(
    text: str, *targets: UUID, ended_at: datetime | None = None, reason: str = "it has changed", **fields: Any
) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return FactReplaced(
            **_event_fields(place, reason, *targets),
            targets=targets,
            ended_at=ended_at or place.at,
            fact=new_fact(place, text, **fields),
        )

    return draft


def contradicted(text: str, *targets: UUID, reason: str = "it never was so", **fields: Any) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return FactContradicted(
            **_event_fields(place, reason, *targets), targets=targets, fact=new_fact(place, text, **fields)
        )

    return draft


def extended(text: str, *targets: UUID, reason: str = "it tells more of it", **fields: Any) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return FactExtended(
            **_event_fields(place, reason, *targets), targets=targets, fact=new_fact(place, text, **fields)
        )

    return draft


def related(text: str, *targets: UUID, reason: str = "it is about the same", **fields: Any) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return FactsRelated(
            **_event_fields(place, reason, *targets), targets=targets, fact=new_fact(place, text, **fields)
        )

    return draft


def expired(
    *targets: UUID, ended_at: datetime | None = None, text: str | None = None, reason: str = "its end", **fields: Any
) -> Draft:
    """By the timer, or with `text` by an announcement."""

    def draft(place: EventPlace) -> MemoryEvent:
        return FactExpired(
            **_event_fields(place, reason, *targets),
            targets=targets,
            ended_at=ended_at or place.at,
            fact=None if text is None else new_fact(place, text, **fields),
        )

    return draft


def retracted(
    *targets: UUID, ended_at: datetime | None = None, text: str | None = None, reason: str = "no longer", **fields: Any
) -> Draft:
    """Without `ended_at` deleted; `text` is the statement that says so."""

    def draft(place: EventPlace) -> MemoryEvent:
        return FactRetracted(
            **_event_fields(place, reason, *targets),
            targets=targets,
            ended_at=ended_at,
            fact=None if text is None else new_fact(place, text, **fields),
        )

    return draft


def pending(
    text: str,
    *targets: UUID,
    action: Any = "contradict",
    ended_at: datetime | None = None,
    guard: Any = "high_confidence",
    needs_human: bool = False,
    **fields: Any,
) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return FactPending(
            **_event_fields(place, "it is to be confirmed", *targets),
            targets=targets,
            action=action,
            ended_at=ended_at,
            guard=guard,
            needs_human=needs_human,
            fact=new_fact(place, text, **fields),
        )

    return draft


def pending_confirmed(
    target: UUID,
    *targets: UUID,
    action: Any = "contradict",
    ended_at: datetime | None = None,
    text: str | None = None,
) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return PendingConfirmed(
            **_event_fields(place, "said again", target, *targets),
            target=target,
            targets=targets,
            action=action,
            ended_at=ended_at,
            statement=_statement(text),
        )

    return draft


def pending_rejected(target: UUID, *, confirmed: UUID | None = None, text: str | None = None) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return PendingRejected(
            **_event_fields(place, "the old fact was said again", target),
            target=target,
            confirmed=confirmed,
            statement=_statement(text),
        )

    return draft


def corrected(text: str, target: UUID, *, ended_at: datetime | None = None, **fields: Any) -> Draft:
    """By a human."""

    def draft(place: EventPlace) -> MemoryEvent:
        fact = new_fact(place, text, **{"authority": "human", "confidence": 1.0} | fields)
        return FactCorrected(**_event_fields(place, "corrected", target), target=target, ended_at=ended_at, fact=fact)

    return draft


def resolved(target: UUID, *targets: UUID, action: Any = "replace", ended_at: datetime | None = None) -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return ConflictResolved(
            **_event_fields(place, "settled", target, *targets),
            target=target,
            targets=targets,
            action=action,
            ended_at=ended_at,
        )

    return draft


def undone(
    event: UUID, *reversals: Reversal, undone_event: str = "fact_replaced", reinstated: UUID | None = None
) -> Draft:
    """Takes event `event` back; `reversals` are what it did."""

    def draft(place: EventPlace) -> MemoryEvent:
        return DecisionUndone(
            **_event_fields(place, "taken back"),
            undone=event,
            undone_event=undone_event,
            reinstated=reinstated,
            reversals=reversals,
        )

    return draft


def policy_set(policy: Policy, *, level: Level = "scope") -> Draft:
    def draft(place: EventPlace) -> MemoryEvent:
        return PolicySet(**_event_fields(place, "policy set"), level=level, policy=policy)

    return draft


def with_decision(draft: Draft, **fields: Any) -> Draft:
    """`draft` with these fields of its decision: `with_decision(added("..."), by="model")`."""

    def with_decision(place: EventPlace) -> MemoryEvent:
        event = draft(place)
        return event.model_copy(update={"decision": event.decision.model_copy(update=fields)})

    return with_decision


def _statement(text: str | None) -> Statement | None:
    return None if text is None else Statement(text=text, excerpt=text)


def _event_fields(place: EventPlace, reason: str, *targets: UUID) -> dict[str, Any]:
    candidates = tuple(weighed_candidate(target) for target in targets)
    return {
        "event_id": event_id(place.owner, place.source_id, place.ordinal),
        "ordinal": place.ordinal,
        "decision": decision(reason, candidates=candidates),
    }
