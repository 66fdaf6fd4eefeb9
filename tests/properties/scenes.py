"""Short stories of what seldom comes about by chance: some histories begin with one, told of any key and any values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Literal

from tests.properties.sentences import NAME, SLOT_OF_KEY, SLOTS, SUBJECTS, Form, Meaning
from tests.properties.steps import Kind, Order, Said, Step, Turn, on_day

SINGLE: Final = tuple(slot.key for slot in SLOTS if slot.single_valued)
SEVERAL: Final = tuple(slot.key for slot in SLOTS if not slot.single_valued)
EVERY: Final = (*SINGLE, *SEVERAL)
RISKY: Final = ("allergy",)
Feature = Literal[
    "end", "denial", "plan", "term", "detail", "again", "doubt", "late", "people", "greedy", "several",
    "immutable", "slotless", "recalled", "ahead", "careless", "category",
    "delete", "edit", "undo", "settle", "import", "run", "publish", "timer",
]  # fmt: skip
"""What comes about in a history, and how its reader reads."""


@dataclass(frozen=True)
class Beat:
    """What is said on a `day` of the `value`th value of a key, with the details and the words of these numbers.

    It comes later where it `arrives` on another day, and may be the correction of a `slip` to another value in the same
    turn; `until` is a day as well. The `marks` are those of `Said` and `Turn`, or "doubt". An `order` is about the
    value, or about what the beat with the number `of` said; a new text has the next value.
    """

    day: float
    form: Form = "state"
    value: int = 0
    details: tuple[int, ...] = ()
    wording: int = 0
    person: str = "user"
    slip: int | None = None
    arrives: float | None = None
    until: int | None = None
    marks: str = ""
    order: Kind | None = None
    of: int = 0


@dataclass(frozen=True)
class Scene:
    """Beats in the order of their arrival, the keys that they may be about, and the features of the reader."""

    keys: tuple[str, ...]
    features: tuple[Feature, ...]
    beats: tuple[Beat, ...]

    def steps(self, random: Random) -> Iterator[Step]:
        slot = SLOT_OF_KEY[random.choice(self.keys)]
        values, wording = random.sample(slot.values, len(slot.values)), random.randrange(3)
        words = {person: random.choice([one for one in subjects if one]) for person, subjects in SUBJECTS.items()}
        if "careless" in self.features:  # the checks of a language read no mixed sentence
            words["user"] = NAME
        for place, beat in enumerate(self.beats):
            at, marks, value = on_day(beat.day), {*beat.marks.split()}, values[beat.value]
            until = None if beat.until is None else on_day(beat.until).replace(hour=0)
            details = frozenset(slot.details[one] for one in beat.details)
            meaning = Meaning(beat.person, slot.key, value, beat.form, details, until=until)
            if beat.order is not None:
                edit = Said(Meaning(beat.person, slot.key, values[beat.value + 1]), words[beat.person])
                yield Order(
                    f"c{place}",
                    at,
                    beat.order,
                    topic=meaning.topic,
                    said=edit if beat.order in ("correct", "update") else None,
                    of=f"t{beat.of}" if beat.order in ("confirm", "reject", "undo") else None,
                )
                continue
            said = Said(
                meaning,
                words[beat.person],
                wording + beat.wording,
                certainty="speculation" if "doubt" in marks else "explicit",
                slotless="slotless" in marks,
                far="far" in marks,
            )
            arrives = at if beat.arrives is None else on_day(beat.arrives)
            slips = () if beat.slip is None else (replace(meaning, value=values[beat.slip], form="state"),)
            sentences = (*(replace(said, meaning=slip) for slip in slips), said)
            yield Turn(f"t{place}", at, arrives, sentences, immutable="immutable" in marks, in_run="in_run" in marks)


SCENES: Final = (
    Scene(  # a merge waits while its target changes
        RISKY,
        ("doubt", "settle", "detail"),
        (Beat(0), Beat(1, details=(0,), marks="doubt"), Beat(2, details=(1,)), Beat(3, order="confirm", of=1)),
    ),
    Scene(  # what is merged is said again after a challenge of its part
        EVERY,
        ("doubt", "settle", "detail", "slotless"),
        (Beat(0), Beat(1, "denial", marks="doubt"), Beat(2, details=(0,), marks="slotless"), Beat(3, wording=1)),
    ),
    Scene(  # what a late detail adds to was said since
        SINGLE,
        ("late", "detail"),
        (Beat(1), Beat(10, wording=1), Beat(5, details=(0,), arrives=12), Beat(7, "change", 1, arrives=14)),
    ),
    Scene(SEVERAL, ("late", "end"), (Beat(1), Beat(10, "end"), Beat(5, arrives=12))),  # a repetition of what has ended
    Scene(  # an older denial of what waits
        SINGLE,
        ("doubt", "settle", "late"),
        (Beat(0), Beat(5, "change", 1, marks="doubt"), Beat(3, "denial", 1, arrives=6)),
    ),
    Scene(SINGLE, ("detail",), (Beat(0), Beat(1, "change", 1), Beat(2, details=(0,), value=1))),
    Scene(EVERY, ("plan",), (Beat(0), Beat(0.1, "announcement", until=0))),  # the end of this very day
    Scene(SINGLE, ("immutable",), (Beat(0, "correction", 1, slip=0, marks="immutable"),)),
    Scene(SINGLE, ("immutable",), (Beat(0, marks="immutable"), Beat(1, "correction", 2, slip=1))),
    Scene(EVERY, ("plan", "detail"), (Beat(0), Beat(1, "announcement", until=15), Beat(2, details=(0,)))),
    Scene(  # only the key finds what is known of what was merged
        SINGLE, ("detail",), (Beat(0), Beat(1, details=(0,), marks="slotless"), Beat(2, "change", 1, marks="far"))
    ),
    Scene(  # what another had and lost is said of who has none, of a time before
        SINGLE,
        ("late", "end", "people", "greedy"),
        (Beat(1, person="Tom"), Beat(5, "change", 1, person="Tom"), Beat(0.9, arrives=6)),
    ),
    Scene(EVERY, ("careless", "detail"), (Beat(0), Beat(1, details=(0,), wording=1))),
    Scene(SINGLE, ("term", "greedy"), (Beat(0), Beat(1, value=1, until=6))),
    Scene(  # a human's word is one in what is merged with it
        EVERY,
        ("immutable", "settle", "detail", "end"),
        (Beat(0, marks="immutable"), Beat(1, details=(0,)), Beat(2, order="confirm", of=1), Beat(3, "end")),
    ),
    Scene(EVERY, ("immutable", "end"), (Beat(0), Beat(1, marks="immutable"), Beat(2, "end"))),
    Scene(("drink",), ("end",), (Beat(0), Beat(1, value=1), Beat(2, value=2), Beat(3, "end"))),  # turkey and Turkey
    Scene(RISKY, ("doubt", "settle", "end"), (Beat(0), Beat(1, "end", marks="doubt"))),
    Scene(EVERY, ("publish", "delete"), (Beat(0), Beat(1, order="publish"), Beat(2, order="delete"))),
    Scene(EVERY, ("publish", "edit"), (Beat(0), Beat(1, order="publish"), Beat(2, order="correct"))),
    Scene(  # a human's word is one after its promotion
        SINGLE,
        ("run", "immutable", "end"),
        (Beat(0, marks="in_run immutable"), Beat(1, order="promote"), Beat(2, "end")),
    ),
    Scene(  # a run says it again after another value
        SINGLE,
        ("run", "end"),
        (Beat(0, marks="in_run"), Beat(1, value=1), Beat(2, marks="in_run"), Beat(3, order="promote")),
    ),
    Scene(  # a late turn corrects itself
        ("home_city",), ("late",), (Beat(1), Beat(10, "change", 1), Beat(5, "correction", 3, slip=2, arrives=12))
    ),
    Scene(  # of what another had an end was told before
        SINGLE,
        ("late", "end", "people", "greedy"),
        (Beat(0, person="Tom"), Beat(5, "end", person="Tom"), Beat(1, arrives=6)),
    ),
)
