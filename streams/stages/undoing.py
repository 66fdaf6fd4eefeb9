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

from mnemolog.projections.effects import OPEN
from mnemolog.projections.past import Past, PastEvent
from mnemolog.schemas.command import MAX_ITEMS
from mnemolog.schemas.events import DecisionUndone, Reversal, Standing
from mnemolog.streams.stages.given import Events, Given
from mnemolog.streams.stages.refusals import CommandRefusedError

MENTIONS: Final = ("fact_skipped", "fact_confirmed")
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
    def closes(self) -> bool:
        return self.settles and self.after.status not in OPEN

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
        raise CommandRefusedError("built_upon", f"later events ({len(later)}) build on it, {advice}: {told}")
    return tuple(
        _undone(given, ordinal, event, undoing.take_back(event), past)
        for ordinal, event in enumerate(reversed(in_order(taken)))
    )


def to_take_back(aimed: Sequence[PastEvent], latest: Iterable[PastEvent]) -> list[PastEvent]:
    """The events that hold of those aimed at, each for its root. Raises `CommandRefusedError` where there is none.

    A decision that was taken back and put back is taken back where it was put back last; an undo that was taken back
    stays so.
    """
    holding = {event.root.event_id: event for event in latest}
    wanted = {
        holds.event_id: holds
        for event in aimed
        if (holds := holding[event.root.event_id]).turns_on == event.turns_on and (event.turns_on or event.holds)
    }
    if not wanted:
        told = f"{aimed[0].event} of {aimed[0].source_id}"
        raise CommandRefusedError("already_undone", f"{told} is taken back already: to bring it back, undo that undo")
    return in_order(wanted.values())


class Undoing:
    """Takes events back, each at the facts as the one before left them; so the latest has to come first."""

    def __init__(self, past: Past) -> None:
        self._past = past
        self._events = {event.event_id: event for event in past.events}
        self._changes = _changes(past)
        self._naming: dict[UUID, list[PastEvent]] = {}
        self._turning: dict[UUID, list[PastEvent]] = {}
        for event in past.events:
            self._turning.setdefault(event.root.event_id, []).append(event)
            for fact_id in event.named:
                self._naming.setdefault(fact_id, []).append(event)
        self._standing = {fact_id: stored.standing for fact_id, stored in past.facts.items()}
        self._in_effect = {event.root.event_id for event in past.events if event.holds and event.turns_on}

    def in_the_way(self, taken: Collection[PastEvent]) -> list[PastEvent]:
        """The later events that hold, in the log's order, that build on `taken` and are not among them.

        A mere mention of a fact builds on what brought it. Nothing builds on a mere mention. What an undo took back can
        be in effect again only if the facts that it names were open to it.
        """
        known = {event.event_id for event in taken}
        found = {
            later.event_id: later
            for event in taken
            for fact_id in concerned(event)
            for later in self._naming.get(fact_id, ())
            if later.event_id not in known and self._builds_on(later, event, fact_id)
        }
        return in_order(found.values())

    def take_back(self, event: PastEvent) -> tuple[Reversal, ...]:
        """How the facts that the event brought or changed stand again."""
        (self._in_effect.discard if event.turns_on else self._in_effect.add)(event.root.event_id)
        return tuple(self._reversal(fact_id, event) for fact_id in sorted(event.facts))

    def _builds_on(self, later: PastEvent, event: PastEvent, fact_id: UUID) -> bool:
        if later.place <= event.place or not later.holds or self._comes_to_nothing(later, event):
            return False
        change, more = self._changes.get((event.event_id, fact_id)), self._changes.get((later.event_id, fact_id))
        if not event.turns_on and more is not None and more.closes and later.root.place < event.root.place:
            return True
        brought = fact_id == event.brought
        if not brought and (change is None or not change.settles):
            return False
        if more is None:
            return later.turns_on and later.root.event not in MENTIONS
        closes = brought or change is None or change.before.status not in OPEN
        return more.settles or (closes and later.turns_on)

    def _comes_to_nothing(self, later: PastEvent, event: PastEvent) -> bool:
        """Whether the root of `later` is in effect, or not, as it was when `event` came."""
        turned = [one.turns_on for one in self._turning[later.root.event_id] if one.place < event.place]
        return later.turns_on == (turned[-1] if turned else False)

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
        mentions = (
            self._events[state.event_id].occurred_at
            for state in states
            if state.event_id in self._in_effect and self._changes[state.event_id, fact_id].counts
        )
        return max(mentions, default=None)


def concerned(event: PastEvent) -> frozenset[UUID]:
    """The facts that taking an event back has to look at."""
    return event.facts if event.turns_on else event.facts | event.named


def _undone(
    given: Given, ordinal: int, event: PastEvent, reversals: tuple[Reversal, ...], past: Past
) -> DecisionUndone:
    """Taking back the undo of an undo is, once more, the undo of what both were about."""
    facts = [past.facts[reversal.fact_id] for reversal in reversals]
    decision = given.decision("human", f"took back {event.event} of {event.source_id}", facts[:MAX_ITEMS])
    return DecisionUndone(
        **given.head(ordinal, decision),
        undone=event.root.event_id if event.turns_on else event.event_id,
        undone_event=event.root.event if event.turns_on else event.event,
        reinstated=None if event.turns_on else event.root.event_id,
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
