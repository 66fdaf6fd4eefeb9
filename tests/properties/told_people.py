"""Generates histories of people: who is named how, what is said of them, and what a person decides about them."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, Literal, cast

from tests.properties.people import USER, People, Told, holders_of, key_of, people_after
from tests.properties.sentences import CALLED, NAME, SLOTS, TIES, Form, Meaning, read
from tests.properties.steps import Kind, Order, Said, Step, Turn, on_day
from tests.properties.told import History

CIRCLES: Final = (
    ("Ana", "Bruno"),
    ("Ana", "Bruno", "Cleo"),
    ("Alex", "Alexander", "Alexandra"),
    ("Dan", "Daniel"),
    ("Dan", "Daniela"),
    (NAME, "Ana"),
)
"""The names of a history: ones that have nothing in common, short and full ones, and a namesake of the user."""
THEMES: Final[tuple[tuple[Kind | None, ...], ...]] = (
    (None,),
    (None, None, "undo"),
    (None, None, "merge", "undo"),
    (None, None, "merge", "split", "split"),
    (None, "merge", "split", "undo"),
    (None, None, "split"),
    (None, "merge", "forget"),
    (None, None, None, "confirm", "reject", "reject", "undo"),
    (None, None, "rename", "call", "merge", "split"),
    (None, None, "delete", "summarise", "undo"),
    (None, None, "forget", "merge", "delete", "undo"),
)
"""What happens in a history; None is a turn."""
RUN: Final = "run"
TWINS: Final = (None, None, RUN, "promote", None)
"""What happens where two have one name, and a promotion brings a third one of whom nothing else is said."""
UNDONE_SPLIT: Final[tuple[Kind | None, ...]] = (None, None, "split", "merge", "undo", None)
SCENES: Final[tuple[tuple[Kind | Literal["run"] | None, ...], ...]] = (
    (None, None, None, "reject", "undo", None, None),
    *[UNDONE_SPLIT] * 3,  # often not possible
    (None, None, "merge", "forget", None, None),
    (None, None, "forget", "undo", "merge", "undo", None, None),
    (RUN, RUN, "promote", None, None, "merge"),
    (None, None, RUN, RUN, "promote", None, "split", None),
    (None, RUN, RUN, RUN, "promote", "reject", None),
    TWINS,
)
"""What happens one after the other in some histories; RUN is a turn of a run."""


def drawn_people(random: Random) -> History:
    """A history of up to ten steps about two or three people and one or two keys."""
    teller = _Teller(random)
    for _ in range(random.randint(5, 10)):
        teller.step()
    return History(tuple(teller.steps), frozenset({"people", "greedy"}), is_possible)


STORIES: Final = (
    "Ana works at Acme | Bruno works at Bosch | merge t1 t0 | Ana started at Hooli | undo c2 | undo c4",
    "Ana has a cat | Dan lives in Oslo | Cleo lives in Bern | merge t1 t0 | merge t2 t0 | Ana moved to Chur | undo c3",
    "my wife Dan lives in Rome | my colleague Daniela lives in Bern | merge t1 t0 | Daniela no longer lives in Rome",
    "Ana is allergic to nuts | Bruno is allergic to milk | merge t1 t0 | Ana no longer is allergic to milk | undo c2",
    "Dan lives in Chur | forget t0 t0 | undo c1 | undo c2 | Dan lives in Oslo | undo c3",
    "Ana works at Acme | Ana started at Bosch | Ana started at Hooli | split t0 Bruno t1 | undo c3",
    "Ana lives in Rome | Ana rather lives in Oslo | split t0 Bruno t1 | undo c2",
    "Ana has a dog | Ana no longer has a dog | split t0 Bruno t1 | undo c2",
    "Ana lives in Rome | Bruno lives in Oslo | merge t1 t0 | forget t0 t0,t1 | undo c3 | undo c2",
    "my colleague works at Bosch | Ana works at Acme | merge t0 t1 | Ana started at Hooli | undo c2 | undo c4",
    "Ana lives in Rome | Bruno lives in Oslo | merge t1 t0 | delete t0 | undo c3",
    "Ana moved to Rome | Ana moved to Chur | Ana moved to Oslo | split t0 Dan t0,t2 | split c3 Cleo t0",
)
"""Histories of merges, splits, forgettings and their undo, told by hand."""


def told_by_hand(story: str) -> History:
    steps: list[Step] = []
    for place, words in enumerate(story.split(" | ")):
        kind, *rest = words.split()
        at, order = on_day(place), Order(f"c{place}", on_day(place), cast("Kind", kind))
        match kind:
            case "merge":
                steps.append(replace(order, who=rest[0], other=rest[1]))
            case "split":
                steps.append(replace(order, who=rest[0], called=rest[1], facts=tuple(rest[2].split(","))))
            case "forget":
                steps.append(replace(order, who=rest[0], facts=tuple(rest[1].split(","))))
            case "delete":
                steps.append(replace(order, facts=(rest[0],)))
            case "undo":
                steps.append(replace(order, of=rest[0]))
            case _:
                who = next(one for one in CALLED if words.startswith(f"{one} "))
                meaning = read(words, who)
                assert meaning is not None
                steps.append(Turn(f"t{place}", at, at, (Said(replace(meaning, person=who), who),)))
    return History(tuple(steps), frozenset({"people"}), is_possible)


def is_possible(before: Sequence[Step], step: Step) -> bool:  # noqa: C901, PLR0911 -- one way out a kind
    """Whether there is whom, or what, a step is about."""
    people = people_after(before)
    if isinstance(step, Turn):
        return _may_say(people_after(before, of_run=True) if step.in_run else people, step.said[0])
    known = {*people.known()}
    facts = {one.name for one in people.told} if step.kind == "split" else _facts(people, step)
    named = {one for one in (step.who, step.other) if one} if step.kind not in ("confirm", "reject") else set()
    if step.called == NAME or not (named <= known and facts.issuperset(step.facts)):
        return False
    match step.kind:
        case "promote":
            run, known_values = people_after(before, of_run=True), {one.topic[1:] for one in people.episodes()}
            return known_values.isdisjoint(one.topic[1:] for one in run.episodes())
        case "undo":
            return any(one.name == step.of for one in people.told if one.holds)
        case "confirm" | "reject":
            return people.pending().get(step.of or "") == (step.who, step.other)
        case "call":
            return not set(holders_of(key_of(step.called), people.shown_names())) - {step.who, step.other}
        case "rename":
            return not set(holders_of(step.called, people.shown_names())) - {step.who}
        case "split":
            return step.called in step.names or not holders_of(step.called, people.shown_names())
        case "summarise" if step.facts:
            return set(step.facts) == facts & people.fact_names(step.who)
        case "forget" if step.facts:
            return set(step.facts) == people.fact_names(step.who)
        case _:
            return True


def _facts(people: People, step: Order) -> set[str]:
    """The turns whose facts a command may be about: what has ended can be deleted, and is in no summary."""
    if step.kind == "summarise":
        return people.open_facts()
    return {name for one in people.known() for name in people.fact_names(one)}


def _may_say(people: People, said: Said) -> bool:
    """Whether a sentence is news, and whom it means can be told."""
    words, meaning = said.subject or "", said.meaning
    of_forgotten = {one.topic[1] for one in people.episodes() if one.topic[0] in people.forgotten}
    if meaning.key in of_forgotten:
        return False  # whether it is about somebody who is forgotten is left open
    whose = people.meant(words)
    is_told = (whose, *meaning.topic[1:]) in {one.topic for one in people.episodes()}
    return is_told == (meaning.form == "end")


class _Teller:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._names: Sequence[str] = random.choice(CIRCLES)
        self._ties = random.sample(sorted(TIES), random.choice([0, 1, 1, 1, 2]))
        self._scene = list(random.choice(SCENES)) if random.random() < 0.3 else []
        self._kinds = tuple(self._scene) or random.choice(THEMES)
        self._are_twins = self._kinds == TWINS
        self._slots = random.sample(
            SLOTS[:3], 3 if {"forget", "promote"} & {*self._kinds} else random.choice([1, 1, 2])
        )
        if self._are_twins:
            self._ties, self._slots = sorted(TIES), random.sample(SLOTS[:2], 1)
        self.steps: list[Step] = []

    def step(self) -> None:
        people = people_after(self.steps)
        kind = self._random.choice(self._kinds) if self.steps else None
        decided = any(self._was_decided_on(one, people) and self._is_undoable(one, people) for one in people.told)
        if self._scene:
            kind = self._scene.pop(0)
        elif self._random.random() < 0.6:
            kind = "undo" if decided and "undo" in self._kinds else "reject" if people.pending() else kind
        if kind == RUN:
            turn = self._turn(people_after(self.steps, of_run=True))
            step: Step | None = replace(turn, in_run=True) if turn and turn.said[0].meaning.holds else None
        else:
            step = self._turn(people) if kind is None else self._order(kind, people)
        if step is not None and is_possible(self.steps, step):
            self.steps.append(step)

    def _turn(self, people: People) -> Turn | None:
        words = self._words(people)
        whose, slot = people.meant(words), self._random.choice(self._slots)
        said = [one.topic[2] for one in people.episodes() if one.topic[:2] == (whose, slot.key)]
        held = [one.topic[2] for one in people.episodes() if one.topic[:2] == (whose, slot.key) and one.ends is None]
        free = [value for value in slot.values if value not in said]
        form: Form = "change" if held and slot.single_valued else "state"
        if held and self._random.random() < 0.25:
            free, form = held, "end"
        if not free:
            return None
        now, name = on_day(len(self.steps)), f"t{len(self.steps)}"
        meaning = Meaning(words, slot.key, self._random.choice(free), form)
        return Turn(name, now, now, (Said(meaning, words),))

    def _words(self, people: People) -> str:
        """How somebody is called: a name, what they are, or both, often of one without a name the name of another."""
        known = people.known().values()
        nameless = sorted({one.key for names in known if all(one.is_tie for one in names) for one in names})
        untied = sorted({names[0].text for names in known if names and not any(one.is_tie for one in names)})
        undone = [one.words for one in people.told if one.proposed and not one.holds]
        if undone and self._random.random() < 0.6:
            return self._random.choice(undone)
        if nameless and untied and self._random.random() < 0.6:
            return f"{self._random.choice(nameless)} {self._random.choice(untied)}"
        if self._are_twins:
            return " ".join((*self._ties[len(self.steps) : len(self.steps) + 1], self._names[-1]))
        name = self._random.choice(self._names)
        tie = self._random.choice(["", *self._ties])
        if not tie:
            return name
        return self._random.choice([tie, f"{tie} {name}", f"{tie} {name}"])

    def _order(self, kind: Kind, people: People) -> Order | None:
        order = Order(f"c{len(self.steps)}", on_day(len(self.steps)), kind)
        known = sorted({*people.known()} - {USER})
        if kind == "undo":
            undoable = [one for one in people.told if self._is_undoable(one, people)]
            if self._kinds.count("undo") > 1:  # the forgetting, then its undo
                undoable = [one for one in undoable if isinstance(one.step, Order) and one.step.kind != "merge"]
            decided = [one for one in undoable if self._was_decided_on(one, people)]
            return replace(order, of=self._random.choice(decided or undoable).name) if undoable else None
        if kind == "promote":
            return order
        if kind in ("confirm", "reject"):
            pending = sorted(people.pending().items())
            if not pending:
                return None
            of, (merged, into) = self._random.choice(pending)
            return replace(order, of=of, who=merged, other=into)
        return self._about(order, known, people) if known else None

    def _about(self, order: Order, known: Sequence[str], people: People) -> Order | None:  # noqa: PLR0911 -- as above
        nameless = [one for one in known if all(name.is_tie for name in people.known()[one])]
        changed = [one for one in known if one.startswith("c") or len(people.one_with(one)) > 1]  # split off, or merged
        likely = {"split": nameless, "merge": changed, "forget": changed}.get(order.kind)
        who = self._random.choice(likely if likely and self._random.random() < 0.6 else known)
        others = [one for one in self._partners(order.kind, known, people) if one != who]
        facts = sorted(_facts(people, order) & people.fact_names(who))
        called, names = self._random.choice(self._names), people.shown_names()[who]
        match order.kind:
            case "merge":
                return replace(order, who=who, other=self._random.choice(others)) if others else None
            case "rename":
                return replace(order, who=who, called=called)
            case "call":
                loser = self._random.choice(["", *others])
                its = people.shown_names().get(loser, ())
                spare = [one.text for one in its if one.text != people.shown_name(loser)]
                if not spare:
                    return replace(order, who=who, called=called)
                return replace(order, who=who, other=loser, called=self._random.choice(spare))
            case "split":
                if self._random.random() < 0.5:
                    called = next((one for one in self._names if not holders_of(one, people.shown_names())), called)
                moved = tuple(one for one in sorted(people.fact_names(who)) if self._random.random() < 0.5)
                rest = sorted({one.text for one in names} - {people.shown_name(who)})
                taken = tuple(one for one in rest if self._random.random() < 0.5)
                if not moved and not taken:
                    return None
                return replace(order, who=who, called=called, facts=moved, names=taken)
            case "forget":
                with_facts = self._random.random() < 0.5
                return replace(order, who=who, facts=tuple(facts) if with_facts else ())
            case "delete":
                ended = sorted({*facts} - people.open_facts())
                named = ended if ended and self._random.random() < 0.6 else facts
                return replace(order, facts=(self._random.choice(named),)) if facts else None
            case _:
                return replace(order, who=who, facts=tuple(facts)) if facts else None

    def _partners(self, kind: Kind, known: Sequence[str], people: People) -> Sequence[str]:
        """Whom another may be merged into, or have a name from: in some histories who is forgotten again."""
        if kind != "merge" or self._kinds.count("undo") < 2:
            return known
        return [one.step.who for one in people.told if isinstance(one.step, Order) and one.step.kind == "forget"]

    def _is_undoable(self, told: Told, people: People) -> bool:
        """Whether a step holds, and was a decision on who is who, or nothing later is about whom it concerns."""
        by_name, first = {one.name: one for one in people.told}, told
        while isinstance(first.step, Order) and first.step.kind == "undo":
            first = by_name[first.step.of or ""]
        later = people.told[people.told.index(told) + 1 :]
        undone = {one.step.of for one in later if isinstance(one.step, Order) and one.step.kind == "undo"}
        is_promoted = (
            first.step.at < first.step.arrives if isinstance(first.step, Turn) else first.step.kind == "promote"
        )
        earlier = people.told[: people.told.index(told)]
        may_decide = isinstance(first.step, Turn) and any(one.deletes for one in earlier)  # a question of the deletion
        if not told.holds or told.name in undone or is_promoted or may_decide:
            return False
        if isinstance(first.step, Order) and (first.step.kind == "split" or not first.step.facts):
            return True
        about = [one for one in later if isinstance(one.step, Turn) or one.step.facts or one.step.kind == "undo"]
        return not any(self._concerned(first, people) & self._concerned(one, people) for one in about)

    @staticmethod
    def _was_decided_on(told: Told, people: People) -> bool:
        """Whether a person decided later on whom a step has brought, or may be one."""
        is_split = isinstance(told.step, Order) and told.step.kind == "split"
        brought = {told.name} if is_split else set(told.proposed or ())
        decided = ("merge", "forget", "reject")
        return any(
            isinstance(one.step, Order)
            and one.holds
            and one.step.kind in decided
            and {one.step.who, one.step.other} & brought
            for one in people.told
        )

    @staticmethod
    def _concerned(told: Told, people: People) -> set[str]:
        if isinstance(told.step, Turn):
            named = [told.whose]
        else:
            whose = [one.whose for one in people.told if one.name in (*told.step.facts, told.step.of)]
            named = [*whose, told.step.who, told.step.other]
        return {people.heads[one] for one in named if one in people.heads}
