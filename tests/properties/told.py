"""Generates histories: a small world, and what may be said and commanded on a day, given what is known by then.

Each history has the features of one theme: what is rare in one that has a little of everything is common there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final, get_args

from tests.properties.scenes import SCENES, Feature
from tests.properties.sentences import NAME, SLOTS, SUBJECTS, Form, Meaning, Slot
from tests.properties.steps import START, Kind, Order, Said, Step, Turn, on_day
from tests.properties.truth import HIGH_RISK, Statement, Truth, are_rivals, effects, truth_after

FEATURES: Final[tuple[Feature, ...]] = get_args(Feature)
THEMES: Final[tuple[tuple[Feature, ...], ...]] = (
    (),
    ("end", "again"),
    ("end", "again", "people", "greedy"),
    ("plan", "detail", "timer"),
    ("plan", "detail", "greedy"),
    ("term", "again", "timer"),
    ("term", "greedy"),
    ("again", "several"),
    ("denial", "detail", "end"),
    ("detail", "slotless"),
    ("doubt", "settle", "end", "denial"),
    ("doubt", "settle", "late"),
    ("late", "end", "again"),
    ("late", "end", "people", "greedy"),
    ("recalled", "end", "again"),
    ("ahead", "end", "again"),
    ("careless", "detail", "end"),
    ("doubt", "settle", "detail", "end"),
    ("immutable", "settle", "detail", "end"),
    ("late", "detail", "term"),
    ("immutable", "again", "end"),
    ("delete", "undo", "end"),
    ("edit", "undo", "delete"),
    ("import", "again", "end"),
    ("run", "immutable"),
    ("run", "end", "immutable"),
    ("publish", "delete", "edit", "detail"),
    ("category", "detail", "delete", "edit"),
    ("category", "doubt", "settle", "denial"),
)
FORMS: Final[dict[Feature, tuple[str, ...]]] = {
    "detail": ("detail",),
    "end": ("end",),
    "denial": ("denial",),
    "plan": ("plan", "call_off", "announcement"),
    "term": ("term",),
}
ORDERS: Final[dict[Feature, tuple[Kind, ...]]] = {
    "delete": ("delete", "delete", "delete_key"),
    "edit": ("correct", "update"),
    "settle": ("confirm", "reject"),
    "undo": ("undo", "undo"),
    "import": ("import",),
    "run": ("promote",),
    "publish": ("publish", "publish", "publish"),
    "category": ("delete_category",),
    "timer": ("timer",),
}
MORE: Final = ("health", "task_context", "professional")
"""Categories that a sentence may have besides that of its key, the first of high risk."""
MOST_STEPS: Final = 8
SHARE_OF_SCENES: Final = 0.3


@dataclass(frozen=True)
class History:
    """The steps in the order in which they arrive; a `greedy` model takes the facts of others for the subject's."""

    steps: tuple[Step, ...]
    features: frozenset[Feature]
    is_possible: Callable[[Sequence[Step], Step], bool]

    def __str__(self) -> str:
        return "\n  ".join([f"features {' '.join(sorted(self.features))}", *map(str, self.steps)])

    def without(self, place: int) -> "History":
        """The history without one step, and what would then be about nothing."""
        return self.of((*self.steps[:place], *self.steps[place + 1 :]))

    def of(self, steps: Iterable[Step]) -> "History":
        """The steps in which there is what a command is about."""
        kept: list[Step] = []
        for step in steps:
            if self.is_possible(kept, step):
                kept.append(step)
        return replace(self, steps=tuple(kept))


def is_possible(before: Sequence[Step], step: Step) -> bool:  # noqa: PLR0911 -- one way out a kind
    """Whether there is what a command is about."""
    truth = truth_after(before)
    promoted = any(isinstance(one, Order) and one.kind == "promote" for one in before)
    if isinstance(step, Turn):
        return not (step.in_run and promoted) and all(
            is_against(truth, one.meaning) for one in step.said if one.certainty != "explicit"
        )
    match step.kind:
        case "delete" | "correct" | "update":
            return truth.current(step.topic) is not None
        case "import":
            assert step.said is not None
            meaning = step.said.meaning
            known = truth.current(meaning.topic)
            same = (one for one in truth.episodes() if one.topic == meaning.topic)
            if truth.held() or any(step.true_from and one.is_over(step.arrives) for one in same):
                return False  # whether a value that has ended held until today is open
            if known is not None:  # without a model only equal words are known to say the same
                return step.said.text in {one.said.text for one in known.told}
            others = (one for one in truth.open() if one.topic[:2] == meaning.topic[:2])
            return not meaning.slot.single_valued or not any(others)
        case "confirm" | "reject":
            meant = next((one for one in truth.held() if one.source == step.of), None)
            may_confirm = meant is not None and len(truth.held()) == 1 and not _is_told_since(truth, meant)
            return may_confirm if step.kind == "confirm" else meant is not None
        case "undo":
            named = [one for one in before if one.name == step.of]
            echoes = (isinstance(one, Turn) and {said.text for said in one.said} <= {*one.recalled} for one in named)
            return bool(named) and not any(echoes)
        case "promote":
            return truth.run is not None and not promoted
        case _:
            return True


