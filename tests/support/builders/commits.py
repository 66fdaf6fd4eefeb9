"""Real records in few words, for tests: `commit("t1", added("Alice lives in Bern."), at=day(1))`.

An event is drafted without ids and times; `commit` gives it its place, and they follow from owner, source and ordinal.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas.base import Outcome
from mnemolog.schemas.command import CommandPayload
from mnemolog.schemas.commit import Commit
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
    SubjectsChanged,
)
from mnemolog.schemas.facts import CONFIDENCE_OF_CERTAINTY, MovedEnd, NewFact, Reversal, Statement
from mnemolog.schemas.ids import event_id, fact_id
from mnemolog.schemas.policy import Level, Policy
from mnemolog.schemas.provenance import Decision, Origin, Provenance, Step, WeighedCandidate
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector

MODEL = "test-embedder"
START_TIME = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")
_WHEN_SAID: Final[Any] = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlace:
    """The position of an event: what its ids and times follow from."""

    owner: str
    source_id: str
    ordinal: int
    at: datetime


Draft = Callable[[EventPlace], MemoryEvent]


def day(number: float) -> datetime:
    """`number` days after the start of all tests' time."""
    return START_TIME + timedelta(days=number)


def vector(*values: float, model: str = MODEL) -> Vector:
    """A unit vector in the direction of `values`."""
    length = math.hypot(*values)
    return Vector.from_values(model, [value / length for value in values])


def vector_with_similarity(cosine: float, model: str = MODEL) -> Vector:
    """A vector with this similarity to `vector_with_similarity(1)`, the direction of the first of three axes."""
    return vector(cosine, math.sqrt(1 - cosine * cosine), 0.0, model=model)


def pseudo_random_vector(seed: object, dimensions: int = 384, model: str = MODEL) -> Vector:
    """A direction of its own for each seed: two of them are nearly orthogonal."""
    source = random.Random(repr(seed))
    return vector(*(source.gauss(0, 1) for _ in range(dimensions)), model=model)


def commit(
    source_id: str,
    *drafts: Draft,
    scope: Scope | None = ALICE,
    at: datetime = START_TIME,
    outcome: Outcome | None = None,
    steps: Sequence[Step] = (),
    **fields: Any,
) -> Commit:
    """A commit decided three seconds after its turn occurred, published one second after."""
    owner = scope.owner if scope else source_id
    places = [EventPlace(owner=owner, source_id=source_id, ordinal=ordinal, at=at) for ordinal in range(len(drafts))]
    defaults: dict[str, Any] = {
        "source_id": source_id,
        "scope": scope,
        "origin": Origin(topic="conversation_turns", partition=0, offset=0),
        "occurred_at": at,
        "published_at": at + timedelta(seconds=1),
        "decided_at": at + timedelta(seconds=3),
        "outcome": outcome or ("stored" if drafts else "nothing_stored"),
        "events": tuple(draft(place) for draft, place in zip(drafts, places, strict=True)),
        "provenance": Provenance(steps=tuple(steps)),
    }
    return Commit(**defaults | fields)


def command_commit(source_id: str, payload: CommandPayload, *drafts: Draft, **fields: Any) -> Commit:
    """The commit of a command that was carried out; `fields` as for `commit`, `by` among them for its events."""
    by = fields.pop("by", "person")
    of_command: dict[str, Any] = {"outcome": "done", "source_kind": "command", "order": payload}
    return commit(source_id, *(with_decision(draft, by=by) for draft in drafts), **of_command | fields)


def event_id_at(committed: Commit, ordinal: int = 0) -> UUID:
    """The id of event `ordinal` of the commit."""
    return event_id(committed.owner, committed.source_id, ordinal)


def fact_id_at(committed: Commit, ordinal: int = 0) -> UUID:
    """The id of the fact that event `ordinal` of the commit brings."""
    return fact_id(committed.owner, committed.source_id, ordinal)


def decision(reason: str = "said so", **fields: Any) -> Decision:
    return Decision(**{"by": "rule", "reason": reason, **fields})


def weighed_candidate(target: UUID, similarity: float = 0.8) -> WeighedCandidate:
    return WeighedCandidate(fact_id=target, similarity=similarity)


def new_fact(place: EventPlace, text: str, **fields: Any) -> NewFact:
    """A fact with every field filled in; `fields` overrides any of them."""
    defaults: dict[str, Any] = {
        "fact_id": fact_id(place.owner, place.source_id, place.ordinal),
        "text": text,
        "excerpt": text,
        "search_text": text,
        "confidence": CONFIDENCE_OF_CERTAINTY["explicit"],
        "true_from": place.at,
        "vector": pseudo_random_vector(text, 3),
    }
    return NewFact(**defaults | fields)


