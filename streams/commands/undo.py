"""What an undo changes: which events it reverts, what the facts become, and which later events depend on them.

An event changes two parts of a fact. Mentions (count, last confirmation, confidence) add up: one of them can be undone
whatever came later. The rest of the state (status, ends, beliefs) can be restored only while nothing depends on it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from uuid import UUID

from mnemolog.schemas.command import MAX_ITEMS
from mnemolog.schemas.events import DecisionUndone
from mnemolog.schemas.facts import OPEN_STATUSES, FactState, Reversal
from mnemolog.schemas.stored import EventHistory, LoggedEvent
from mnemolog.streams.commands.context import CommandContext, CommandRefusedError

MENTION_EVENTS: Final = ("fact_skipped", "fact_confirmed")
INDEPENDENT_EVENTS: Final = (*MENTION_EVENTS, "fact_added")
"""What only mentions a fact, or names it as the end of late news, does not depend on it: such an end is taken back."""
NOT_UNDONE: Final = {
    "policy_set": "a policy cannot be undone: set the policy that should apply",
    "subjects_changed": "it follows from a change of entities: undo the command that made that",
}
MAX_LISTED_EVENTS: Final = 12
MAX_QUOTED_CHARACTERS: Final = 60  # characters of a text in a refusal
_MENTION_FIELDS: Final = {"mention_count", "last_confirmed_at", "confidence"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """What one event did to one fact that was there before it."""

    before: FactState
    after: FactState

    @property
    def changes_state(self) -> bool:
        return self.before.model_dump(exclude=_MENTION_FIELDS) != self.after.model_dump(exclude=_MENTION_FIELDS)

    @property
    def is_mention(self) -> bool:
        return _mention_state(self.before) != _mention_state(self.after)


def undo(context: CommandContext, events: Sequence[LoggedEvent], history: EventHistory) -> tuple[DecisionUndone, ...]:
    """Undo events, the latest first. Raises `CommandRefusedError` while other events in effect depend on them.

    Undoing the undo of an undo undoes, once more, the original decision.
    """
    plan = UndoPlan(history)
    later = plan.dependent_events(events)
    if later:
        listed = "; ".join(
            f"{event.event_id} {event.event} of {event.source_id}"
            + (f' "{event.statement_text[:MAX_QUOTED_CHARACTERS]}"' if event.statement_text else "")
            for event in later[:MAX_LISTED_EVENTS]
        )
        more = f"; and {len(later) - MAX_LISTED_EVENTS} more" if later[MAX_LISTED_EVENTS:] else ""
        number = "1 later event depends" if len(later) == 1 else f"{len(later)} later events depend"
        raise CommandRefusedError(
            "built_upon", f"{number} on it: undo what is later first, or all with cascade: {listed}{more}"
        )
    undone: list[DecisionUndone] = []
    for ordinal, event in enumerate(reversed(in_log_order(events))):
        reversals = plan.revert(event)
        facts = [history.facts[reversal.fact_id] for reversal in reversals]
        decision = context.decision("person", f"took back {event.event} of {event.source_id}", facts[:MAX_ITEMS])
        undone.append(
            DecisionUndone(
                **context.event_fields(ordinal, decision),
                undone=event.original.event_id if event.enables else event.event_id,
                undone_event=event.original.event if event.enables else event.event,
                reinstated=None if event.enables else event.original.event_id,
                reversals=reversals,
            )
        )
    return tuple(undone)


def undoable_events(selected_events: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """The selected events that can be undone. Raises `CommandRefusedError` where there is none."""
    if not selected_events:
        detail = "no decision of this scope matches: check the id or the model, and the scope"
        raise CommandRefusedError("nothing_to_undo", detail)
    decisions = [event for event in selected_events if event.event not in NOT_UNDONE]
    if not decisions:
        raise CommandRefusedError("nothing_to_undo", NOT_UNDONE[selected_events[0].event])
    return decisions


def events_to_undo(selected_events: Sequence[LoggedEvent], latest: Iterable[LoggedEvent]) -> list[LoggedEvent]:
    """The selected events that are in effect, each the `latest` event of its original decision.

    A decision that was undone and reinstated is undone at its last reinstatement; an undo that was undone stays so.
    Raises `CommandRefusedError` where all of them are undone.
    """
    holding = {event.original.event_id: event for event in latest}
    wanted = {
        holds.event_id: holds
        for event in selected_events
        if (holds := holding[event.original.event_id]).enables == event.enables and (event.enables or event.is_latest)
    }
    if not wanted:
        first = f"{selected_events[0].event} of {selected_events[0].source_id}"
        raise CommandRefusedError("already_undone", f"{first} is undone already: to reinstate it, undo that undo")
    return in_log_order(wanted.values())


class UndoPlan:
    """Reverts events one after another, the latest first, each on the facts as the last reverted event left them."""

    def __init__(self, history: EventHistory) -> None:
        self._history = history
        self._events = {event.event_id: event for event in history.events}
        self._changes = _changes(history)
        self._events_by_fact: dict[UUID, list[LoggedEvent]] = {}
        self._events_by_original: dict[UUID, list[LoggedEvent]] = {}
        for event in history.events:
            self._events_by_original.setdefault(event.original.event_id, []).append(event)
            for fact_id in event.named_fact_ids:
                self._events_by_fact.setdefault(fact_id, []).append(event)
        self._states = {fact_id: stored.state for fact_id, stored in history.facts.items()}
        self._in_effect = {event.original.event_id for event in history.events if event.is_latest and event.enables}
        self._reverted: set[UUID] = set()

    def dependent_events(self, events: Collection[LoggedEvent]) -> list[LoggedEvent]:
        """The later events in effect that depend on `events` and are not among them, in the log's order.

        A mention of a fact depends on the event that added it; nothing depends on a mention. What an undo reverted can
        be in effect again only if the facts that it names were open to it.
        """
        known = {event.event_id for event in events}
        found = {
            later.event_id: later
            for event in events
            for fact_id in affected_facts(event)
            for later in self._events_by_fact.get(fact_id, ())
            if later.event_id not in known and self._depends_on(later, event, fact_id)
        }
        return in_log_order(found.values())

    def revert(self, event: LoggedEvent) -> tuple[Reversal, ...]:
        """What becomes of the facts that the event added or changed."""
        (self._in_effect.discard if event.enables else self._in_effect.add)(event.original.event_id)
        self._reverted.add(event.event_id)
        reversals = []
        for fact_id in sorted(event.affected_fact_ids):
            now = self._states[fact_id]
            before = None if fact_id == event.new_fact_id else self._restored(fact_id, event, now)
            self._states[fact_id] = before or now.model_copy(update={"status": "undone"})
            reversals.append(Reversal(fact_id=fact_id, now=now.status, before=before))
        return tuple(reversals)

    def _depends_on(self, later: LoggedEvent, event: LoggedEvent, fact_id: UUID) -> bool:
        # What is restored is held against the entities that hold now, so that nothing depends on `subjects_changed`.
        if later.position <= event.position or not later.is_latest or later.event == "subjects_changed":
            return False
        turned = [one for one in self._events_by_original[later.original.event_id] if one.position < event.position]
        if later.enables == (turned[-1].enables if turned else False):  # as it was when `event` came
            return False
        change, more = self._changes.get((event.event_id, fact_id)), self._changes.get((later.event_id, fact_id))
        if (
            not event.enables
            and more is not None
            and more.changes_state
            and more.after.status not in OPEN_STATUSES
            and later.original.position < event.original.position
        ):
            return True
        brought = fact_id == event.new_fact_id
        if not brought and (change is None or not change.changes_state):
            return False
        if more is None:
            return later.enables and later.original.event not in INDEPENDENT_EVENTS
        closes = brought or change is None or change.before.status not in OPEN_STATUSES
        return more.changes_state or (closes and later.enables)

    def _restored(self, fact_id: UUID, event: LoggedEvent, now: FactState) -> FactState:
        """The state without what the event changed.

        Mentions come back as they were, unless a later event that is not reverted changed them: their sum may be as
        before. Else the doubt that this one took away comes back, and the last mention is the last one in effect.
        """
        change = self._changes[event.event_id, fact_id]
        before, after = change.before, change.after
        state = before if change.changes_state else now
        was_mentioned_since = any(
            self._changes[later.event_id, fact_id].is_mention
            for later in self._events_by_fact[fact_id]
            if later.position > event.position
            and later.event_id not in self._reverted
            and (later.event_id, fact_id) in self._changes
        )
        if _mention_state(now) == _mention_state(after) and not was_mentioned_since:
            return state.model_copy(update=_mention_state(before))
        confidence = now.confidence
        if after.confidence not in (before.confidence, 1):
            doubt = (1 - confidence) * (1 - before.confidence) / (1 - after.confidence)
            confidence = min(1.0, max(0.0, 1 - doubt))
        mentions = (
            self._events[former.event_id].occurred_at
            for former in self._history.former_states.get(fact_id, ())
            if former.event_id in self._in_effect and self._changes[former.event_id, fact_id].is_mention
        )
        return state.model_copy(
            update={
                "mention_count": max(0, now.mention_count - after.mention_count + before.mention_count),
                "confidence": confidence,
                "last_confirmed_at": max(mentions, default=None),
            }
        )


def affected_facts(event: LoggedEvent) -> frozenset[UUID]:
    return event.affected_fact_ids if event.enables else event.affected_fact_ids | event.named_fact_ids


def in_log_order(events: Iterable[LoggedEvent]) -> list[LoggedEvent]:
    return sorted(events, key=lambda event: event.position)


def _changes(history: EventHistory) -> dict[tuple[UUID, UUID], FactChange]:
    """What each event did to each fact. A fact's state after an event is its state before its next event."""
    changes = {}
    for fact_id, states in history.former_states.items():
        fact_states = [*(state.state for state in states), history.facts[fact_id].state]
        for state, (before, after) in zip(states, pairwise(fact_states), strict=True):
            changes[state.event_id, fact_id] = FactChange(before=before, after=after)
    return changes


def _mention_state(state: FactState) -> dict[str, object]:
    return state.model_dump(include=_MENTION_FIELDS)
