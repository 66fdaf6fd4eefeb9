"""The small language of the generated conversations: every sentence is made from a meaning, and read back into it.

So a reader can be perfect: whatever two sentences say, it knows how they go together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final, Literal

Form = Literal["state", "change", "correction", "end", "announcement", "denial", "call_off"]
"""What a sentence says of a value: it holds, holds from now on, holds in the place of what was said by mistake, has
ended, will end, never held, or will not come."""

HOLDING: Final[tuple[Form, ...]] = ("state", "change", "correction")
NAME: Final = "Alice"
SUBJECTS: Final = {
    "user": (None, "the user", NAME, "der Nutzer", "l'utilisateur", "el usuario"),
    "Tom": ("Tom",),
    "Bob": ("Bob",),
}
"""Whom a sentence names, by the person that it is about."""
TIES: Final = {"my wife": "spouse", "my colleague": "colleague"}
"""What somebody is to the user, and the predicate of it."""
NAMES: Final = ("Ana", "Bruno", "Cleo", "Alexander", "Alexandra", "Alex", "Daniela", "Daniel", "Dan", NAME)
"""How people are called in histories that are about who is who; the user is an Alice too."""
CALLED: Final = (*(f"{tie} {name}" for tie in TIES for name in NAMES), *TIES, *NAMES)


@dataclass(frozen=True)
class Slot:
    """A key with its values, details, and the words of each form; the first of `state` is the plainest."""

    key: str
    single_valued: bool
    category: str
    values: tuple[str, ...]
    details: tuple[str, ...]
    words: dict[Form, tuple[str, ...]]


def _words(
    state: tuple[str, ...], change: str, denial: str, announcement: str, call_off: str
) -> dict[Form, tuple[str, ...]]:
    return {
        "state": state,
        "change": (change,),
        "correction": (f"rather {state[0]}",),
        "end": (f"no longer {state[0]}",),
        "announcement": (announcement,),
        "denial": (f"never {denial}",),
        "call_off": (call_off,),
    }


SLOTS: Final = (
    Slot(
        "home_city", True, "other", ("Rome", "Oslo", "Bern", "Chur"), ("near Gate 5", "with Eva"),
        _words(("lives in", "is at home in", "resides in"), "moved to", "lived in", "will leave", "will not move to"),
    ),
    Slot(
        "employer", True, "professional", ("Acme", "Bosch", "Hooli"), ("in Room 12", "under Kim"),
        _words(
            ("works at", "is employed by", "has a job at"), "started at", "worked at", "will quit", "will not start at"
        ),
    ),
    Slot(
        "pet", False, "other", ("dog", "cat"), ("named Rex", "aged 7"),
        _words(("has a", "owns a", "keeps a"), "got a", "had a", "will give away the", "will not get a"),
    ),
    Slot(
        "drink", False, "soft_preference", ("tea", "turkey", "Turkey"), ("with Ann", "at 16:00"),
        _words(("likes", "is fond of"), "came to like", "liked", "will give up", "will not try"),
    ),
    Slot(
        "allergy", False, "health", ("nuts", "milk"), ("since 1992", "from Kent"),
        _words(
            ("is allergic to", "reacts to", "suffers from"),
            "got allergic to", "was allergic to", "will lose", "will not get",
        ),
    ),
)  # fmt: skip
SLOT_OF_KEY: Final = {slot.key: slot for slot in SLOTS}


@dataclass(frozen=True)
class Meaning:
    """What a sentence says: of whom, of which value of which key, and how; `until` is the end that it names itself.

    `begins` is a day that lies ahead: then the sentence is a plan.
    """

    person: str
    key: str
    value: str
    form: Form = "state"
    details: frozenset[str] = frozenset()
    begins: datetime | None = None
    until: datetime | None = None

    @property
    def slot(self) -> Slot:
        return SLOT_OF_KEY[self.key]

    @property
    def holds(self) -> bool:
        """Whether it says that the value holds, now or later."""
        return self.form in HOLDING

    @property
    def kind(self) -> str:
        return "holds" if self.holds else self.form

    @property
    def topic(self) -> tuple[str, str, str]:
        return self.person, self.key, self.value

    @property
    def claim(self) -> tuple[object, ...]:
        """What it claims, however it is worded."""
        return (*self.topic, self.kind, self.details, self.begins, self.until)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a sentence that say how a value holds; a merged sentence has those of all its parents."""
    found = _SENTENCE.fullmatch(text.strip().rstrip(".! "))
    return tuple(found["words"].lower().split(" and ")) if found else ()


