"""Whom doubtful names mean, as a test has it."""

from collections.abc import Callable

from mnemolog.schemas.entities import KnownEntity
from mnemolog.streams.entities.questions import DoubtfulName

Choose = Callable[[DoubtfulName], KnownEntity | None]


def choose_nobody(_name: DoubtfulName) -> None:
    """Nobody can tell."""


def choose_called(called: str) -> Choose:
    """The possible twin that has this name."""
    return lambda name: next((one for one in name.twins if called in {alias.text for alias in one.aliases}), None)
