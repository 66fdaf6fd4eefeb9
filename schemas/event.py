"""What all events have in common: the facts that they add, name, change and end."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Final, Literal
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import Count, Record
from mnemolog.schemas.facts import MovedEnd, NewFact, PromotedFrom, Statement
from mnemolog.schemas.provenance import Decision, Verdict

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

    `moved_ends` are those of facts that were ended by what the event withdraws, or by what it says began earlier.
    `promoted_from` is the fact of another scope whose statement led to it.
    """

    fixed_overwrite: ClassVar[Overwrite | None] = None
    """How every event of the class ends its targets, where its name says so."""
    relation: ClassVar[Relation | None] = None
    """The relation of the new fact to the targets."""

    event_id: UUID
    ordinal: Count
    decision: Decision
    moved_ends: tuple[MovedEnd, ...] = Field(default=(), exclude_if=lambda moved_ends: not moved_ends)
    promoted_from: PromotedFrom | None = Field(default=None, exclude_if=lambda original: original is None)

    @property
    def new_fact(self) -> NewFact | None:
        """The fact that the event adds."""
        fact: NewFact | None = getattr(self, "fact", None)
        return fact

    @property
    def words(self) -> Statement | None:
        """What was said that led to the event; None where a command or the timer had no words."""
        statement: Statement | None = getattr(self, "statement", None)
        return statement or self.new_fact

    @property
    def told_id(self) -> UUID | None:
        """The fact that has what the event's words tell of entities: the new one, else the one that they repeat."""
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
        """The known facts that the event names, each once, the one that it is about first."""
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
        return () if self.new_fact is None else (self.new_fact.fact_id,)

    @property
    def confirmed_id(self) -> UUID | None:
        """The fact whose confidence the event raises."""
        return None

    @property
    def _target_ids(self) -> tuple[UUID, ...]:
        target: UUID | None = getattr(self, "target", None)
        return () if target is None else (target,)
