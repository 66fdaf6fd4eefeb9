"""What a history of entities is about: a few names, and the kinds of steps that act on each other.

Of all names and kinds at once, what needs several steps on one entity is rare.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, get_args

Kind = Literal[
    "say", "say tie", "again", "undo",
    "settle", "delete",
    "rename", "call", "split", "forget", "summarise", "foreign",
    "merge",
]  # fmt: skip
NAMES: Final = ("Ana", "Bruno", "Cleo", "Dora", "Emil")
"""None is a part or a short form of another one, or spelled nearly like it."""
TIES: Final = ("my wife", "my brother")
_NEEDED: Final[Mapping[Kind, int]] = {
    "rename": 1, "call": 1, "split": 1, "forget": 1, "summarise": 1, "foreign": 1, "merge": 2,
}  # fmt: skip
"""How many known entities a step needs."""
_SAYING: Final[tuple[Kind, ...]] = ("say", "say", "say tie", "say tie", "again", "undo", "undo")
_EVERYTHING: Final[tuple[Kind, ...]] = (*get_args(Kind), *_SAYING, "summarise")
_THEMES: Final[tuple[tuple[Kind, ...], ...]] = (
    ("say", "say tie", "say tie", "settle", "settle", "undo", "undo", "again", "again"),
    ("say", "say tie", "say tie", "say tie", "settle", "settle", "undo", "again"),
    ("say", "say tie", "say tie", "say tie", "split", "undo", "settle"),
    ("say", "say tie", "undo", "undo", "split", "split", "merge", "merge", "forget"),
    (*_SAYING, "delete", "delete", "summarise", "summarise"),
    (*_SAYING, "rename", "call", "call", "merge", "split", "delete"),
)


@dataclass(frozen=True)
class Theme:
    """The names and kinds of steps of a history."""

    names: tuple[str, ...]
    ties: tuple[str, ...]
    steps: tuple[Kind, ...]

    def kinds(self, known: int) -> tuple[Kind, ...]:
        """The steps that there may be where so many entities are known, more likely ones several times."""
        return tuple(kind for kind in self.steps if _NEEDED.get(kind, 0) <= known)


def drawn_theme(random: Random) -> Theme:
    """Everything with all names, or some kinds with few."""
    if random.random() < 1 / 4:
        return Theme(NAMES, TIES, _EVERYTHING)
    names = random.sample(NAMES, random.randint(2, 4))
    return Theme(tuple(names), tuple(random.sample(TIES, random.randint(1, 2))), random.choice(_THEMES))
