"""What became of a command: the events it brings, or why it was refused."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import MemoryEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The end of one command: `done`, also where it found nothing to do, or `rejected`, then without any event.

    `reason` is one of few words and `detail` says what the caller can do; both are for a refusal.
    """

    outcome: Literal["done", "rejected"]
    events: tuple[MemoryEvent, ...] = ()
    reason: str | None = None
    detail: str = ""


HandleCommand = Callable[[MatchedFacts], Awaitable[CommandResult]]
"""Carries out the order of an envelope whose `source_kind` is "command"; it writes nothing itself."""
