"""What a commit can say happened to facts: a discriminated union, one class an event, named in the past tense."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, get_args
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import Count, IfAny, IfSet, Record, Text, Timestamp
from mnemolog.schemas.facts import ConflictAction, MovedEnd, NewFact, PromotedFrom, Reversal, Statement
from mnemolog.schemas.policy import Level, Policy
from mnemolog.schemas.provenance import Decision, Guard, Verdict

Overwrite = Literal["merge", "replace", "contradict", "retract", "expire"]
Relation = Literal["extends", "similar"]
OVERWRITE_OF_VERDICT: Final[Mapping[Verdict, Overwrite]] = {
    "MERGE": "merge",
    "REPLACE": "replace",
    "CONTRADICT": "contradict",
    "RETRACT": "retract",
    "EXPIRE": "expire",
}
"""The verdicts that end their targets."""
VERDICTS_WITH_END_TIME: Final[frozenset[Verdict]] = frozenset({"REPLACE", "RETRACT", "EXPIRE"})
"""The verdicts that say when their targets end."""


class Event(Record):
    """What all events have in common; it is read from their fields `fact`, `statement`, `target` and `targets`.

    `moved_ends` are about facts that were ended by a fact which the event withdraws, or says to have begun earlier.
    `promoted_from` is the fact of another scope whose statement led to it.
    """

    fixed_overwrite: ClassVar[Overwrite | None] = None
    """How every event of the class ends its targets, where its name says so."""
    relation: ClassVar[Relation | None] = None
    """The relation of the new fact to the targets."""

    event_id: UUID
    ordinal: Count
    decision: Decision
    moved_ends: IfAny[tuple[MovedEnd, ...]] = ()
    promoted_from: IfSet[PromotedFrom] = None

    @property
    def new_fact(self) -> NewFact | None:
        fact: NewFact | None = getattr(self, "fact", None)
        return fact

    @property
    def words(self) -> Statement | None:
        """What was said that led to the event; None where a command or the timer had no words."""
        statement: Statement | None = getattr(self, "statement", None)
        return statement or self.new_fact

    @property
    def told_id(self) -> UUID | None:
        """The fact that gets the entities of the event's words: the new fact, else the fact that the words repeat."""
        if (fact := self.new_fact) is not None:
            return fact.fact_id
        return None if self.words is None else self.repeated_id or self.confirmed_id

    @property
    def subject_id(self) -> UUID | None:
        """The fact that the event is about: the new one, else the first that it names."""
        fact = self.new_fact
        return fact.fact_id if fact else next(iter(self.named_ids), None)

    @property
    def named_ids(self) -> tuple[UUID, ...]:
        """The known facts that the event names, each once, its subject first."""
        return tuple(dict.fromkeys((*self._target_ids, *self.affected_ids)))

    @property
    def affected_ids(self) -> tuple[UUID, ...]:
        """The known facts that the event compares with its subject or changes."""
        targets: tuple[UUID, ...] = getattr(self, "targets", self._target_ids)
        return targets

    @property
    def overwrite(self) -> Overwrite | None:
        """How the event ends `affected_ids`; None where it ends none of them."""
        return self.fixed_overwrite

    @property
    def end_time(self) -> datetime | None:
        """When what the event ends ceases to be true; None where it does not say so."""
        ended_at: datetime | None = getattr(self, "ended_at", None)
        return ended_at

    @property
    def ended_ids(self) -> tuple[UUID, ...]:
        """The facts that the event ends; late news has ended when it comes."""
        return self.affected_ids if self.overwrite else ()

    @property
    def disbelieved_ids(self) -> tuple[UUID, ...]:
        """The known facts that the event takes for never true; what was merged is not among them."""
        withdraws = self.overwrite == "contradict" or (self.overwrite == "retract" and self.end_time is None)
        return self.affected_ids if withdraws else ()

    @property
    def moved_beginning(self) -> tuple[UUID, datetime] | None:
        """The known fact of which the event says that it began earlier, and when."""
        repeated, true_from = self.repeated_id, getattr(self, "true_from", None)
        return None if repeated is None or true_from is None else (repeated, true_from)

    @property
    def repeated_id(self) -> UUID | None:
        """The known fact that the event's statement repeats."""
        return None

    @property
    def successor_ids(self) -> tuple[UUID, ...]:
        """The facts that hold where the disbelieved ones did, if they are values of the same key."""
        successor: UUID | None = self.new_fact.fact_id if self.new_fact else getattr(self, "ended_by", None)
        return () if successor is None else (successor,)

    @property
    def confirmed_id(self) -> UUID | None:
        """The fact whose confidence the event raises."""
        return None

    @property
    def _target_ids(self) -> tuple[UUID, ...]:
        target: UUID | None = getattr(self, "target", None)
        return () if target is None else (target,)


