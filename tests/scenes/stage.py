"""What every scene is made of: one event, driven from a turn or a command to the rows, and the words that it shows."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.projections.results import WriteResult
from tests.changes import Change, changed
from tests.servers.scripted import Ruling, reading
from tests.world import Person

Play = Callable[[Person], Awaitable[Change]]


@dataclass(frozen=True, slots=True)
class Scene:
    """Drives `event`, checks the rows, and shows one word at the most of each vocabulary."""

    event: str
    words: Mapping[str, str]
    play: Play

    @property
    def name(self) -> str:
        return self.play.__name__


SCENES: Final[list[Scene]] = []


def scene(event: str, **words: str) -> Callable[[Play], Play]:
    """Put a play among the scenes; it is given somebody of whom nothing is known."""

    def collect(play: Play) -> Play:
        SCENES.append(Scene(event, words, play))
        return play

    return collect


def old(person: Person) -> str:
    """What is known first."""
    return f"{person.name} writes with Emacs."


def new(person: Person) -> str:
    """What is said about it."""
    return f"{person.name} writes with Vim."


def both(person: Person) -> str:
    return f"{person.name} writes with Emacs and Vim."


def said(text: str, **fields: Any) -> dict[str, Any]:
    """Two vectors of one topic are equal: the words tell the facts apart."""
    return reading(text, "the editor", **fields)


def answered(person: Person, ruling: Ruling, **fields: Any) -> Awaitable[WriteResult]:
    """The new one is said, and the model says of it what `ruling` says."""
    turn = {name: fields.pop(name) for name in ("occurred_at",) if name in fields}
    return person.says(said(new(person), **fields), ruled={new(person): ruling}, **turn)


async def shown(person: Person, told: Awaitable[WriteResult]) -> Change:
    return await changed(person, told, old=old(person), new=new(person))
