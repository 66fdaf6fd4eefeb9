"""Reads what was said before a turn, from the journal of turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from mnemolog.projections.db.store import Store
from mnemolog.projections.sql import queries
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import EarlierMessage

MAX_CHARACTERS: Final = 4000
"""Of a message, so many of its last characters are read: a question stands at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRequest:
    """Whose conversation before which turn.

    At most `messages`, said within `age` before `said_at`, and published before the turn and after `since`, the
    owner's last deletion that the caller knows of. `published_at` is the broker's time of the turn.
    """

    scope: Scope
    turn_id: str
    published_at: datetime
    offset: int
    said_at: datetime
    age: timedelta
    messages: int
    since: datetime | None = None


class ConversationStore(Store):
    """Reads the messages of earlier turns in `turn_journal`."""

    QUERIES = queries("conversation")

    async def messages_before(self, requests: Sequence[ConversationRequest]) -> list[tuple[EarlierMessage, ...]]:
        """For each request the messages of exactly its scope, the oldest first; one round trip for all."""
        found: list[list[EarlierMessage]] = [[] for _ in requests]
        columns = {
            "owner": [one.scope.owner for one in requests],
            "source_id": [one.turn_id for one in requests],
            **{name: [one.scope.columns[name] for one in requests] for name in requests[0].scope.columns},
            "published_at": [one.published_at for one in requests],
            "log_offset": [one.offset for one in requests],
            "since": [one.since for one in requests],
            "said_at": [one.said_at for one in requests],
            "oldest": [one.said_at - one.age for one in requests],
            "messages": [one.messages for one in requests],
            "characters": MAX_CHARACTERS,
        }
        for place, turn_id, role, name, content, at in await self._rows("said_before", columns):
            message = EarlierMessage(turn_id=turn_id, role=role, name=name, content=content, at=at)
            found[place - 1].append(message)
        return [tuple(reversed(messages)) for messages in found]