def _is_told_since(truth: Truth, held: Statement) -> bool:
    """Whether what a held statement would end was said again: which of the two a person then means is open."""
    said = held.meaning
    beside = (one for one in truth.open() if one.topic == said.topic or are_rivals(one.meaning, said))
    return any(told.at > held.at for one in beside for told in one.told)


def is_news(truth: Truth, meaning: Meaning, at: datetime) -> bool:
    """Whether a sentence changes what is known."""
    is_new = meaning.holds and truth.current(meaning.topic) is None
    return is_new or any(effects(Statement(Said(meaning, None), at, ""), truth.open()))


def is_against(truth: Truth, meaning: Meaning, at: datetime | None = None) -> bool:
    """Whether a sentence would end something that is certain."""
    statement = Statement(Said(meaning, None), at or truth.now + timedelta(minutes=1), "")
    return any(one.certain for one, _ in effects(statement, truth.open()))


def drawn_history(random: Random) -> History:
    if random.random() < SHARE_OF_SCENES:
        scene = random.choice(SCENES)
        return _Teller(random, frozenset(scene.features)).tell(scene.steps(random), random.randint(0, 2))
    features = frozenset((*random.choice(THEMES), *random.sample(FEATURES, random.randint(0, 1))))
    if "late" in features:  # commands count from their arrival
        features -= {"ahead", "plan", "denial", "delete", "edit", "undo", "import", "run", "publish"}
    if "careless" in features:  # what a check reads as a detail stands beside a human's word, and waits for nobody
        features -= {"immutable", "doubt"}
    if "category" in features:  # equal words bring no category
        features -= {"late", "careless", "immutable", "slotless", "import", "run", "recalled"}
    if "run" in features:  # an import has no time at which it was said
        features -= {"import"}
    if {"delete", "category"} & features:  # whether a passed term is selected by `delete_all` depends on the timer
        features -= {"term"}
    return _Teller(random, features).tell((), random.randint(3, MOST_STEPS))


