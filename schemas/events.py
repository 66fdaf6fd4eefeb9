"""What a commit can say happened: a discriminated union, one class an event, named in the past tense.

A new event is a new class here, an example under `examples/`, a case in `projections.effects`, and its words in
`mnemolog.schemas.vocabulary`.
"""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import Count, Fraction, Record, Text, Timestamp
from mnemolog.schemas.facts import FactStatus, NewFact, Statement
from mnemolog.schemas.policy import Level, Policy
from mnemolog.schemas.provenance import Decision, Guard

Targets = Annotated[tuple[UUID, ...], Field(min_length=1)]
Overwrite = Literal["merge", "replace", "contradict", "retract", "expire"]


class _Event(Record):
    event_id: UUID
    ordinal: Count
    decision: Decision


class FactAdded(_Event):
    """A new active fact; `unresolved` where no valid decision on its conflict could be had.

    Late news is history: it was true until `ended_at`, when the known fact `ended_by` became true.
    """

    event: Literal["fact_added"] = "fact_added"
    fact: NewFact
    unresolved: bool = False
    ended_at: Timestamp | None = None
    ended_by: UUID | None = None


class FactSkipped(_Event):
    """The statement repeats `target` word for word or nearly so: counted as a mention."""

    event: Literal["fact_skipped"] = "fact_skipped"
    target: UUID
    statement: Statement


class FactConfirmed(_Event):
    """The statement, or a command (then there is none), says what `target` already says: its confidence rises."""

    event: Literal["fact_confirmed"] = "fact_confirmed"
    target: UUID
    statement: Statement | None


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


class FactExtended(_Event):
    """`fact` adds detail to `targets`, which stay: relation `extends`."""

    event: Literal["fact_extended"] = "fact_extended"
    targets: Targets
    fact: NewFact


class FactsRelated(_Event):
    """`fact` is about the same as `targets` and says something else: relation `similar`."""

    event: Literal["facts_related"] = "facts_related"
    targets: Targets
    fact: NewFact


class FactExpired(_Event):
    """The end of `targets` has come (the timer tells) or was announced (then `fact` is the announcement)."""

    event: Literal["fact_expired"] = "fact_expired"
    targets: Targets
    ended_at: Timestamp
    fact: NewFact | None = None


class FactRetracted(_Event):
    """`targets` ended with nothing in their place; `fact` is the statement that says so, kept.

    Without `ended_at` they were deleted: they leave what is believed.
    """

    event: Literal["fact_retracted"] = "fact_retracted"
    targets: Targets
    ended_at: Timestamp | None
    fact: NewFact | None = None


class FactPending(_Event):
    """`fact` would overwrite `targets` as `action` says; until that is settled they stay active.

    `needs_human`: only a command can confirm it.
    """

    event: Literal["fact_pending"] = "fact_pending"
    targets: Targets
    action: Overwrite
    ended_at: Timestamp | None = None
    guard: Guard
    needs_human: bool = False
    fact: NewFact


class PendingConfirmed(_Event):
    """The pending fact `target` stands, and what it was held back from doing to `targets` is done."""

    event: Literal["pending_confirmed"] = "pending_confirmed"
    target: UUID
    targets: tuple[UUID, ...]
    action: Overwrite
    ended_at: Timestamp | None = None
    statement: Statement | None = None


class PendingRejected(_Event):
    """The pending fact `target` is closed; what it challenged stays, and `confirmed` is what spoke against it."""

    event: Literal["pending_rejected"] = "pending_rejected"
    target: UUID
    confirmed: UUID | None = None
    statement: Statement | None = None


class FactCorrected(_Event):
    """A human's word takes the place of `target`, which never was true, or was true until `ended_at`."""

    event: Literal["fact_corrected"] = "fact_corrected"
    target: UUID
    ended_at: Timestamp | None = None
    fact: NewFact


class ConflictResolved(_Event):
    """The unresolved fact `target` is settled against `targets`.

    `keep_both` leaves all as they are, `keep_old` archives `target`, `replace` and `contradict` end `targets`.
    """

    event: Literal["conflict_resolved"] = "conflict_resolved"
    target: UUID
    targets: tuple[UUID, ...] = ()
    action: Literal["keep_both", "keep_old", "replace", "contradict"]
    ended_at: Timestamp | None = None


class FactState(Record):
    """All of a fact that events can change."""

    status: FactStatus
    confidence: Fraction
    mention_count: Count
    last_confirmed_at: Timestamp | None
    true_to: Timestamp | None
    closed_at: Timestamp | None
    believed_from: Timestamp | None
    believed_to: Timestamp | None
    superseded_by: UUID | None
    unresolved: bool


class Reversal(Record):
    """A fact that is `now` so stands again as `before`; without `before` it did not exist, and is undone."""

    fact_id: UUID
    now: FactStatus
    before: FactState | None


class DecisionUndone(_Event):
    """The effects of event `undone` are taken back. Where that was an undo, `reinstated` is in effect again."""

    event: Literal["decision_undone"] = "decision_undone"
    undone: UUID
    undone_event: Text
    reinstated: UUID | None = None
    reversals: tuple[Reversal, ...]


class PolicySet(_Event):
    """`policy` holds from now on for the commit's tenant, or for exactly its scope."""

    event: Literal["policy_set"] = "policy_set"
    level: Level
    policy: Policy


EVENTS = (
    FactAdded,
    FactSkipped,
    FactConfirmed,
    FactsMerged,
    FactReplaced,
    FactContradicted,
    FactExtended,
    FactsRelated,
    FactExpired,
    FactRetracted,
    FactPending,
    PendingConfirmed,
    PendingRejected,
    FactCorrected,
    ConflictResolved,
    DecisionUndone,
    PolicySet,
)
MemoryEvent = Annotated[
    FactAdded
    | FactSkipped
    | FactConfirmed
    | FactsMerged
    | FactReplaced
    | FactContradicted
    | FactExtended
    | FactsRelated
    | FactExpired
    | FactRetracted
    | FactPending
    | PendingConfirmed
    | PendingRejected
    | FactCorrected
    | ConflictResolved
    | DecisionUndone
    | PolicySet,
    Field(discriminator="event"),
]


def new_fact(event: MemoryEvent) -> NewFact | None:
    """The fact that an event brings, if any."""
    fact: NewFact | None = getattr(event, "fact", None)
    return fact
