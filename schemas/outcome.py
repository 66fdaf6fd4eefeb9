"""The value of `memory_outcomes`: a source that did not do what it should, or something of which waits for a person."""

from typing import Annotated, Self
from uuid import UUID

from pydantic import Field

from mnemolog.schemas.base import Identifier, IfAny, IfSet, Outcome, SourceKind, Text, Timestamp, Versioned
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import FactPending
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Origin
from mnemolog.schemas.scope import Scope


class SourceOutcome(Versioned):
    """How a turn or a command ended that failed or was rejected, or whose facts in `held` wait for a confirmation.

    `status` is that of its result. A further attempt has a record whatever its end is: it takes the place of the former
    one of the same key. `origin` is the record of the source in `conversation_turns`.
    """

    source_id: Identifier
    source_kind: SourceKind = "turn"
    attempt: Annotated[int, Field(ge=1)] = 1
    scope: Scope | None
    origin: Origin
    decided_at: Timestamp
    status: Outcome
    reason: Text | None = None
    detail: Text = ""
    limit: IfSet[LimitHit] = None
    order: IfSet[Text] = None
    held: IfAny[tuple[UUID, ...]] = ()

    @classmethod
    def of_commit(cls, commit: Commit) -> Self | None:
        """None for a source that did at its first attempt all that it should."""
        held = tuple(event.fact.fact_id for event in commit.events if isinstance(event, FactPending))
        if commit.outcome not in ("failed", "rejected") and not held and commit.attempt == 1:
            return None
        same = ("source_id", "source_kind", "attempt", "scope", "origin", "decided_at", "reason", "detail", "limit")
        order = commit.order.kind if commit.order else None
        return cls(**{name: getattr(commit, name) for name in same}, status=commit.outcome, order=order, held=held)

    @property
    def key(self) -> bytes:
        """`tenant/user/source id`, or the source id where the record named no scope."""
        return (f"{self.scope.owner}/{self.source_id}" if self.scope else self.source_id).encode()