class _Teller:
    def __init__(self, random: Random, features: frozenset[Feature]) -> None:
        self._random = random
        self._features = features
        self._forms = {"state", "change"}.union(*(FORMS.get(one, ()) for one in features))
        self._people = (
            random.choice([("user", "Tom"), ("user", "user", "Tom", "Bob")]) if "people" in features else ("user",)
        )
        slots: Sequence[Slot] = SLOTS
        if {"immutable", "again"} <= features:  # whether an end is told again is in doubt beside a word like its own
            slots = [slot for slot in slots if slot.key != "drink"]
        self._slots = random.sample(slots, random.choice([1, 1, 2]))
        self._subjects = {person: random.choice([one for one in SUBJECTS[person] if one]) for person in SUBJECTS}
        if "careless" in features:  # the checks of a language read no mixed sentence
            self._subjects["user"] = NAME
        self._steps: list[Step] = []
        self._day = 0.0

    def tell(self, scene: Iterable[Step], more: int) -> History:
        """What a scene tells, and some more steps."""
        orders = [kind for feature, kinds in ORDERS.items() if feature in self._features for kind in kinds]
        self._steps += scene
        self._day = max(((one.arrives - START) / timedelta(days=1) for one in self._steps), default=0.0)
        for _ in range(more):
            self._day += self._random.choice([1, 1, 2, 9] if "late" in self._features else [0.1, 1, 1, 2, 9])
            kind = self._random.choice(orders) if orders and self._random.random() < 0.4 else None
            step = self._order(kind) if kind else self._turn()
            if step is not None and is_possible(self._steps, step):
                self._steps.append(step)
        steps = sorted(self._steps, key=lambda step: step.arrives)
        return History((), self._features, is_possible).of(steps)

    @property
    def _now(self) -> datetime:
        return on_day(self._day)

    def _has(self, feature: Feature, share: float = 0.5) -> bool:
        return feature in self._features and self._random.random() < share

    def _turn(self) -> Turn | None:
        truth = truth_after(self._steps)
        if truth.held() and self._random.random() < 0.5:
            return self._about_held(truth)
        in_run, texts = self._has("run", 0.6), [one.text for one in self._told()]
        said = self._sentences(truth, in_run=in_run)
        if not said:
            return None
        days = self._random.choice([2, 5, 12]) if self._has("late") else 0
        late = timedelta(days=days, minutes=days and 7 * (1 + len(self._steps)))  # no two arrive at once
        return Turn(
            f"t{len(self._steps)}",
            self._now,
            self._now + late,
            tuple(said),
            immutable=self._has("immutable", 0.7 if in_run else 0.4),
            in_run=in_run,
            ahead=self._has("ahead"),
            recalled=tuple(self._random.sample(texts, 1)) if texts and self._has("recalled") else (),
        )

    def _sentences(self, truth: Truth, *, in_run: bool) -> list[Said]:
        """What a turn says: one thing, or several of different keys, or in other words, or with its correction."""
        said: list[Said] = []
        for _ in range(2 if self._has("several") else 1):
            person, slot = self._random.choice(self._people), self._random.choice(self._slots)
            if any(one.meaning.topic[:2] == (person, slot.key) for one in said):
                continue
            again = self._again(truth, person, slot) if self._has("again") else None
            meaning = self._meaning(truth, person, slot, in_run=in_run)
            if again is not None:
                said.append(again)
            elif meaning is not None:
                said.append(self._said(truth, meaning))
                is_plain = said[-1] == Said(Meaning(*meaning.topic), said[-1].subject, said[-1].wording)
                if slot.single_valued and self._has("several") and is_plain:  # the same in other words
                    said.append(replace(said[-1], wording=said[-1].wording + 1))
        return said

    def _told(self) -> list[Said]:
        return [one for step in self._steps if isinstance(step, Turn) for one in step.said]

    def _about_held(self, truth: Truth) -> Turn:
        """A turn that is sent again, or or says again what waits, or what that would end; a late one said it before."""
        last = self._steps[-1]
        if isinstance(last, Turn) and "late" not in self._features and self._random.random() < 0.4:
            self._day = (last.at - START) / timedelta(days=1) + 0.003
            return replace(last, name=f"t{len(self._steps)}", at=self._now, arrives=self._now)
        pending = self._random.choice(truth.held())
        is_late = self._has("late")
        said = pending if is_late or not pending.concerns else self._random.choice([pending, pending.concerns[0]])
        at = pending.at - timedelta(hours=1) if is_late else self._now
        wording = said.said.wording + self._random.choice([0, 1])
        return Turn(f"t{len(self._steps)}", at, self._now, (replace(said.said, wording=wording),))

    def _again(self, truth: Truth, person: str, slot: Slot) -> Said | None:
        """What was said of a key in the same words, mostly where it tells something new now."""
        known = [one for one in self._told() if one.meaning.topic[:2] == (person, slot.key)]
        known = [one for one in known if not (one.meaning.begins or one.meaning.until or one.slotless)]
        known = [one for one in known if one.certainty == "explicit"]
        known = [one for one in known if "detail" in self._forms or not one.meaning.details]
        news = [one for one in known if is_news(truth, one.meaning, self._now)]
        share = 0.4 if "immutable" in self._features else 0.8
        return self._random.choice(news if news and self._random.random() < share else known) if known else None

    def _meaning(self, truth: Truth, person: str, slot: Slot, *, in_run: bool) -> Meaning | None:
        if in_run:
            options = list(_options(truth.run or Truth(), person, slot, self._now))
        else:
            options = list(_options(truth, person, slot, self._now))
        forms = {frozenset(_names(one)): one for one in self._random.sample(options, len(options))}
        allowed = [forms[names] for names in sorted(forms, key=sorted) if names <= self._forms]
        return self._random.choice(allowed) if allowed else None

    def _said(self, truth: Truth, meaning: Meaning) -> Said:
        may_wait = not meaning.details or meaning.slot.category in HIGH_RISK
        doubted = may_wait and is_against(truth, meaning, self._now)
        return Said(
            meaning,
            self._subject(meaning.person),
            wording=self._random.choice([0, 0, 0, 1, 2]),
            certainty="speculation" if doubted and self._has("doubt", 0.6) else "explicit",
            slotless=bool(meaning.details) and self._has("slotless"),
            short=not meaning.details and self._has("recalled"),
            also=frozenset(self._random.sample(MORE, 1)) if meaning.holds and self._has("category") else frozenset(),
        )

    def _subject(self, person: str) -> str | None:
        """How a sentence names a person: the user by another word in each turn, where others are spoken of too."""
        words = [one for one in SUBJECTS[person] if one]
        return words[len(self._steps) % len(words)] if "people" in self._features else self._subjects[person]

    def _order(self, kind: Kind) -> Order | None:  # noqa: C901, PLR0911 -- one way out a kind
        truth, name = truth_after(self._steps), f"c{len(self._steps)}"
        order = Order(name, self._now, kind)
        known = self._random.choice(truth.open() or [None])
        match kind:
            case "delete" | "correct" | "update" if known is None:
                return None
            case "delete" | "delete_key":
                return replace(order, topic=known.topic) if known else None
            case "delete_category" if any(told.since for one in truth.open() for told in one.told):
                return None  # an edit may have no category
            case "delete_category" if known is None:
                return None
            case "delete_category":
                assert known is not None
                return replace(order, called=self._random.choice(sorted(known.categories)))
            case "correct" | "update":
                assert known is not None
                told = {one.topic for one in truth.episodes()}
                free = [v for v in known.meaning.slot.values if (*known.topic[:2], v) not in told]
                if (
                    not free
                    or known.ends
                    or known.meaning.until
                    or (kind == "update" and (known.human or known.begins > self._now))
                ):
                    return None
                meaning = Meaning(*known.topic[:2], self._random.choice(free))
                return replace(order, topic=known.topic, said=Said(meaning, self._subjects[meaning.person]))
            case "confirm" | "reject":
                return replace(order, of=self._random.choice(truth.held()).source) if truth.held() else None
            case "undo":
                last = self._steps[-1] if self._steps else order
                kept = ("publish", "timer", "promote", "undo" if last is order else "")
                is_kept = last.in_run if isinstance(last, Turn) else last.kind in kept
                return None if is_kept else replace(order, of=last.name)
            case "import":
                return self._import(order, truth)
            case _:
                return order

    def _import(self, order: Order, truth: Truth) -> Order | None:
        slot = self._random.choice(self._slots)
        values = [
            value for value in slot.values if truth.current(("user", slot.key, value)) or not slot.single_valued
        ] or ([] if any(one.topic[:2] == ("user", slot.key) for one in truth.episodes()) else slot.values)
        if not values:
            return None
        meaning = Meaning("user", slot.key, self._random.choice(values))
        said = Said(meaning, self._subjects["user"], slotless=not slot.single_valued and self._random.random() < 0.3)
        known = truth.current(meaning.topic)
        if known is not None:  # without a model only equal words are known to say the same
            plain = [one.said for one in known.told if not (one.meaning.details or one.meaning.until)]
            if not plain:
                return None
            said = replace(plain[0], slotless=said.slotless)
        true_from = self._now - timedelta(days=self._random.choice([0, 100]))
        return replace(order, said=said, true_from=true_from, human=self._random.random() < 0.4)


