"""What happens in a generated history: turns that say sentences of the small language, and commands."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from tests.properties.sentences import Meaning, write

START: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
Certainty = Literal["explicit", "speculation"]
Kind = Literal[
    "delete", "correct", "update", "confirm", "reject", "undo", "import", "promote", "publish", "delete_key",
    "delete_category", "timer", "rename", "call", "merge", "split", "forget", "summarise",
]  # fmt: skip
Topic = tuple[str, str, str]
"""Person, key and value."""


def on_day(day: float) -> datetime:
    return START + timedelta(days=day)


@dataclass(frozen=True)
class Said:
    """One sentence; `slotless` where the extraction finds no key in it, `far` where its vector is near no other one.

    Its excerpt is the value alone where it is a `short` answer; `also` are categories besides that of its key.
    """

    meaning: Meaning
    subject: str | None
    wording: int = 0
    certainty: Certainty = "explicit"
    slotless: bool = False
    far: bool = False
    short: bool = False
    also: frozenset[str] = frozenset()

    @property
    def categories(self) -> frozenset[str]:
        """All of them; "other" is one only where there is no other."""
        return self.also | {self.meaning.slot.category} - {"other"} or frozenset({"other"})

    @property
    def text(self) -> str:
        return write(self.meaning, self.subject, self.wording)

    def __str__(self) -> str:
        marks = [mark for mark in ("slotless", "far", "short") if getattr(self, mark)]
        marks += [*([self.certainty] if self.certainty != "explicit" else []), *sorted(self.also)]
        return f"{self.text}{marks or ''}"


@dataclass(frozen=True)
class Turn:
    """A turn that is said on one day and arrives on the same, or a later one; of a fast clock it is `ahead`.

    `recalled` are texts of memory that the application put into the prompt.
    """

    name: str
    at: datetime
    arrives: datetime
    said: tuple[Said, ...]
    immutable: bool = False
    in_run: bool = False
    ahead: bool = False
    recalled: tuple[str, ...] = ()

    def __str__(self) -> str:
        marks = [mark for mark in ("immutable", "in_run", "ahead") if getattr(self, mark)]
        marks += [f"arrives {self.arrives:%m-%d %H:%M}"] if self.arrives != self.at else []
        marks += [f"recalls {self.recalled}"] if self.recalled else []
        return f"{self.name} {self.at:%m-%d %H:%M} {' '.join(map(str, self.said))} {marks or ''}"


@dataclass(frozen=True)
class Order:
    """A command: on the fact of a topic, on an earlier step (`of`), or on all; `said` is its new text.

    Of a deletion the category is what is `called`. Of people: `who` is concerned, `other` whom they are merged into, or
    lose the name `called` to them; `facts` are the turns whose facts are moved or deleted, `names` those that a split
    moves as well.
    """

    name: str
    arrives: datetime
    kind: Kind
    topic: Topic | None = None
    said: Said | None = None
    of: str | None = None
    true_from: datetime | None = None
    human: bool = False
    who: str = ""
    other: str = ""
    called: str = ""
    facts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        fields = (self.topic, self.said, self.of, self.true_from, self.who, self.other, self.called)
        about = [str(one) for one in (*fields, self.facts, self.names) if one]
        return f"{self.name} {self.arrives:%m-%d %H:%M} {self.kind} {' '.join(about)}{' human' if self.human else ''}"


Step = Turn | Order
