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
    Reversal,
)
from mnemolog.schemas.facts import Statement
from mnemolog.schemas.ids import event_id
from mnemolog.schemas.policy import Level, Policy
from tests.values import Place, decision, new_fact, weighed

Draft = Callable[[Place], MemoryEvent]


def added(
    text: str,
    *,
    unresolved: bool = False,
    ended_at: datetime | None = None,
    ended_by: UUID | None = None,
    reason: str = "nothing like it is known",
    **fields: Any,
) -> Draft:
    """With `ended_at` and `ended_by` late news."""

    def draft(place: Place) -> MemoryEvent:
        return FactAdded(
            **_head(place, reason),
            fact=new_fact(place, text, **fields),
            unresolved=unresolved,
            ended_at=ended_at,
            ended_by=ended_by,
        )

    return draft


def skipped(target: UUID, text: str = "the same again", *, reason: str = "equal words") -> Draft:
    def draft(place: Place) -> MemoryEvent:
        statement = Statement(text=text, excerpt=text)
        return FactSkipped(**_head(place, reason, target), target=target, statement=statement)

    return draft


def confirmed(target: UUID, text: str = "the same in other words", *, reason: str = "known already") -> Draft:
    def draft(place: Place) -> MemoryEvent:
        statement = Statement(text=text, excerpt=text)
        return FactConfirmed(**_head(place, reason, target), target=target, statement=statement)

    return draft


def merged(text: str, *targets: UUID, reason: str = "both are true", **fields: Any) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return FactsMerged(
            **_head(place, reason, *targets),
            targets=targets,
            statement=Statement(text=text, excerpt=text),
            fact=new_fact(place, text, **fields),
        )

    return draft


def replaced(
    text: str, *targets: UUID, ended_at: datetime | None = None, reason: str = "it has changed", **fields: Any
) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return FactReplaced(
            **_head(place, reason, *targets),
            targets=targets,
            ended_at=ended_at or place.at,
            fact=new_fact(place, text, **fields),
        )

    return draft


def contradicted(text: str, *targets: UUID, reason: str = "it never was so", **fields: Any) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return FactContradicted(**_head(place, reason, *targets), targets=targets, fact=new_fact(place, text, **fields))

    return draft


def extended(text: str, *targets: UUID, reason: str = "it tells more of it", **fields: Any) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return FactExtended(**_head(place, reason, *targets), targets=targets, fact=new_fact(place, text, **fields))

    return draft


def related(text: str, *targets: UUID, reason: str = "it is about the same", **fields: Any) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return FactsRelated(**_head(place, reason, *targets), targets=targets, fact=new_fact(place, text, **fields))

    return draft


def expired(
    *targets: UUID, ended_at: datetime | None = None, text: str | None = None, reason: str = "its end", **fields: Any
) -> Draft:
    """By the timer, or with `text` by an announcement."""

    def draft(place: Place) -> MemoryEvent:
        return FactExpired(
            **_head(place, reason, *targets),
            targets=targets,
            ended_at=ended_at or place.at,
            fact=None if text is None else new_fact(place, text, **fields),
        )

    return draft


def retracted(
    *targets: UUID, ended_at: datetime | None = None, text: str | None = None, reason: str = "no longer", **fields: Any
) -> Draft:
    """Without `ended_at` deleted; `text` is the statement that says so."""

    def draft(place: Place) -> MemoryEvent:
        return FactRetracted(
            **_head(place, reason, *targets),
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
    def draft(place: Place) -> MemoryEvent:
        return FactPending(
            **_head(place, "it is to be confirmed", *targets),
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
    def draft(place: Place) -> MemoryEvent:
        return PendingConfirmed(
            **_head(place, "said again", target, *targets),
            target=target,
            targets=targets,
            action=action,
            ended_at=ended_at,
            statement=_statement(text),
        )

    return draft


def pending_rejected(target: UUID, *, confirmed: UUID | None = None, text: str | None = None) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return PendingRejected(
            **_head(place, "the old fact was said again", target),
            target=target,
            confirmed=confirmed,
            statement=_statement(text),
        )

    return draft


def corrected(text: str, target: UUID, *, ended_at: datetime | None = None, **fields: Any) -> Draft:
    """A human's word."""

    def draft(place: Place) -> MemoryEvent:
        fact = new_fact(place, text, **{"authority": "human", "confidence": 1.0} | fields)
        return FactCorrected(**_head(place, "corrected", target), target=target, ended_at=ended_at, fact=fact)

    return draft


def resolved(target: UUID, *targets: UUID, action: Any = "replace", ended_at: datetime | None = None) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return ConflictResolved(
            **_head(place, "settled", target, *targets),
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

    def draft(place: Place) -> MemoryEvent:
        return DecisionUndone(
            **_head(place, "taken back"),
            undone=event,
            undone_event=undone_event,
            reinstated=reinstated,
            reversals=reversals,
        )

    return draft


def policy_set(policy: Policy, *, level: Level = "scope") -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return PolicySet(**_head(place, "policy set"), level=level, policy=policy)

    return draft


def decided(draft: Draft, **fields: Any) -> Draft:
    """`draft` with these fields of its decision: `decided(added("..."), by="model", model="m", prompt_version="p")`."""

    def with_decision(place: Place) -> MemoryEvent:
        event = draft(place)
        return event.model_copy(update={"decision": event.decision.model_copy(update=fields)})

    return with_decision


def _statement(text: str | None) -> Statement | None:
    return None if text is None else Statement(text=text, excerpt=text)


def _head(place: Place, reason: str, *targets: UUID) -> dict[str, Any]:
    candidates = tuple(weighed(target) for target in targets)
    return {
        "event_id": event_id(place.owner, place.source_id, place.ordinal),
        "ordinal": place.ordinal,
        "decision": decision(reason, candidates=candidates),
    }
