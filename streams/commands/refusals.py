"""Validates the items of a command, and refuses it as a whole with a list of all faults."""

from collections.abc import Iterable
from typing import Literal, get_args
from uuid import UUID

from mnemolog.schemas.command import Edit
from mnemolog.streams.commands.context import CommandContext, StoredFacts
from mnemolog.streams.errors import StreamsError

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


def pending_fault(context: CommandContext, fact_id: UUID, facts: StoredFacts) -> Fault | None:
    fault = open_fault(context, fact_id, facts)
    if fault is None and facts[fact_id].state.status != "pending_confirmation":
        return "not_pending", f"{fact_id} is active, not pending: delete it, or undo what added it"
    return fault


def unresolved_fault(context: CommandContext, fact_id: UUID, facts: StoredFacts) -> Fault | None:
    fault = open_fault(context, fact_id, facts)
    if fault is None and not facts[fact_id].state.unresolved:
        return "not_unresolved", f"{fact_id} is not unresolved: there is nothing to settle"
    return fault