def form_of(words: str) -> Form:
    """What some `words` say of a value."""
    return _MEANING_OF_WORDS[words][1]


def write(meaning: Meaning, subject: str | None, wording: int = 0, *, said: Sequence[str] = ()) -> str:
    """The sentence; `wording` chooses among equal ones, `said` are words to be used instead."""
    choices = meaning.slot.words[meaning.form]
    words = [" and ".join(said) or choices[wording % len(choices)], meaning.value]
    words += [" and ".join(sorted(meaning.details))] if meaning.details else []
    words += [f"from {meaning.begins:%Y-%m-%d} on"] if meaning.begins else []
    words += (
        [f"{'on' if meaning.form == 'announcement' else 'until'} {meaning.until:%Y-%m-%d}"] if meaning.until else []
    )
    sentence = " ".join([subject or "the user", *words])
    return f"{sentence[0].upper()}{sentence[1:]}."


def read(text: str, subject: str | None = None) -> Meaning | None:
    """What a sentence of this language says, None for others; `subject` is of whom, where that is not the user."""
    found = _SENTENCE.fullmatch(text.strip().rstrip(".! "))
    if found is None:
        return None
    key, form = _MEANING_OF_WORDS[words_of(text)[0]]
    details = frozenset(found["details"].strip().split(" and ")) - {""} if found["details"] else frozenset()
    return Meaning(
        person=person_of(subject if person_of(subject) != "user" else found["subject"] or subject),
        key=key,
        value=found["value"],
        form=form,
        details=details,
        begins=_day(found["begins"]),
        until=_day(found["until"]),
    )


def person_of(subject: str | None) -> str:
    """The person that a subject names."""
    return _PERSON_OF_SUBJECT.get((subject or "the user").strip().lower(), subject or "user")


def _day(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


_PERSON_OF_SUBJECT: Final = {
    (subject or "the user").lower(): person for person, subjects in SUBJECTS.items() for subject in subjects
}
_MEANING_OF_WORDS: Final = {
    words: (slot.key, form) for slot in SLOTS for form, choices in slot.words.items() for words in choices
}
_SUBJECTS_READ: Final = "|".join(re.escape(one) for one in (*CALLED, *chain(*SUBJECTS.values())) if one)
_WORDS_READ: Final = "|".join(re.escape(one) for one in sorted(_MEANING_OF_WORDS, key=len, reverse=True))
_VALUES_READ: Final = "|".join(re.escape(value) for slot in SLOTS for value in slot.values)
_DETAILS_READ: Final = "|".join(re.escape(detail) for slot in SLOTS for detail in slot.details)
_SENTENCE: Final = re.compile(
    rf"(?:(?P<subject>{_SUBJECTS_READ}) )?(?P<words>(?:{_WORDS_READ})(?: and (?:{_WORDS_READ}))*)"
    rf" (?P<value>{_VALUES_READ})"
    rf"(?P<details>(?: and| )?(?:(?: |and )*(?:{_DETAILS_READ}))+)?"
    r"(?: from (?P<begins>\d{4}-\d\d-\d\d) on)?(?: (?:until|on) (?P<until>\d{4}-\d\d-\d\d))?",
    re.IGNORECASE,
)
