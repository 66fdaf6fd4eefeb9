"""Carries out commands: it looks up what an order names, and leaves what that means to pure functions.

It writes nothing: the resolver commits what comes of it. All it reads is of the moment in which the resolver asks.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.projections.stores.event_history import EventHistoryStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.schemas.command import (
    MAX_ITEMS,
    Confirm,
    Correct,
    Delete,
    DeleteAll,
    Expire,
    Reject,
    Resolve,
    SetPolicy,
    Undo,
    Update,
)
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.stored import LoggedEvent
from mnemolog.streams.commands import edits, status_changes, undo
from mnemolog.streams.commands.context import CommandContext, Events
from mnemolog.streams.commands.refusals import CommandRefusedError
from mnemolog.streams.commands.result import CommandResult
from mnemolog.streams.kafka.topics import MEMORY_EVENTS

# One commit has to hold all that a command does, and another one all that its undo does.
MAX_FACTS: Final = 2000
MAX_BYTES: Final = MEMORY_EVENTS.max_message_bytes - 32 * 1024


class CommandHandler:
    """Carries out the order of one envelope whose `source_kind` is "command"."""

    def __init__(self, *, known: FactStore, event_history: EventHistoryStore, clock: Callable[[], datetime]) -> None:
        self._known = known
        self._event_history = event_history
        self._clock = clock

    async def __call__(self, envelope: MatchedFacts) -> CommandResult:
        """What comes of the order, or why nothing does. Waits while Postgres is away."""
        try:
            events = await self._events(envelope)
            _check_size(envelope, events)
        except CommandRefusedError as refusal:
            return CommandResult(outcome="rejected", reason=refusal.reason, detail=refusal.detail)
        return CommandResult(outcome="done", events=events)

    async def _events(self, envelope: MatchedFacts) -> Events:
        if envelope.order is None or envelope.scope is None:
            raise CommandRefusedError("invalid_command", "it has no order: publish it with one")
        given = CommandContext(
            owner=envelope.owner,
            source_id=envelope.source_id,
            scope=envelope.scope,
            issued_at=envelope.occurred_at,
            now=self._clock(),
            actor=envelope.actor,
        )
        match envelope.order:
            case Undo() as order:
                return await self._undo(given, order)
            case DeleteAll() as order:
                return await self._delete_all(given, order)
            case Resolve() as order:
                return await self._resolve(given, order, envelope)
            case SetPolicy() as order:
                return status_changes.set_policy(given, order)
            case order:
                return await self._fact_events(given, order, envelope)

    async def _fact_events(
        self,
        context: CommandContext,
        payload: Update | Correct | Delete | Confirm | Reject | Expire,
        envelope: MatchedFacts,
    ) -> Events:
        """The orders that name the facts they are about."""
        match payload:
            case Update():
                facts = await self._known.facts([edit.fact_id for edit in payload.edits])
                return edits.update(context, payload, facts, envelope.facts)
            case Correct():
                return edits.correct(context, payload, await self._known.facts([payload.edit.fact_id]), envelope.facts)
            case Delete():
                return status_changes.delete(context, payload, await self._known.facts(payload.fact_ids))
            case Confirm():
                return await self._confirm(context, payload)
            case Reject():
                return status_changes.reject(context, payload, await self._known.facts(payload.fact_ids))
            case Expire():
                return status_changes.expire(context, payload, await self._known.facts(payload.fact_ids))

    async def _confirm(self, context: CommandContext, payload: Confirm) -> Events:
        cases = await self._known.pending_cases(payload.fact_ids)
        challenged = [target for case in cases.values() for target in case.targets]
        return status_changes.confirm(
            context, payload, await self._known.facts([*payload.fact_ids, *challenged]), cases
        )

    async def _resolve(self, context: CommandContext, payload: Resolve, envelope: MatchedFacts) -> Events:
        beside = () if payload.targets else await self._known.conflicting_fact_ids(payload.fact_id)
        facts = await self._known.facts([payload.fact_id, *payload.targets, *beside])
        return edits.resolve(context, payload, facts, beside, envelope.facts)

    async def _delete_all(self, context: CommandContext, payload: DeleteAll) -> Events:
        found = await self._known.scope_facts(
            context.scope, key=payload.key, category=payload.category, limit=MAX_FACTS
        )
        if found.total > MAX_FACTS:
            detail = f"{found.total} facts are more than the {MAX_FACTS} that one command can delete"
            raise CommandRefusedError("invalid_command", f"{detail}: give a key or a category, or delete them by id")
        told = await self._known.facts(found.fact_ids) if len(found.fact_ids) <= MAX_ITEMS else {}
        return status_changes.delete_all(context, found.fact_ids, told)

    async def _undo(self, context: CommandContext, payload: Undo) -> Events:
        aimed = _undoable_events(await self._event_history.undo_targets(context.scope, payload, limit=MAX_FACTS + 1))
        latest = await self._event_history.events([event.latest_id for event in aimed])
        taken = _checked_count(undo.events_to_undo(aimed, latest))
        while True:
            past = await self._event_history.history_of(context.scope, _affected_fact_ids(taken))
            later = undo.UndoPlan(past).dependent_events(taken)
            if not later or not payload.cascade:
                return undo.undo(context, taken, past)
            taken = _checked_count([*taken, *later])


def _undoable_events(selected_events: list[LoggedEvent]) -> list[LoggedEvent]:
    """What of it can be taken back. Raises `CommandRefusedError` where that is nothing."""
    if not selected_events:
        detail = "nothing that was decided in this scope is what it aims at: check the id or the model, and the scope"
        raise CommandRefusedError("nothing_to_undo", detail)
    decisions = [event for event in selected_events if event.event != "policy_set"]
    if not decisions:
        raise CommandRefusedError("nothing_to_undo", "a policy is not taken back: set the one that should hold")
    return decisions


def _checked_count(events: list[LoggedEvent]) -> list[LoggedEvent]:
    if len(events) > MAX_FACTS:
        detail = f"more than the {MAX_FACTS} events that one command can take back: undo a part first, or less at once"
        raise CommandRefusedError("invalid_command", detail)
    return events


def _affected_fact_ids(events: list[LoggedEvent]) -> list[UUID]:
    return list(dict.fromkeys(fact_id for event in events for fact_id in sorted(undo.affected_facts(event))))


def _check_size(envelope: MatchedFacts, events: Events) -> None:
    """Raise `CommandRefusedError` for a command whose commit the log would not take."""
    size = len(envelope.model_dump_json(exclude={"facts"}).encode())
    size += sum(len(event.model_dump_json().encode()) + 1 for event in events)
    if size > MAX_BYTES:
        detail = f"what it does takes {size} bytes, and one commit {MAX_BYTES}: give it fewer items, or a narrower aim"
        raise CommandRefusedError("invalid_command", detail)
