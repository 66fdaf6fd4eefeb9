"""The context of one command: owner, scope, time and actor; it makes the common parts of its events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.provenance import DecidedBy, Decision
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import StoredFact

StoredFacts = Mapping[UUID, StoredFact]
Events = tuple[MemoryEvent, ...]

ACTOR_NAMES: Final[dict[DecidedBy, str]] = {"application": "an application", "human": "a human", "timer": "the timer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """Owner and scope of a command, when and by whom it was issued, and the time `now` where it is carried out."""

    owner: str
    source_id: str
    scope: Scope
    issued_at: datetime
    now: datetime
    actor: str | None

    def event_fields(self, ordinal: int, decision: Decision) -> dict[str, Any]:
        event_id = ids.event_id(self.owner, self.source_id, ordinal)
        return {"event_id": event_id, "ordinal": ordinal, "decision": decision}

    def decision(self, by: DecidedBy, done: str, facts: Iterable[StoredFact] = ()) -> Decision:
        """`done` is a verb in the past tense: what the actor did."""
        reason = f"{self.actor or ACTOR_NAMES[by]} {done}"
        return Decision(by=by, reason=reason, before=tuple(stored.snapshot for stored in facts))

    def owns(self, stored: StoredFact) -> bool:
        return stored.scope == self.scope