Targets = Annotated[tuple[UUID, ...], Field(min_length=1)]
Beginning = Annotated[Timestamp | None, Field(exclude_if=lambda moment: moment is None)]


class FactAdded(Event):
    """A new active fact; `unresolved` where no valid decision on its conflict could be had.

    Late news is history: it was true until `ended_at`, when the known fact `ended_by` became true.
    """

    event: Literal["fact_added"] = "fact_added"
    fact: NewFact
    unresolved: bool = False
    ended_at: Timestamp | None = None
    ended_by: UUID | None = None

    @property
    def named_ids(self) -> tuple[UUID, ...]:
        return ()

    @property
    def affected_ids(self) -> tuple[UUID, ...]:
        return () if self.ended_by is None else (self.ended_by,)

    @property
    def ended_ids(self) -> tuple[UUID, ...]:
        return () if self.ended_at is None else (self.fact.fact_id,)


class FactSkipped(Event):
    """The statement repeats `target` word for word or nearly so: counted as a mention.

    With `true_from` it says that `target` began then, which is earlier than was known; so in all repetitions. Where
    `of_ended`, it was said before `target` ended and came after that: the fact stays ended.
    """

    event: Literal["fact_skipped"] = "fact_skipped"
    target: UUID
    statement: Statement
    true_from: Beginning = None
    of_ended: IfAny[bool] = False

    @property
    def repeated_id(self) -> UUID | None:
        return self.target


class FactConfirmed(Event):
    """The statement, or a command (then there is none), says what `target` already says: its confidence rises."""

    event: Literal["fact_confirmed"] = "fact_confirmed"
    target: UUID
    statement: Statement | None
    true_from: Beginning = None

    @property
    def repeated_id(self) -> UUID | None:
        return self.target

    @property
    def confirmed_id(self) -> UUID | None:
        return self.target


class FactsMerged(Event):
    """`targets` and the statement became one richer fact."""

    fixed_overwrite = "merge"
    event: Literal["facts_merged"] = "facts_merged"
    targets: Targets
    statement: Statement
    fact: NewFact


class FactReplaced(Event):
    """`targets` were true until `ended_at`, then `fact` became true."""

    fixed_overwrite = "replace"
    event: Literal["fact_replaced"] = "fact_replaced"
    targets: Targets
    ended_at: Timestamp
    fact: NewFact


class FactContradicted(Event):
    """`targets` were never true: they are no longer believed, and `fact` is active."""

    fixed_overwrite = "contradict"
    event: Literal["fact_contradicted"] = "fact_contradicted"
    targets: Targets
    fact: NewFact


class FactExtended(Event):
    """`fact` adds detail to `targets`, which stay: relation `extends`."""

    relation = "extends"
    event: Literal["fact_extended"] = "fact_extended"
    targets: Targets
    fact: NewFact


class FactsRelated(Event):
    """`fact` is about the same as `targets` and says something else: relation `similar`."""

    relation = "similar"
    event: Literal["facts_related"] = "facts_related"
    targets: Targets
    fact: NewFact


class FactExpired(Event):
    """The end of `targets` has passed (the timer) or was announced (then `fact` is the announcement).

    `ended_by` is an announcement that was known before, and that is understood now.
    """

    fixed_overwrite = "expire"
    event: Literal["fact_expired"] = "fact_expired"
    targets: Targets
    ended_at: Timestamp
    fact: NewFact | None = None
    ended_by: IfSet[UUID] = None


class FactRetracted(Event):
    """`targets` ended with nothing in their place; `fact` is the statement that says so, kept.

    `ended_by` is such a statement that was known before, and that is understood now. Without `ended_at` they were
    deleted: they are no longer believed.
    """

    fixed_overwrite = "retract"
    event: Literal["fact_retracted"] = "fact_retracted"
    targets: Targets
    ended_at: Timestamp | None
    fact: NewFact | None = None
    ended_by: IfSet[UUID] = None


class FactPending(Event):
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


class PendingConfirmed(Event):
    """The pending fact `target` becomes active, and the overwrite of `targets` that was held back is done.

    It is `unresolved` where it then stands beside what other targets have become since. A rule confirms it, without
    `targets`, where all of them were deleted: that makes it no surer.
    """

    event: Literal["pending_confirmed"] = "pending_confirmed"
    target: UUID
    targets: tuple[UUID, ...]
    action: Overwrite
    ended_at: Timestamp | None = None
    statement: Statement | None = None
    unresolved: IfAny[bool] = False

    @property
    def overwrite(self) -> Overwrite | None:
        return self.action

    @property
    def confirmed_id(self) -> UUID | None:
        return None if self.statement is None and self.decision.by == "rule" else self.target

    @property
    def successor_ids(self) -> tuple[UUID, ...]:
        return (self.target,)


