"""What a user tells in plain English, line by line, and what it comes to: of each key the values that hold, and which
sentences are still so.

The rules of the offline provider read these lines. Nothing here knows them: a story says of each line what it does.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from random import Random
from typing import Final, Literal

Act = Literal["states", "changes", "ends", "says", "takes_back", "lasted", "nothing"]
NAME: Final = "Alice"
SINGLE: Final = ("home_city", "employer", "diet", "name", "birthday")
PETS: Final = ("dog", "cat")
NAMED: Final = (*PETS, "brother")
VALUES: Final = {
    "home_city": ("Turin", "Graz", "Kiel", "Oslo", "Madrid"),
    "employer": ("Acme", "Bosch", "Siemens", "Nokia"),
    "diet": ("vegan", "vegetarian"),
    "name": ("Tarik", "Tariq", "Bea"),
    "birthday": ("June 3", "June 4"),
    "dog": ("Rex", "Luna", "Max"),
    "allergy": ("nuts", "milk", "fish"),
}


@dataclass(frozen=True)
class Line:
    """What is said, perhaps as an answer, and what that does.

    It states a `value` of a key, changes to it, or ends it (each one of the key, where it has no value); it says what
    stays listed by its words up to "|"; it takes back an earlier sentence with the words of `value`; or it tells what
    lasted from the first day of `value` to the last.
    """

    act: Act
    text: str
    key: str = ""
    value: str = ""
    asked: str = ""
    recalled: tuple[str, ...] = ()

    @property
    def is_of_user(self) -> bool:
        """Whether "I" is the user in what follows: this line is about them, a short answer, or a question."""
        first = self.text.replace("'", " ").split()[0]
        return bool(self.asked) or first in ("I", "We", "My") or self.text.endswith("?")

    @property
    def words(self) -> str:
        return self.text.partition("|")[0]

    def __str__(self) -> str:
        return f"{self.act}: {f'{self.asked} ' if self.asked else ''}{self.text}"


def said(act: Act, key: str, value: str, text: str) -> Line:
    return Line(act, text, key, value)


def _homes(a: str, b: str) -> Iterator[list[Line]]:
    home = "home_city"
    lives, moved = said("states", home, a, f"I live in {a}."), said("changes", home, b, f"I moved to {b}.")
    yield [lives, moved]
    yield [lives, said("states", home, b, f"I live in {b}.")]
    yield [lives, Line("nothing", f"I don't live in {a}, Texas.")]
    yield [lives, Line("nothing", f"I never lived in {a}, Ontario.")]
    yield [lives, Line("says", f"I'm on holiday in {b}.")]
    yield [lives, said("ends", home, a, f"I no longer live in {a}."), said("changes", home, a, f"I moved to {a}.")]
    again = said("changes", home, a, f"I moved back to {a}.")
    yield [lives, moved, again, moved]


def _jobs(a: str, b: str) -> Iterator[list[Line]]:
    job = "employer"
    works, left = said("states", job, a, f"I work at {a}."), said("ends", job, a, f"I left {a}.")
    yield [works, left]
    yield [works, said("changes", job, b, f"I started a new job at {b}.")]
    yield [works, Line("nothing", f"I left {b}.")]
    yield [works, left, said("changes", job, a, f"I work at {a} again."), replace(left, text=f"I quit at {a}.")]
    yield [works, Line("says", f"I'm starting at {b} on |1 April.")]
    yield [works, Line("says", f"I'm leaving {a} at the end of |April.")]
    yield [works, Line("nothing", "Home.", asked="Where do you work now?")]


def _answers(a: str, _: str) -> Iterator[list[Line]]:
    for question, *answers in (
        ("Where do you work?", "Retired.", "Nowhere."),
        ("Where do you live?", "Everywhere.", "Home.", a),
        ("What's your name?", "Guess.", "Nobody."),
        ("What is your dog called?", "Dog.", "Later."),
    ):
        yield from ([Line("nothing", answer, asked=question)] for answer in answers)


def _plans(a: str, b: str) -> Iterator[list[Line]]:
    for plan in (
        "We're getting married on |3 April.",
        f"I'm moving to {a} on |12 April.",
        "My baby is due on |9 April.",
        f"I begin my course at {b} on |7 April.",
    ):
        yield [Line("says", plan)]


def _creatures(a: str, b: str) -> Iterator[list[Line]]:
    for kind, other in (("dog", "cat"), ("cat", "dog")):
        has = said("states", kind, a, f"My {kind} is called {a}.")
        died = said("ends", kind, "", f"My {kind} died.")
        yield [has, said("ends", "", a, f"{a} died.")]
        yield [has, said("states", other, a, f"My {other} is called {a}."), said("ends", "", a, f"{a} died.")]
        yield [has, said("states", "brother", a, f"My brother is called {a}."), said("ends", "", a, f"{a} died.")]
        yield [has, died, said("states", kind, b, f"My {kind} is called {b}."), died]
        yield [has, Line("nothing", f"My neighbour's {kind} died.")]


def _lasting(*_: str) -> Iterator[list[Line]]:
    yield [said("states", "diet", "vegan", "I'm vegan."), said("ends", "diet", "vegan", "I'm no longer vegan.")]
    yield [said("states", "diet", "vegan", "I'm vegan."), said("changes", "diet", "vegetarian", "I'm vegetarian now.")]
    yield [said("states", "allergy", "nuts", "I'm allergic to nuts."), Line("nothing", "I'm not allergic to fish.")]
    for key, form in (("name", "My name is {}."), ("birthday", "My birthday is on {}.")):
        yield [said("states", key, value, form.format(value)) for value in VALUES[key][:2]]


def _likings(a: str, _: str) -> Iterator[list[Line]]:
    for one, other in (("like {}", "don't like {}"), ("love {}", "hate {}"), ("don't like {}", "like {} now")):
        for thing in ("aniseed", "jazz", a):
            first = f"I {one.format(thing)}."
            yield [Line("says", first), Line("takes_back", f"I {other.format(thing)}.", value=first)]
    for low, high in (("turkey", "Turkey"), ("polish", "Polish"), ("china", "China")):
        yield [Line("says", f"I like {low}."), Line("says", f"I don't like {high}.")]


def _spans(place: str, _: str) -> Iterator[list[Line]]:
    for first, last, days in (
        ("January", "March 2024", "2024-01-01 2024-03-31"),
        ("May", "July 2023", "2023-05-01 2023-07-31"),
        ("2010", "2014", "2010-01-01 2014-12-31"),
        ("3", "5 June 2025", "2025-06-03 2025-06-05"),
    ):
        for form in ("from {} to {}", "between {} and {}", "from {} through {}", "from {} until {}"):
            said = form.format(first, last)
            yield [Line("lasted", f"I was in {place} |{said}.", value=days)]


def _of_others(a: str, b: str) -> Iterator[list[Line]]:
    home, firm = f"I live in {a} now", f"I work at {b}"
    for text in (
        f"Look:\nOtto (10:31): {home}\nOtto (10:32): I am vegan",
        f"[10:31, 27/11/2026] Otto: {home}",
        f"**Otto**: {home}",
        f"otto (he/him): {home}",
        f"> I moved to {a}.\n> {firm}.",
        f"This is the other bot's reply:\nI moved to {a}. I am vegan.",
        f"Dear Alice,\nI moved to {a}. I am vegan.\nBest, Otto",
        f'My sister said: "{home}."',
        f"~~~\n{home}\n~~~",
        f'{{"home": "I moved to {a}.", "job": "{firm}."}}',
        f"2026-03-02 10:31:00 INFO {home}",
        f"Translate this: I moved to {a}.",
        f"If I lived in {a}, I'd surf every day.",
        f"I might move to {a}.",
        f"I almost moved to {a}.",
        f"Should I move to {a}?",
    ):
        yield [Line("nothing", text)]
    known = f"{NAME} is allergic to celery."
    yield [Line("nothing", f"What we know: {known}\nWhat can I eat?", recalled=(known,))]


STORIES: Final[tuple[tuple[str, Callable[..., Iterator[list[Line]]]], ...]] = (
    ("home_city", _homes), ("employer", _jobs), ("home_city", _answers), ("employer", _plans), ("dog", _creatures),
    ("diet", _lasting), ("employer", _likings), ("home_city", _spans),
)  # fmt: skip
"""The key whose values a kind of story is about, and its stories."""


@dataclass(frozen=True)
class Dialogue:
    """Lines of one user on successive days."""

    steps: tuple[Line, ...]

    def without(self, place: int) -> "Dialogue":
        return Dialogue((*self.steps[:place], *self.steps[place + 1 :]))

    def __str__(self) -> str:
        return "\n  ".join(map(str, self.steps))


def drawn_dialogue(random: Random) -> Dialogue:
    """Two stories of different keys, told one line of each in turn, and then words of somebody else."""
    told = random.sample(STORIES, 2)
    chosen = [random.choice(list(stories(*random.sample(VALUES[key], 2)))) for key, stories in told]
    lines = [line for pair in zip_longest(*chosen) for line in pair if line]
    others = random.choice(list(_of_others(random.choice(VALUES["home_city"]), random.choice(VALUES["employer"]))))
    return Dialogue((*lines, *others))


@dataclass
class Told:
    """What a dialogue comes to: the values that are certain, keys of which none or one may be, and sentences."""

    values: set[tuple[str, str]] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    listed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    spans: dict[str, set[str]] = field(default_factory=dict)
    """The days of what lasted, by its first words."""
    is_of_user: bool = True

    def take(self, line: Line) -> None:
        before = {*self.values}
        self._take(line)
        if not self.is_of_user:
            self.values |= before
            if line.act in ("states", "changes", "ends"):
                self.doubtful |= {line.key} if line.key else {*NAMED}
            self.gone = [one for one in self.gone if one != line.value]
        self.is_of_user &= line.is_of_user

    def _take(self, line: Line) -> None:
        key, known = line.key, [one for one in self.values if one[0] == line.key]
        match line.act:
            case "states" | "changes":
                others = [one for one in known if one[1] != line.value and key in SINGLE]
                if others and line.act == "states":
                    self.doubtful.add(key)
                if line.act == "changes":
                    self.values -= {*others}
                    self.doubtful.discard(key)
                self.values.add((key, line.value))
            case "ends":
                meant = [one for one in self.values if self._is_meant(one, line)]
                if len(meant) == 1 and (line.key or meant[0][0] in PETS):
                    self.values -= {*meant}
            case "says":
                self.listed.append(line.words)
            case "takes_back":
                self.listed = [one for one in self.listed if one != line.value]
                self.gone.append(line.value)
                self.listed.append(line.words)
            case "lasted":
                self.listed.append(line.words)
                self.spans[line.words] = {*line.value.split()}
            case "nothing":
                pass

    @staticmethod
    def _is_meant(known: tuple[str, str], line: Line) -> bool:
        of_key = known[0] == line.key if line.key else known[0] in NAMED
        return of_key and line.value in ("", known[1])


def told_by(lines: Sequence[Line]) -> Told:
    told = Told()
    for line in lines:
        told.take(line)
    return told
