"""Generates conversations: a small world changes day by day, and people tell of it; all else is drawn at random."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.properties.sentences import NAME, SLOTS, SUBJECTS, Form, Meaning, Slot, write
from tests.support.builders.model_replies import fact_json

START: Final = datetime(2026, 3, 2, tzinfo=UTC)
HINTS: Final[Mapping[Form, str]] = {
    "state": "new",
    "change": "update",
    "correction": "update",
    "end": "retract",
    "announcement": "retract",
    "denial": "retract",
    "call_off": "retract",
}


@dataclass(frozen=True)
class Act:
    """The raw choices of one statement; the world makes sense of them."""

    person: int = 0
    slot: int = 0
    action: int = 0
    wording: int = 0
    subject: int = 0
    gap: int = 1
    nearness: int = 0
    certainty: int = 0


@dataclass(frozen=True)
class Said:
    """One statement as a model extracts it."""

    meaning: Meaning
    text: str
    subject: str | None
    nearness: str = "near"
    certainty: str = "explicit"
    event_time: datetime | None = None
    excerpt: str | None = None

    def extraction(self) -> Mapping[str, Any]:
        meaning = self.meaning
        return fact_json(
            self.text,
            f"{self.nearness} {meaning.key}: {self.text}",
            excerpt=self.excerpt or self.text,
            key=meaning.key,
            value=meaning.value,
            single_valued=meaning.slot.single_valued,
            category=meaning.slot.category,
            certainty=self.certainty,
            subject=self.subject,
            event_time=self.event_time or meaning.begins,
            valid_until=meaning.until,
            action_hint="update" if meaning.begins and meaning.holds else HINTS[meaning.form],
        )


@dataclass(frozen=True)
class SpokenTurn:
    """What is said at once. `recalled` are old texts that the application put into the prompt."""

    turn_id: str
    at: datetime
    said: tuple[Said, ...]
    speaker: str | None = None
    recalled: tuple[str, ...] = ()
    infer: bool = True
    immutable: bool = False

    def as_turn(self, scope: Scope) -> Turn:
        return Turn(
            turn_id=self.turn_id,
            scope=scope,
            messages=tuple(Message(role="user", content=one.text) for one in self.said),
            occurred_at=self.at,
            speaker=self.speaker,
            recalled=self.recalled,
            infer=self.infer,
            immutable=self.immutable,
        )

    def __str__(self) -> str:
        who = (f" {self.speaker}" if self.speaker else "") + (" immutable" if self.immutable else "")
        return f"{self.turn_id} {self.at:%m-%d}{who}: " + " ".join(
            f"{one.text}[{one.subject};{one.nearness}{';' + one.certainty if one.certainty != 'explicit' else ''}]"
            for one in self.said
        )


@dataclass
class World:
    """What is so, and what is planned, of each person and key; it gives what can be said of it on a day."""

    forms: frozenset[str]
    held: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    past: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    plans: dict[tuple[str, str], tuple[str, datetime]] = field(default_factory=dict)
    announced: dict[tuple[str, str], tuple[str, datetime]] = field(default_factory=dict)

    def tell(self, person: str, slot: Slot, action: int, day: datetime) -> Meaning:
        """One of the true things that can be said of a key today; saying it may make it so."""
        self._arrive(day)
        options = [meaning for meaning in self._options(person, slot, day) if self._allowed(meaning)]
        meaning = options[action % len(options)]
        self.note(meaning)
        return meaning

    def _allowed(self, meaning: Meaning) -> bool:
        names = {meaning.form} | ({"plan"} if meaning.begins and meaning.holds else set())
        names |= {"term"} if meaning.until and meaning.holds else set()
        names |= {"detail"} if meaning.details else set()
        return names <= self.forms

    def _arrive(self, day: datetime) -> None:
        for place, (value, begins) in list(self.plans.items()):
            if begins <= day:
                del self.plans[place]
                self.note(Meaning(*place, value, "change"))
        for place, (value, ends) in list(self.announced.items()):
            if ends <= day:
                del self.announced[place]
                self.note(Meaning(*place, value, "end"))

    def _options(self, person: str, slot: Slot, day: datetime) -> Iterator[Meaning]:
        place = (person, slot.key)
        held, plan = self.held.get(place, []), self.plans.get(place)

        def said(value: str, form: Form = "state", **fields: Any) -> Meaning:
            return Meaning(person, slot.key, value, form, **fields)

        others = [value for value in slot.values if value not in held and not (plan and plan[0] == value)]
        if slot.single_valued and held:
            if not plan and place not in self.announced:
                yield from (said(value, "change") for value in (*others, *others, *others))  # told more often
                yield said(others[0], begins=day + timedelta(days=20))
        else:
            yield from (said(value) for value in others)
            yield from (said(value, details=frozenset(slot.details[:1])) for value in others)
        yield said(others[-1] if others else held[0], until=day + timedelta(days=5))
        for value in held:
            yield from (said(value), said(value, "end"), said(value, "denial"))
            yield said(value, details=frozenset(slot.details))
            yield from (said(value, details=frozenset({detail})) for detail in slot.details)
            if place not in self.announced and not plan:
                yield said(value, "announcement", until=day + timedelta(days=15))
        if plan:
            yield from (said(plan[0], "call_off", begins=plan[1]), said(plan[0], begins=plan[1]))
        yield from (said(value, "end") for value in self.past.get(place, []) if value not in held)

    def note(self, meaning: Meaning) -> None:
        place = (meaning.person, meaning.key)
        held = self.held.setdefault(place, [])
        past = self.past.setdefault(place, [])
        match meaning.form:
            case "state" | "change" if meaning.begins:
                self.plans[place] = (meaning.value, meaning.begins)
            case "state" | "change" if meaning.until is None and meaning.value not in held:
                if meaning.slot.single_valued:
                    past += held
                    held.clear()
                held.append(meaning.value)
            case "end" if meaning.value in held:
                held.remove(meaning.value)
                past.append(meaning.value)
            case "announcement" if meaning.until:
                self.announced[place] = (meaning.value, meaning.until)
            case "call_off":
                self.plans.pop(place, None)
            case _:
                pass


ALL_FORMS: Final = frozenset({"state", "change", "end", "announcement", "denial", "call_off", "plan", "term", "detail"})


def told_turns(
    acts: Sequence[Act], forms: frozenset[str] = ALL_FORMS, certainties: Sequence[str] = ("explicit",)
) -> list[SpokenTurn]:
    """The turns of a conversation: each act is a statement, those without a day between them are of one turn."""
    world, day, turns = World(forms), START, list[SpokenTurn]()
    nearness = dict[str, str]()  # equal words have equal vectors
    for act in acts:
        people = list(SUBJECTS)[:3]
        person, slot = people[act.person % len(people)], SLOTS[act.slot % len(SLOTS)]
        day += timedelta(days=act.gap)
        meaning = world.tell(person, slot, act.action, day)
        subjects = [name for name in SUBJECTS[person] if name]  # without one it is in doubt who is meant
        subject = subjects[act.subject % len(subjects)]
        text = write(meaning, subject, act.wording)
        # what is far by its vector is found by its key alone
        nearnesses = ("near", "near", "twin", "far") if slot.single_valued else ("near", "near", "alike", "near")
        drawn = nearnesses[act.nearness % 4]
        one = Said(
            meaning,
            text,
            subject,
            nearness=nearness.setdefault(text, drawn),
            certainty=certainties[act.certainty % len(certainties)],
        )
        places = [(other.meaning.person, other.meaning.key) for other in turns[-1].said] if turns else []
        if turns and act.gap == 0 and (person, slot.key) not in places:
            turns[-1] = replace(turns[-1], said=(*turns[-1].said, one))
        else:
            if act.gap == 0:
                day += timedelta(days=1)
            turns.append(SpokenTurn(f"t{len(turns)}", day + timedelta(hours=9), (one,), NAME))
    return turns


@st.composite
def acts(draw: st.DrawFn, most: int) -> list[Act]:
    """Few people, keys and kinds of statements in one conversation, so that these are about the same and return."""
    people = draw(st.sampled_from([(0,), (0,), (0, 0, 1), (0, 1, 2)]))
    slots = draw(st.lists(st.integers(0, len(SLOTS) - 1), min_size=1, max_size=2))
    subjects = draw(st.sampled_from([(1,), (2,), (1, 2), (0, 1, 2, 3, 4)]))
    gaps = draw(st.sampled_from([(1, 2, 3, 9), (1, 2, 3, 9, 0), (1, 0)]))
    actions = draw(st.lists(st.integers(0, 23), min_size=2, max_size=4))
    act = st.builds(
        Act,
        person=st.sampled_from(people),
        slot=st.sampled_from(slots),
        action=st.sampled_from(actions),
        wording=st.sampled_from([0, 0, 0, 1]),
        subject=st.sampled_from(subjects),
        gap=st.sampled_from(gaps),
        nearness=st.sampled_from(draw(st.sampled_from([(0,), (0, 2), (0, 1, 2, 3)]))),
        certainty=st.just(0),
    )
    count = draw(st.integers(3, most))
    return draw(st.lists(act, min_size=count, max_size=count))


def some_forms(all_forms: frozenset[str]) -> st.SearchStrategy[frozenset[str]]:
    """Plain statements, in half of the conversations details, and up to two of the other forms."""
    plain = frozenset({"state", "change"})
    others = st.lists(st.sampled_from(sorted(all_forms - plain - {"detail"})), max_size=2)
    details = st.sampled_from([(), ("detail",)])
    return st.builds(plain.union, others, details)
