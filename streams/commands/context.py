"""The context of one command, what commands ask of the tables, and the refusal of a command with all its faults."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Protocol, get_args
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.command import Command, Edit
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.provenance import DecidedBy, Decision
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import (
    DueExpiry,
    StoredFact,
)
from mnemolog.streams.errors import StreamsError

StoredFacts = Mapping[UUID, StoredFact]
Events = tuple[MemoryEvent, ...]

PublishCommand = Callable[[Command], Awaitable[object]]
"""Returns when the broker has the command."""

ACTOR_NAMES: Final[dict[DecidedBy, str]] = {"person": "a person", "timer": "the timer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """A command's owner, scope, time and actor; `now` is the time at which it is carried out."""

    owner: str
    source_id: str
    scope: Scope
    issued_at: datetime
    now: datetime
    actor: str | None

    def event_fields(self, ordinal: int, decision: Decision) -> dict[str, Any]:
        event_id = ids.event_id(self.owner, self.source_id, ordinal)
        return {"event_id": event_id, "ordinal": ordinal, "decision": decision}

    def decision(self, by: DecidedBy, done: str, facts: Iterable[StoredFact] = ()) -> Decision:
        """`done` is a verb in the past tense: what the actor did."""
        reason = f"{self.actor or ACTOR_NAMES[by]} {done}"
        return Decision(by=by, reason=reason, before=tuple(stored.snapshot for stored in facts))

    def owns(self, stored: StoredFact) -> bool:
        return stored.scope == self.scope


class ExpiryReader(Protocol):
    """Reads which facts are still active or pending although their end has passed."""

    async def due_expiries(self, now: datetime, *, after: DueExpiry | None, limit: int) -> list[DueExpiry]:
        """The next `limit` such facts after `after`."""


RefusalReason = Literal[
    "foreign_fact",
    "unknown_fact",
    "foreign_entity",
    "unknown_entity",
    "merged_entity",
    "name_taken",
    "closed_fact",
    "human_word",
    "not_pending",
    "not_unresolved",
    "invalid_command",
    "nothing_to_undo",
    "already_undone",
    "built_upon",
    "summaries_off",
    "nothing_to_summarise",
]
"""Why a command is refused, the gravest fault of an item first."""

Fault = tuple[RefusalReason, str]
"""What is wrong with one item of a command."""


class CommandRefusedError(StreamsError):
    """Nothing of the command is done. `detail` says what is wrong and what the caller can do."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def raise_for_faults(faults: Iterable[Fault | None]) -> None:
    """Raise `CommandRefusedError` for the gravest fault, if there is one, with a detail that lists all."""
    found = [fault for fault in faults if fault is not None]
    if found:
        reason = min((reason for reason, _ in found), key=get_args(RefusalReason).index)
        raise CommandRefusedError(reason, "; ".join(text for _, text in found))


def is_open(context: CommandContext, fact_id: UUID, facts: StoredFacts) -> bool:
    return open_fault(context, fact_id, facts) is None


def open_fault(context: CommandContext, fact_id: UUID, facts: StoredFacts) -> Fault | None:
    stored = facts.get(fact_id)
    if stored is None:
        return "unknown_fact", f"{fact_id} is not known: check the id"
    if not context.owns(stored):
        return "foreign_fact", f"{fact_id} belongs to another scope: send the command in the scope of the fact"
    if stored.is_open:
        return None
    return (
        "closed_fact",
        f"{fact_id} is {stored.state.status}: see its history for the fact in its place, or undo what closed it",
    )


def edit_fault(context: CommandContext, edit: Edit, facts: StoredFacts, *, by_human: bool) -> Fault | None:
    if fault := open_fault(context, edit.fact_id, facts):
        return fault
    stored = facts[edit.fact_id]
    if stored.state.status == "pending_confirmation":
        return (
            "closed_fact",
            f"{edit.fact_id} waits for a confirmation: confirm or reject it, then edit the active fact",
        )
    if stored.authority == "human" and not by_human:
        return "human_word", f"{edit.fact_id} is a human's word or immutable: only a human can correct it"
    return None