class PendingRejected(Event):
    """The pending fact `target` is closed; what it challenged stays, and `confirmed` is what was stated again.

    Equal words are a mention of `confirmed`: its confidence rises only where a model saw it in other words. `overtaken`
    where nobody rejects it: all that it challenged has ended, or another statement waits in its place.
    """

    event: Literal["pending_rejected"] = "pending_rejected"
    target: UUID
    confirmed: UUID | None = None
    statement: Statement | None = None
    true_from: Beginning = None
    overtaken: IfAny[bool] = False

    @property
    def repeated_id(self) -> UUID | None:
        return self.confirmed

    @property
    def affected_ids(self) -> tuple[UUID, ...]:
        return () if self.confirmed is None else (self.confirmed,)

    @property
    def ended_ids(self) -> tuple[UUID, ...]:
        return (self.target,)

    @property
    def confirmed_id(self) -> UUID | None:
        is_mention = self.statement is None or self.decision.verdict is None
        return None if is_mention else self.confirmed


class FactCorrected(Event):
    """A human's statement replaces `target`, which was never true, or was true until `ended_at`."""

    event: Literal["fact_corrected"] = "fact_corrected"
    target: UUID
    ended_at: Timestamp | None = None
    fact: NewFact

    @property
    def overwrite(self) -> Overwrite | None:
        return "replace" if self.ended_at else "merge"  # what never was true is no longer believed, like merged facts

    @property
    def disbelieved_ids(self) -> tuple[UUID, ...]:
        return () if self.ended_at else (self.target,)


class ConflictResolved(Event):
    """The unresolved fact `target` is settled against `targets`.

    `keep_both` leaves all as they are, `keep_old` archives `target`, `replace` and `contradict` end `targets`.
    """

    event: Literal["conflict_resolved"] = "conflict_resolved"
    target: UUID
    targets: tuple[UUID, ...] = ()
    action: ConflictAction
    ended_at: Timestamp | None = None

    @property
    def overwrite(self) -> Overwrite | None:
        return self.action if self.action in ("replace", "contradict") else None

    @property
    def ended_ids(self) -> tuple[UUID, ...]:
        return (self.target,) if self.action == "keep_old" else super().ended_ids

    @property
    def disbelieved_ids(self) -> tuple[UUID, ...]:
        return (self.target,) if self.action == "keep_old" else super().disbelieved_ids

    @property
    def successor_ids(self) -> tuple[UUID, ...]:
        return self.targets if self.action == "keep_old" else (self.target,)


class RestoringEvent(Event):
    """An event that gives each fact of its `reversals` a state as a whole, and is about no single fact."""

    reversals: tuple[Reversal, ...]

    @property
    def subject_id(self) -> UUID | None:
        return None

    @property
    def affected_ids(self) -> tuple[UUID, ...]:
        return tuple(reversal.fact_id for reversal in self.reversals)

    @property
    def disbelieved_ids(self) -> tuple[UUID, ...]:
        return tuple(reversal.fact_id for reversal in self.reversals if not reversal.is_believed)

    @property
    def successor_ids(self) -> tuple[UUID, ...]:
        return tuple(reversal.fact_id for reversal in self.reversals if reversal.is_believed)


class DecisionUndone(RestoringEvent):
    """The effects of event `undone` are undone. Where that was an undo, `reinstated` is in effect again."""

    event: Literal["decision_undone"] = "decision_undone"
    undone: UUID
    undone_event: Text
    reinstated: UUID | None = None


class SubjectsChanged(RestoringEvent):
    """Facts are about others than before, by a change of `entities` in the same commit: what rested on that follows it.

    A fact that ended in favour of what is now about another entity holds again (`moved_ends`, or `reversals` where it
    was no longer believed), and has its former end where both are about one entity again. Two values of one slot of
    one entity are unresolved.
    """

    event: Literal["subjects_changed"] = "subjects_changed"
    entities: Annotated[tuple[UUID, ...], Field(min_length=1)]


class PolicySet(Event):
    """`policy` applies from now on to the commit's tenant, or to exactly its scope."""

    event: Literal["policy_set"] = "policy_set"
    level: Level
    policy: Policy


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
    | SubjectsChanged
    | PolicySet,
    Field(discriminator="event"),
]
EVENT_CLASSES: Final[Mapping[str, type[Event]]] = {
    event.model_fields["event"].default: event for event in get_args(get_args(MemoryEvent)[0])
}
"""Every class of event by its name on the wire."""
