"""Carries out commands: it looks up what an order names, and leaves what that means to pure functions.

It writes nothing: the resolver commits what comes of it. All it reads is of the moment in which the resolver asks.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final
from uuid import UUID

from mnemolog.projections.known import KnownFacts
from mnemolog.projections.past import PastEvent, PastReader
from mnemolog.projections.state import scope_columns
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
from mnemolog.streams.stages import edits, orders, undoing
from mnemolog.streams.stages.carried import Carried
from mnemolog.streams.stages.given import Events, Given
from mnemolog.streams.stages.refusals import CommandRefusedError
from mnemolog.streams.topics import MEMORY_EVENTS

# One commit has to hold all that a command does, and another one all that its undo does.
MAX_FACTS: Final = 2000
MAX_BYTES: Final = MEMORY_EVENTS.max_message_bytes - 32 * 1024


class Commanding:
    """Carries out the order of one envelope whose `source_kind` is "command"."""

    def __init__(self, *, known: KnownFacts, past: PastReader, clock: Callable[[], datetime]) -> None:
        self._known = known
        self._past = past
        self._clock = clock

    async def __call__(self, envelope: MatchedFacts) -> Carried:
        """What comes of the order, or why nothing does. Waits while Postgres is away."""
        try:
            events = await self._events(envelope)
            _check_size(envelope, events)
        except CommandRefusedError as refusal:
            return Carried(outcome="rejected", reason=refusal.reason, detail=refusal.detail)
        return Carried(outcome="done", events=events)

    async def _events(self, envelope: MatchedFacts) -> Events:
        if envelope.order is None or envelope.scope is None:
            raise CommandRefusedError("invalid_command", "it has no order: publish it with one")
        given = Given(
            owner=envelope.owner,
            source_id=envelope.source_id,
            scope=envelope.scope,
            columns=scope_columns(envelope.scope),
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
                return orders.set_policy(given, order)
            case order:
                return await self._of_facts(given, order, envelope)

    async def _of_facts(
        self, given: Given, order: Update | Correct | Delete | Confirm | Reject | Expire, envelope: MatchedFacts
    ) -> Events:
        """The orders that name the facts they are about."""
        match order:
            case Update():
                facts = await self._known.facts([edit.fact_id for edit in order.edits])
                return edits.update(given, order, facts, envelope.facts)
            case Correct():
                return edits.correct(given, order, await self._known.facts([order.edit.fact_id]), envelope.facts)
            case Delete():
                return orders.delete(given, order, await self._known.facts(order.fact_ids))
            case Confirm():
                return await self._confirm(given, order)
            case Reject():
                return orders.reject(given, order, await self._known.facts(order.fact_ids))
            case Expire():
                return orders.expire(given, order, await self._known.facts(order.fact_ids))

    async def _confirm(self, given: Given, order: Confirm) -> Events:
        cases = await self._known.pending_cases(order.fact_ids)
        challenged = [target for case in cases.values() for target in case.targets]
        return orders.confirm(given, order, await self._known.facts([*order.fact_ids, *challenged]), cases)

    async def _resolve(self, given: Given, order: Resolve, envelope: MatchedFacts) -> Events:
        beside = () if order.targets else await self._known.conflict_of(order.fact_id)
        facts = await self._known.facts([order.fact_id, *order.targets, *beside])
        return edits.resolve(given, order, facts, beside, envelope.facts)

    async def _delete_all(self, given: Given, order: DeleteAll) -> Events:
        found = await self._known.in_scope(given.scope, key=order.key, category=order.category, limit=MAX_FACTS)
        if found.total > MAX_FACTS:
            detail = f"{found.total} facts are more than the {MAX_FACTS} that one command can delete"
            raise CommandRefusedError("invalid_command", f"{detail}: give a key or a category, or delete them by id")
        told = await self._known.facts(found.fact_ids) if len(found.fact_ids) <= MAX_ITEMS else {}
        return orders.delete_all(given, found.fact_ids, told)

    async def _undo(self, given: Given, order: Undo) -> Events:
        aimed = _decisions(await self._past.aimed(given.scope, order, limit=MAX_FACTS + 1))
        latest = await self._past.events([event.latest for event in aimed])
        taken = _bounded(undoing.to_take_back(aimed, latest))
        while True:
            past = await self._past.past(given.scope, _concerned(taken))
            later = undoing.Undoing(past).in_the_way(taken)
            if not later or not order.cascade:
                return undoing.undo(given, taken, past)
            taken = _bounded([*taken, *later])


def _decisions(aimed: list[PastEvent]) -> list[PastEvent]:
    """What of it can be taken back. Raises `CommandRefusedError` where that is nothing."""
    if not aimed:
        detail = "nothing that was decided in this scope is what it aims at: check the id or the model, and the scope"
        raise CommandRefusedError("nothing_to_undo", detail)
    decisions = [event for event in aimed if event.event != "policy_set"]
    if not decisions:
        raise CommandRefusedError("nothing_to_undo", "a policy is not taken back: set the one that should hold")
    return decisions


def _bounded(events: list[PastEvent]) -> list[PastEvent]:
    if len(events) > MAX_FACTS:
        detail = f"more than the {MAX_FACTS} events that one command can take back: undo a part first, or less at once"
        raise CommandRefusedError("invalid_command", detail)
    return events


def _concerned(events: list[PastEvent]) -> list[UUID]:
    return list(dict.fromkeys(fact_id for event in events for fact_id in sorted(undoing.concerned(event))))


def _check_size(envelope: MatchedFacts, events: Events) -> None:
    """Raise `CommandRefusedError` for a command whose commit the log would not take."""
    size = len(envelope.model_dump_json(exclude={"facts"}).encode())
    size += sum(len(event.model_dump_json().encode()) + 1 for event in events)
    if size > MAX_BYTES:
        detail = f"what it does takes {size} bytes, and one commit {MAX_BYTES}: give it fewer items, or a narrower aim"
        raise CommandRefusedError("invalid_command", detail)