def _names(meaning: Meaning) -> set[str]:
    """The forms that a history needs to have for a sentence."""
    names: set[str] = {meaning.form}
    names |= {"plan"} if meaning.begins and meaning.holds else set()
    names |= {"term"} if meaning.until and meaning.holds else set()
    return names | ({"detail"} if meaning.details else set())


def _options(truth: Truth, person: str, slot: Slot, now: datetime) -> Iterator[Meaning]:
    """The true things that can be said of a key of a person on a day; saying it may make it so."""
    here = [one for one in truth.episodes() if one.topic[:2] == (person, slot.key)]
    held = [one for one in here if one.holds(now) and one.meaning.until is None]
    plans = [one for one in here if one.begins > now]
    stays = [one for one in here if one.meaning.until and not one.is_over(now)]
    is_ending = any(one.ends for one in held)

    def said(value: str, form: Form = "state", **fields: Any) -> Meaning:
        return Meaning(person, slot.key, value, form, **fields)

    taken = {one.topic[2] for one in (*held, *plans, *stays)}
    others = [value for value in slot.values if value not in taken]
    if slot.single_valued and held:
        if not plans and not is_ending:
            yield from (said(value, "change") for value in (*others, *others, *others))  # told more often
            yield from (said(value, begins=_day(now, 20)) for value in others[:1])
    else:
        yield from (said(value) for value in others)
        yield from (said(value, details=frozenset(slot.details[:1])) for value in others)
    if not stays:
        yield from (said(value, until=_day(now, 5)) for value in others[-1:])
    for one in held:
        value = one.topic[2]
        yield from (said(value), said(value, "end"), said(value, "denial"))
        yield from (said(value, details=frozenset({detail})) for detail in slot.details)
        yield said(value, details=frozenset(slot.details))
        if not is_ending and not plans:
            yield from (said(value, "announcement", until=_day(now, 15)) for _ in slot.values)
    for one in plans:
        value, begins = one.topic[2], one.meaning.begins
        yield from (said(value, "call_off", begins=begins), said(value, begins=begins))


def _day(now: datetime, days: int) -> datetime:
    return (now + timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0)
