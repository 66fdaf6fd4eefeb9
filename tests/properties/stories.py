"""Stories: conversations with commands, the timer, late turns, several speakers, and replies that fail."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hypothesis import strategies as st

from tests.properties.conversations import Act

CommandKind = Literal["delete", "correct", "update", "confirm", "reject", "resolve", "undo", "undo_event", "delete_key"]
COMMANDS: Final[Sequence[CommandKind]] = (
    "confirm",
    "confirm",
    "confirm",
    "reject",
    "reject",
    "resolve",
    "resolve",
    "resolve",
    "delete",
    "delete",
    "correct",
    "update",
    "undo",
    "undo_event",
    "delete_key",
)
CROWD: Final = 9
"""The number of all friends together."""


@dataclass(frozen=True)
class Speech:
    """One statement with the choices of its turn; it joins the turn before where `joins` and that may be."""

    act: Act
    joins: bool = False
    days_late: int = 0
    hours_ahead: int = 0
    speaker: int = 0
    recalls: int | None = None
    infer: bool = True
    fails: bool = False
    corrected: bool = False
    silent_term: bool = False
    short_excerpt: bool = False


@dataclass(frozen=True)
class CommandDraw:
    """A command on one of the facts that there are then; `picks` choose which, and the new text."""

    kind: CommandKind
    picks: tuple[int, int, int]
    gap: int


@dataclass(frozen=True)
class TimerDraw:
    gap: int


Draw = Speech | CommandDraw | TimerDraw


@dataclass(frozen=True)
class Story:
    """What is drawn; `seed` is that of a reader who answers at random, None stands for the perfect one."""

    draws: tuple[Draw, ...]
    seed: int | None = None


@st.composite
def stories(draw: st.DrawFn, most: int = 10) -> Story:
    """Stories of up to `most` draws, mostly about one key; with a perfect reader, or one that answers at random."""
    key = draw(st.sampled_from([0, 0, 1, 2, 3, 4]))
    count = draw(st.integers(3, most))
    draws: list[Any] = [draw(_DRAWS[draw(st.integers(0, len(_DRAWS) - 1))](key)) for _ in range(count)]
    return Story(tuple(draws), draw(st.none() | st.integers(0, 1 << 16)))


def _speeches(key: int) -> st.SearchStrategy[Speech]:
    act = st.builds(
        Act,
        person=st.sampled_from([*[0] * 24, *[1] * 4, 2, CROWD]),
        slot=st.sampled_from([*[key] * 15, 0, 1, 2, 3, 4]),
        action=st.integers(0, 23),
        wording=st.integers(0, 3),
        subject=st.sampled_from([0, 1, 2, 2, 3, 4]),
        gap=st.sampled_from([1, 1, 0, 2, 9]),
        nearness=st.integers(0, 3),
        certainty=st.integers(0, 6),
    )
    return st.builds(
        Speech,
        act=act,
        joins=_rarely(),
        days_late=st.sampled_from([0, 0, 0, 0, 0, 2, 10]),
        hours_ahead=st.sampled_from([0] * 9 + [8]),
        speaker=st.integers(0, 3),
        recalls=st.none() | st.integers(0, 5),
        infer=st.sampled_from([True] * 9 + [False]),
        fails=_rarely(),
        corrected=_rarely(),
        silent_term=st.booleans(),
        short_excerpt=_rarely(),
    )


def _commands(_key: int) -> st.SearchStrategy[CommandDraw]:
    picks = st.tuples(*[st.integers(0, 11)] * 3)
    return st.builds(CommandDraw, st.sampled_from(COMMANDS), picks, gap=st.integers(0, 3))


def _timers(_key: int) -> st.SearchStrategy[TimerDraw]:
    return st.builds(TimerDraw, gap=st.sampled_from([1, 6, 30]))


def _rarely() -> st.SearchStrategy[bool]:
    return st.sampled_from([False] * 7 + [True])


_DRAWS: Final = (*[_speeches] * 13, *[_commands] * 6, _timers)
"""Of twenty draws so many statements, commands and runs of the timer."""
