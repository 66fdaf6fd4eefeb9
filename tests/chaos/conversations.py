"""Conversations of many users whose right state is known at every moment, as plain JSON.

They share no code with the product.
"""

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
CITIES: Final = (  # noqa: SIM905 -- a list of words
    "Berlin Munich Hamburg Rome Milan Paris Lyon Madrid Lisbon Vienna Prague Warsaw Athens Dublin Oslo Helsinki "
    "Stockholm Copenhagen Brussels Amsterdam Zurich Budapest Sofia Bucharest Tokyo Seoul Toronto Chicago Boston Sydney"
).split()
SYLLABLES: Final = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "sa", "te", "vu", "zo", "fa", "ge", "hi", "ju")
MOVE_EVERY: Final = 2


@dataclass(frozen=True, slots=True)
class Published:
    """A record as it goes to `conversation_turns`."""

    source_id: str
    user: str
    key: bytes
    value: bytes
    is_command: bool


@dataclass(slots=True)
class Note:
    """A text that its user has stored as it is, and the fact that it became, once that is known."""

    source_id: str
    text: str
    fact_id: str | None = None


@dataclass(slots=True)
class UserStory:
    """What one user has said so far, and what therefore has to be active: one city, and the notes that still hold."""

    number: int
    seed: int
    step: int = 0
    city: int = -1
    open_notes: list[Note] = field(default_factory=list)
    active: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"ana{self.number}"

    @property
    def home(self) -> str:
        return f"{self.name.capitalize()} lives in {CITIES[self.city]}."

    def say_more(self) -> list[Published]:
        """The turns of the next step: a note, and at times a move."""
        self.step += 1
        note = Note(f"{self.name}-note-{self.step}", self._text(f"note {self.step}"))
        self.open_notes.append(note)
        self.active.add(note.text)
        said = [self._turn(note.source_id, note.text, infer=False)]
        if self.step % MOVE_EVERY and self.city + 1 < len(CITIES):
            said.append(self._move())
        return said

    def command(self, chance: random.Random) -> Published | None:
        """A command about one of the notes whose fact is known; no other one is about it later."""
        known = [note for note in self.open_notes if note.fact_id]
        if not known:
            return None
        note = chance.choice(known)
        self.open_notes.remove(note)
        self.active.discard(note.text)
        kind = chance.choice(("delete", "correct", "undo"))
        source_id = f"{self.name}-{kind}-{note.source_id.rsplit('-', 1)[1]}"
        payload: dict[str, Any] = {"kind": "delete", "fact_ids": [note.fact_id]}
        if kind == "correct":
            text = self._text(f"corrected {note.source_id}")
            self.active.add(text)
            payload = {"kind": "correct", "edit": {"fact_id": note.fact_id, "text": text}}
        if kind == "undo":
            payload = {"kind": "undo", "source_id": note.source_id}
        return self._command(source_id, payload)

    def _move(self) -> Published:
        before, self.city = self.city, self.city + 1
        if before < 0:
            words = f"I live in {CITIES[self.city]}."
        else:
            self.active.discard(f"{self.name.capitalize()} lives in {CITIES[before]}.")
            words = f"I moved from {CITIES[before]} to {CITIES[self.city]}."
        self.active.add(self.home)
        return self._turn(f"{self.name}-move-{self.step}", words, infer=True)

    def _turn(self, source_id: str, text: str, *, infer: bool) -> Published:
        record = {
            "schema_version": 1,
            "kind": "turn",
            "turn_id": source_id,
            "scope": {"user_id": self.name},
            "messages": [{"role": "user", "content": text}],
            "occurred_at": (BEGIN + timedelta(minutes=self.step)).isoformat(),
            "infer": infer,
            "speaker": self.name.capitalize(),
        }
        return self._published(source_id, record, is_command=False)

    def _command(self, source_id: str, payload: dict[str, Any]) -> Published:
        record = {
            "schema_version": 1,
            "kind": "command",
            "command_id": source_id,
            "scope": {"user_id": self.name},
            "issued_at": (BEGIN + timedelta(minutes=self.step, seconds=30)).isoformat(),
            "order": payload,
        }
        return self._published(source_id, record, is_command=True)

    def _published(self, source_id: str, record: dict[str, Any], *, is_command: bool) -> Published:
        self.order.append(source_id)
        key = f"default/{self.name}".encode()
        return Published(source_id, self.name, key, json.dumps(record).encode(), is_command)

    def _text(self, what: str) -> str:
        """Words of a language of their own, so that no two texts are alike."""
        chance = random.Random(f"{self.seed} {self.name} {what}")
        words = ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(10)]
        return f"{' '.join(words).capitalize()}."
