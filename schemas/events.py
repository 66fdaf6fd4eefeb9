"""What a commit can say happened: a discriminated union, one class an event, named in the past tense.

A new event is a new class here, an example under `examples/`, and a case in the fold.
"""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from schemas.base import Count, Record, Timestamp
from schemas.facts import NewFact, Statement
from schemas.provenance import Decision

Targets = Annotated[tuple[UUID, ...], Field(min_length=1)]


class _Event(Record):
    event_id: UUID
    ordinal: Count
    decision: Decision


class FactAdded(_Event):
    """A new active fact; `unresolved` where no valid decision on its conflict could be had."""

    event: Literal["fact_added"] = "fact_added"
    fact: NewFact
    unresolved: bool = False


class FactSkipped(_Event):
    """The statement repeats `target` word for word or nearly so: counted as a mention."""

    event: Literal["fact_skipped"] = "fact_skipped"
    target: UUID
    statement: Statement


class FactConfirmed(_Event):
    """The statement says what `target` already says: its confidence rises."""

    event: Literal["fact_confirmed"] = "fact_confirmed"
    target: UUID
    statement: Statement


class FactsMerged(_Event):
    """`targets` and the statement became one richer fact."""

    event: Literal["facts_merged"] = "facts_merged"
    targets: Targets
    statement: Statement
    fact: NewFact


class FactReplaced(_Event):
    """`targets` were true until `ended_at`, then `fact` became true."""

    event: Literal["fact_replaced"] = "fact_replaced"
    targets: Targets
    ended_at: Timestamp
    fact: NewFact


class FactContradicted(_Event):
    """`targets` were never true: they leave what is believed, and `fact` stands."""

    event: Literal["fact_contradicted"] = "fact_contradicted"
    targets: Targets
    fact: NewFact


MemoryEvent = Annotated[
    FactAdded | FactSkipped | FactConfirmed | FactsMerged | FactReplaced | FactContradicted,
    Field(discriminator="event"),
]
EVENTS = (FactAdded, FactSkipped, FactConfirmed, FactsMerged, FactReplaced, FactContradicted)
