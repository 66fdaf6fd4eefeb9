"""The turns that this process has extracted of late: the journal, a stage of its own, may not have written them yet."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from mnemolog.projections.stores.conversation import MAX_CHARACTERS, ConversationRequest
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.schemas.turn import Turn

MAX_OWNERS: Final = 2048
MAX_TURNS: Final = 32
MAX_OWNER_CHARACTERS: Final = 16_000
"""What is remembered of an owner at the most: the journal is seconds behind, not hours."""

Place = tuple[datetime, int]
"""Where a record stands in the order of its owner: the broker's time of it, and its offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecentTurn:
    place: Place
    scope: Scope
    occurred_at: datetime
    messages: tuple[EarlierMessage, ...]

    @property
    def characters(self) -> int:
        return sum(len(message.content) for message in self.messages)


@dataclass(slots=True)
class _Owner:
    turns: deque[_RecentTurn] = field(default_factory=deque)
    deleted_at: datetime | None = None


class RecentTurns:
    """Remembers the last turns of some owners, each with its place in the log, and their last deletions.

    What it knows is true whichever process has a partition: it may only lack turns that another one has extracted.
    """

    def __init__(self) -> None:
        self._owners: OrderedDict[str, _Owner] = OrderedDict()

    def remember(self, turn: Turn, place: Place) -> None:
        """Keep a turn for those after it; one that is delivered again is kept once."""
        known = self._owner(turn.scope.owner)
        if any(one.place == place for one in known.turns):
            return
        messages = tuple(messages_of(turn))
        known.turns.append(_RecentTurn(place=place, scope=turn.scope, occurred_at=turn.occurred_at, messages=messages))
        while len(known.turns) > MAX_TURNS or sum(one.characters for one in known.turns) > MAX_OWNER_CHARACTERS:
            known.turns.popleft()

    def forget(self, owner: str, published_at: datetime) -> None:
        """Forget what an owner said before a deletion that was published then."""
        known = self._owner(owner)
        known.turns.clear()
        known.deleted_at = max(published_at, known.deleted_at or published_at)

    def deleted_at(self, owner: str) -> datetime | None:
        """When the last deletion of an owner that this process has seen was published."""
        known = self._owners.get(owner)
        return known.deleted_at if known else None

    def messages_before(self, request: ConversationRequest) -> tuple[EarlierMessage, ...]:
        """The messages that were said before a turn, as the journal would give them, the oldest first."""
        known = self._owners.get(request.scope.owner)
        turns = [one for one in (known.turns if known else ()) if _is_before(one, request)]
        return tuple(message for one in sorted(turns, key=_said) for message in one.messages)

    def _owner(self, owner: str) -> _Owner:
        known = self._owners.setdefault(owner, _Owner())
        self._owners.move_to_end(owner)
        while len(self._owners) > MAX_OWNERS:
            self._owners.popitem(last=False)
        return known


def messages_of(turn: Turn) -> list[EarlierMessage]:
    """What the user and the assistant say in a turn."""
    return [
        EarlierMessage(
            turn_id=turn.turn_id,
            role=message.role,
            name=message.name or (turn.speaker if message.role == "user" else None),
            content=message.content[-MAX_CHARACTERS:],
            at=turn.occurred_at,
        )
        for message in turn.messages
        if message.role in ("user", "assistant")
    ]


def _is_before(turn: _RecentTurn, request: ConversationRequest) -> bool:
    is_earlier = turn.place < (request.published_at, request.offset)
    is_recent = request.said_at - request.age <= turn.occurred_at <= request.said_at
    return (
        is_earlier
        and is_recent
        and turn.scope == request.scope
        and all(message.turn_id != request.turn_id for message in turn.messages)
    )


def _said(turn: _RecentTurn) -> tuple[datetime, Place]:
    return turn.occurred_at, turn.place