def _drafted(
    build: Callable[..., MemoryEvent],
    reason: str,
    *weighed: UUID,
    text: str | None = None,
    fact: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Draft:
    """An event that weighs these facts, with a new fact where it has a text."""

    def draft(place: EventPlace) -> MemoryEvent:
        given = {name: place.at if value is _WHEN_SAID else value for name, value in fields.items()}
        if text is not None:
            given["fact"] = new_fact(place, text, **fact or {})
        return build(
            event_id=event_id(place.owner, place.source_id, place.ordinal),
            ordinal=place.ordinal,
            decision=decision(reason, candidates=tuple(map(weighed_candidate, weighed))),
            **given,
        )

    return draft


def _statement(text: str | None) -> Statement | None:
    return None if text is None else Statement(text=text, excerpt=text)


def added(
    text: str,
    *,
    unresolved: bool = False,
    ended_at: datetime | None = None,
    ended_by: UUID | None = None,
    reason: str = "nothing like it is known",
    **fact: Any,
) -> Draft:
    """With `ended_at` and `ended_by` a late statement about a closed value."""
    return _drafted(
        FactAdded, reason, text=text, fact=fact, unresolved=unresolved, ended_at=ended_at, ended_by=ended_by
    )


def skipped(
    target: UUID, text: str = "the same again", *, true_from: datetime | None = None, reason: str = "equal words"
) -> Draft:
    return _drafted(FactSkipped, reason, target, target=target, statement=_statement(text), true_from=true_from)


def confirmed(target: UUID, text: str = "the same in other words", *, reason: str = "known already") -> Draft:
    return _drafted(FactConfirmed, reason, target, target=target, statement=_statement(text))


def merged(text: str, *targets: UUID, reason: str = "both are true", **fact: Any) -> Draft:
    return _drafted(FactsMerged, reason, *targets, targets=targets, text=text, fact=fact, statement=_statement(text))


def replaced(
    text: str, *targets: UUID, ended_at: datetime | None = None, reason: str = "it has changed", **fact: Any
) -> Draft:
    at = ended_at or _WHEN_SAID
    return _drafted(FactReplaced, reason, *targets, targets=targets, ended_at=at, text=text, fact=fact)


def contradicted(text: str, *targets: UUID, reason: str = "it never was so", **fact: Any) -> Draft:
    return _drafted(FactContradicted, reason, *targets, targets=targets, text=text, fact=fact)


def extended(text: str, *targets: UUID, reason: str = "it tells more of it", **fact: Any) -> Draft:
    return _drafted(FactExtended, reason, *targets, targets=targets, text=text, fact=fact)


def related(text: str, *targets: UUID, reason: str = "it is about the same", **fact: Any) -> Draft:
    return _drafted(FactsRelated, reason, *targets, targets=targets, text=text, fact=fact)


def expired(
    *targets: UUID, ended_at: datetime | None = None, text: str | None = None, reason: str = "its end", **fact: Any
) -> Draft:
    """By the timer, or with `text` by an announcement."""
    at = ended_at or _WHEN_SAID
    return _drafted(FactExpired, reason, *targets, targets=targets, ended_at=at, text=text, fact=fact)


def retracted(
    *targets: UUID, ended_at: datetime | None = None, text: str | None = None, reason: str = "no longer", **fact: Any
) -> Draft:
    """Without `ended_at` deleted; `text` is the statement that says so."""
    return _drafted(FactRetracted, reason, *targets, targets=targets, ended_at=ended_at, text=text, fact=fact)


def pending(
    text: str,
    *targets: UUID,
    action: Any = "contradict",
    ended_at: datetime | None = None,
    guard: Any = "high_confidence",
    needs_human: bool = False,
    **fact: Any,
) -> Draft:
    held: dict[str, Any] = {"action": action, "ended_at": ended_at, "guard": guard, "needs_human": needs_human}
    return _drafted(FactPending, "it is to be confirmed", *targets, targets=targets, text=text, fact=fact, **held)


def pending_confirmed(
    target: UUID,
    *targets: UUID,
    action: Any = "contradict",
    ended_at: datetime | None = None,
    text: str | None = None,
) -> Draft:
    ends: dict[str, Any] = {"target": target, "targets": targets, "action": action, "ended_at": ended_at}
    return _drafted(PendingConfirmed, "said again", target, *targets, statement=_statement(text), **ends)


def pending_rejected(
    target: UUID, *, confirmed: UUID | None = None, text: str | None = None, overtaken: bool = False
) -> Draft:
    fields: dict[str, Any] = {"target": target, "confirmed": confirmed, "statement": _statement(text)}
    fields["overtaken"] = overtaken
    return _drafted(PendingRejected, "the old fact was said again", target, **fields)


def corrected(text: str, target: UUID, *, ended_at: datetime | None = None, **fact: Any) -> Draft:
    """By a human."""
    by_human = {"authority": "human", "confidence": 1.0} | fact
    return _drafted(FactCorrected, "corrected", target, target=target, ended_at=ended_at, text=text, fact=by_human)


def resolved(target: UUID, *targets: UUID, action: Any = "replace", ended_at: datetime | None = None) -> Draft:
    ends: dict[str, Any] = {"target": target, "targets": targets, "action": action, "ended_at": ended_at}
    return _drafted(ConflictResolved, "settled", target, *targets, **ends)


def undone(
    event: UUID, *reversals: Reversal, undone_event: str = "fact_replaced", reinstated: UUID | None = None
) -> Draft:
    """Takes event `event` back; `reversals` are what it did."""
    return _drafted(
        DecisionUndone,
        "taken back",
        undone=event,
        undone_event=undone_event,
        reinstated=reinstated,
        reversals=reversals,
    )


def subjects_changed(*reversals: Reversal, entities: tuple[UUID, ...], moved_ends: tuple[MovedEnd, ...] = ()) -> Draft:
    """What follows for facts where these entities are merged or parted."""
    fields: dict[str, Any] = {"entities": entities, "reversals": reversals, "moved_ends": moved_ends}
    return _drafted(SubjectsChanged, "merged or parted", **fields)


def policy_set(policy: Policy, *, level: Level = "scope") -> Draft:
    return _drafted(PolicySet, "policy set", level=level, policy=policy)


def with_decision(draft: Draft, **fields: Any) -> Draft:
    """`draft` with these fields of its decision: `with_decision(added("..."), by="model")`."""

    def with_decision(place: EventPlace) -> MemoryEvent:
        event = draft(place)
        return event.model_copy(update={"decision": event.decision.model_copy(update=fields)})

    return with_decision
