"""What taking an event back means for facts, and what stands in its way: pure functions of what the tables tell.

Of a fact an event can change two parts. Its mentions (count, last confirmation, confidence) add up, so one of them can
be taken back whatever came later. Its standing (status, ends, beliefs) can be put back only while nothing builds on it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final
from uuid import UUID

from projections.past import Past, PastEvent
from schemas.command import MAX_ITEMS
from schemas.events import DecisionUndone, Reversal, Standing
from streams.stages.given import Events, Given
from streams.stages.refusals import CommandRefusedError

MENTIONS: Final = ("fact_skipped", "fact_confirmed")
OPEN: Final = ("active", "pending_confirmation")
MAX_TOLD: Final = 12
MAX_SAID: Final = 60  # characters of a text in a refusal
_COUNTED: Final = {"mention_count", "last_confirmed_at", "confidence"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one event did to one fact that was there before it."""

    before: Standing
    after: Standing

    @property
    def settles(self) -> bool:
        """Whether it changed more than mentions."""
        return self.before.model_dump(exclude=_COUNTED) != self.after.model_dump(exclude=_COUNTED)

    @property
    def counts(self) -> bool:
        """Whether it was a mention."""
        return _counted(self.before) != _counted(self.after)


def undo(given: Given, taken: Sequence[PastEvent], past: Past) -> Events:
    """Take events back, the latest first. Raises `CommandRefusedError` while others, in effect, build on them."""
    undoing = Undoing(past)
    later = undoing.in_the_way(taken)
    if later:
        told = "; ".join(map(_told, later[:MAX_TOLD])) + (
            f"; and {len(later) - MAX_TOLD} more" if later[MAX_TOLD:] else ""
        )
        advice = "take those back first, or all of them with cascade"
        raise CommandRefusedError("built_upon", f"{len(later)} later events build on it, {advice}: {told}")
    return tuple(
        _undone(given, ordinal, event, undoing.take_back(event), past)
        for ordinal, event in enumerate(reversed(in_order(taken)))
    )


class Undoing:
    """Takes events back, each at the facts as the one before left them; so the latest has to come first."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._events = {event.event_id: event for event in past.events}
        self._changes = _changes(past)
        self._naming: dict[UUID, list[PastEvent]] = {}
        for event in past.events:
            for fact_id in event.named:
                self._naming.setdefault(fact_id, []).append(event)
        self._standing = {fact_id: stored.standing for fact_id, stored in past.facts.items()}
        self._in_effect = {event.event_id for event in past.events if event.in_effect}

    def in_the_way(self, taken: Collection[PastEvent]) -> list[PastEvent]:
        """The later events in effect, in the log's order, that build on `taken` and are not among them.

        A mere mention of a fact builds on what brought it. Nothing builds on a mere mention.
        """
        known = {event.event_id for event in taken}
        found = {
            later.event_id: later
            for event in taken
            for fact_id in event.facts
            for later in self._naming.get(fact_id, ())
            if later.event_id not in known and self._builds_on(later, event, fact_id)
        }
        return in_order(found.values())

    def take_back(self, event: PastEvent) -> tuple[Reversal, ...]:
        """How the facts that the event brought or changed stand again."""
        self._in_effect.discard(event.event_id)
        if event.undoes is not None:
            self._in_effect.add(event.undoes)
        return tuple(self._reversal(fact_id, event) for fact_id in sorted(event.facts))

    def _builds_on(self, later: PastEvent, event: PastEvent, fact_id: UUID) -> bool:
        if later.place <= event.place or not later.in_effect or self._comes_to_nothing(later, event):
            return False
        change, more = self._changes.get((event.event_id, fact_id)), self._changes.get((later.event_id, fact_id))
        brought = fact_id == event.brought
        if not brought and (change is None or not change.settles):
            return False
        if more is None:
            return later.event not in MENTIONS and later.undoes is None
        closes = brought or change is None or change.before.status not in OPEN
        return more.settles or (closes and later.undoes is None)

    def _comes_to_nothing(self, later: PastEvent, event: PastEvent) -> bool:
        """Whether `later` only took back something that came after `event`: both together have changed nothing."""
        undone = self._events.get(later.undoes) if later.undoes else None
        return undone is not None and undone.place > event.place

    def _reversal(self, fact_id: UUID, event: PastEvent) -> Reversal:
        now = self._standing[fact_id]
        before = None if fact_id == event.brought else self._restored(fact_id, event, now)
        self._standing[fact_id] = before or now.model_copy(update={"status": "undone"})
        return Reversal(fact_id=fact_id, now=now.status, before=before)

    def _restored(self, fact_id: UUID, event: PastEvent, now: Standing) -> Standing:
        change = self._changes[event.event_id, fact_id]
        stands = change.before if change.settles else now
        if _counted(now) == _counted(change.after):
            return stands.model_copy(update=_counted(change.before))
        return stands.model_copy(
            update={
                "mention_count": max(0, now.mention_count - change.after.mention_count + change.before.mention_count),
                "confidence": _without(now.confidence, change),
                "last_confirmed_at": self._last_mention(fact_id),
            }
        )

    def _last_mention(self, fact_id: UUID) -> datetime | None:
        """When the fact was last mentioned, by the events that are in effect."""
        states = self._past.former.get(fact_id, ())
        events = (self._events[state.event_id] for state in states if state.event_id in self._in_effect)
        mentions = (
            event.occurred_at
            for event in events
            if event.undoes is None and self._changes[event.event_id, fact_id].counts
        )
        return max(mentions, default=None)


def _undone(
    given: Given, ordinal: int, event: PastEvent, reversals: tuple[Reversal, ...], past: Past
) -> DecisionUndone:
    facts = [past.facts[reversal.fact_id] for reversal in reversals]
    decision = given.decision("human", f"took back {event.event} of {event.source_id}", facts[:MAX_ITEMS])
    return DecisionUndone(
        **given.head(ordinal, decision),
        undone=event.event_id,
        undone_event=event.event,
        reinstated=event.undoes,
        reversals=reversals,
    )


def _told(event: PastEvent) -> str:
    said = f' "{event.said[:MAX_SAID]}"' if event.said else ""
    return f"{event.event_id} {event.event} of {event.source_id}{said}"


def in_order(events: Iterable[PastEvent]) -> list[PastEvent]:
    return sorted(events, key=lambda event: event.place)


def _changes(past: Past) -> dict[tuple[UUID, UUID], Change]:
    """By event and fact what the one did to the other. A fact's state after an event is that before its next one."""
    changes = {}
    for fact_id, states in past.former.items():
        standings = [*(state.standing for state in states), past.facts[fact_id].standing]
        for state, (before, after) in zip(states, pairwise(standings), strict=True):
            changes[state.event_id, fact_id] = Change(before=before, after=after)
    return changes


def _counted(standing: Standing) -> dict[str, object]:
    return standing.model_dump(include=_COUNTED)


def _without(confidence: float, change: Change) -> float:
    """Give back the part of the doubt that the change took away, whatever became of the rest since."""
    before, after = change.before.confidence, change.after.confidence
    if after in (before, 1):
        return confidence
    return min(1.0, max(0.0, 1 - (1 - confidence) * (1 - before) / (1 - after)))
