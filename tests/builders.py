"""Real records in few words, for tests: `commit("t1", added("Alice lives in Bern."), at=day(1))`.

An event is drafted without ids; `commit` gives it its place, and the ids follow from owner, source and ordinal.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from schemas.commit import Commit
from schemas.envelopes import Outcome
from schemas.events import (
    FactAdded,
    FactConfirmed,
    FactContradicted,
    FactReplaced,
    FactSkipped,
    FactsMerged,
    MemoryEvent,
)
from schemas.facts import CONFIDENCE, NewFact, Statement
from schemas.ids import event_id, fact_id
from schemas.provenance import Decision, Origin, Provenance, Step, Weighed
from schemas.scope import Scope
from schemas.vector import Vector

MODEL = "test-embedder"
START = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
ALICE = Scope(user_id="alice")
BOB = Scope(user_id="bob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an event stands: what its ids and times follow from."""

    owner: str
    source_id: str
    ordinal: int
    at: datetime


Draft = Callable[[Place], MemoryEvent]


def day(number: float) -> datetime:
    """`number` days after the start of all tests' time."""
    return START + timedelta(days=number)


def vector(*values: float, model: str = MODEL) -> Vector:
    """A unit vector in the direction of `values`."""
    length = math.hypot(*values)
    return Vector.of(model, [value / length for value in values])


def similar(cosine: float, model: str = MODEL) -> Vector:
    """A vector with this similarity to `similar(1)`, which is the direction of the first of three axes."""
    return vector(cosine, math.sqrt(1 - cosine * cosine), 0.0, model=model)


def noise(seed: object, dimensions: int = 384, model: str = MODEL) -> Vector:
    """A direction of its own for each seed: two of them are nearly orthogonal."""
    source = random.Random(repr(seed))
    return vector(*(source.gauss(0, 1) for _ in range(dimensions)), model=model)


def decision(reason: str = "said so", **fields: Any) -> Decision:
    return Decision(**{"by": "threshold", "reason": reason, **fields})


def weighed(target: UUID, similarity: float = 0.8) -> Weighed:
    return Weighed(fact_id=target, similarity=similarity)


def new_fact(place: Place, text: str, **fields: Any) -> NewFact:
    """A fact with every field filled in; `fields` overrides any of them."""
    defaults: dict[str, Any] = {
        "fact_id": fact_id(place.owner, place.source_id, place.ordinal),
        "text": text,
        "excerpt": text,
        "search_text": text,
        "confidence": CONFIDENCE["explicit"],
        "true_from": place.at,
        "vector": noise(text, 3),
    }
    return NewFact(**defaults | fields)


def added(text: str, *, unresolved: bool = False, reason: str = "nothing like it is known", **fields: Any) -> Draft:
    def draft(place: Place) -> MemoryEvent:
        return FactAdded(**_head(place, reason), fact=new_fact(place, text, **fields), unresolved=unresolved)

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


def commit(
    source_id: str,
    *drafts: Draft,
    scope: Scope | None = ALICE,
    at: datetime = START,
    outcome: Outcome | None = None,
    steps: Sequence[Step] = (),
    **fields: Any,
) -> Commit:
    """A commit decided three seconds after its turn occurred, published one second after."""
    owner = scope.owner if scope else source_id
    places = [Place(owner=owner, source_id=source_id, ordinal=ordinal, at=at) for ordinal in range(len(drafts))]
    defaults: dict[str, Any] = {
        "source_id": source_id,
        "scope": scope,
        "origin": Origin(topic="conversation_turns", partition=0, offset=0),
        "occurred_at": at,
        "published_at": at + timedelta(seconds=1),
        "decided_at": at + timedelta(seconds=3),
        "outcome": outcome or ("facts" if drafts else "no_facts"),
        "events": tuple(draft(place) for draft, place in zip(drafts, places, strict=True)),
        "provenance": Provenance(steps=tuple(steps)),
    }
    return Commit(**defaults | fields)


def fact_of(committed: Commit, ordinal: int = 0) -> UUID:
    """The id of the fact that event `ordinal` of the commit brings."""
    return fact_id(committed.owner, committed.source_id, ordinal)


def _head(place: Place, reason: str, *targets: UUID) -> dict[str, Any]:
    candidates = tuple(weighed(target) for target in targets)
    return {
        "event_id": event_id(place.owner, place.source_id, place.ordinal),
        "ordinal": place.ordinal,
        "decision": decision(reason, candidates=candidates),
    }
